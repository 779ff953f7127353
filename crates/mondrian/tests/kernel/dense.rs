//! Updated inverses and factors against fresh ones, over thousands of random changes of A = ZᵀZ + δ²I.

use mondrian::Error;
use mondrian::Matrix;
use mondrian::internals::linalg::{Cholesky, DeferredInverse, Drift, Factor, Into, Inverse, Threads, gemm};
use mondrian::process::NodeKey;

/// Z kept row by row, and everything computed from it the slow way.
struct Model {
    rows: Vec<Vec<f64>>,
    targets: Vec<f64>,
    scales: Vec<f64>,
    delta2: f64,
}

impl Model {
    fn n(&self) -> usize {
        self.scales.len()
    }

    fn z(&self) -> Matrix {
        Matrix::from_fn(self.rows.len(), self.n(), |i, j| self.rows[i][j])
    }

    fn a(&self) -> Matrix {
        let z = self.z();
        let mut a = Matrix::from_fn(self.n(), self.n(), |i, j| if i == j { self.delta2 } else { 0.0 });
        gemm(1.0, z.view().t(), &z, Into::Add, a.view_mut(), Threads::ONE);
        a
    }

    fn zty(&self) -> Vec<f64> {
        (0..self.n()).map(|j| self.rows.iter().zip(&self.targets).map(|(r, y)| r[j] * y).sum()).collect()
    }

    fn predict(&self, theta: &[f64]) -> Vec<f64> {
        self.rows.iter().map(|r| r.iter().zip(theta).map(|(z, t)| z * t).sum()).collect()
    }

    /// Column j of A for a feature with values `column` in the rows.
    fn border(&self, column: &[f64]) -> (Vec<f64>, f64) {
        let b = (0..self.n()).map(|j| self.rows.iter().zip(column).map(|(r, c)| r[j] * c).sum()).collect();
        (b, self.delta2 + column.iter().map(|c| c * c).sum::<f64>())
    }
}

/// A stream of keyed random numbers.
struct Stream(NodeKey, u32);

impl Stream {
    fn new(seed: u64) -> Self {
        Self(NodeKey::root(seed, 0), 0)
    }

    fn uniform(&mut self) -> f64 {
        self.1 += 1;
        self.0.draw(self.1).uniform()
    }

    fn normal(&mut self) -> f64 {
        self.1 += 1;
        self.0.draw(self.1).normal()
    }

    fn below(&mut self, n: usize) -> usize {
        (self.uniform() * n as f64) as usize
    }
}

fn model(stream: &mut Stream, n_rows: usize, n: usize, smallest_scale: f64, delta2: f64) -> Model {
    let scales: Vec<f64> = (0..n).map(|_| smallest_scale.powf(stream.uniform())).collect();
    let rows = (0..n_rows).map(|_| scales.iter().map(|s| s * stream.normal()).collect()).collect();
    Model { rows, targets: (0..n_rows).map(|_| stream.normal()).collect(), scales, delta2 }
}

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    let mut out = Matrix::zeros(a.n_rows(), b.n_columns());
    gemm(1.0, a, b, Into::Replace, out.view_mut(), Threads::ONE);
    out
}

fn norm_two(a: &Matrix) -> f64 {
    let mut x = Matrix::from_fn(a.n_rows(), 1, |i, _| 1.0 + (i as f64).sin());
    let mut norm = 0.0;
    for _ in 0..100 {
        let y = product(a, &x);
        norm = y.as_slice().iter().map(|v| v * v).sum::<f64>().sqrt();
        x = Matrix::from_fn(a.n_rows(), 1, |i, _| y[(i, 0)] / norm);
    }
    norm
}

/// ‖AP − I‖_F / (n·ε·cond₂(A)).
fn excess(a: &Matrix, p: &Matrix) -> f64 {
    let n = a.n_rows();
    let fresh = Cholesky::new(a.clone(), Threads::ONE).unwrap().inverse();
    let ap = product(a, p);
    let residual = (0..n * n).map(|k| (ap[(k % n, k / n)] - f64::from(u8::from(k % n == k / n))).powi(2)).sum::<f64>();
    residual.sqrt() / (n as f64 * f64::EPSILON * norm_two(a) * norm_two(&fresh))
}

fn worst(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

fn fresh_predictions(model: &Model) -> Vec<f64> {
    model.predict(&Cholesky::new(model.a(), Threads::ONE).unwrap().solve(&model.zty()).unwrap())
}

/// Both shapes reach condition numbers of about 1e8: by more features than rows, and by features of unlike scale.
const SHAPES: [(usize, usize, f64, f64); 3] = [(30, 40, 1.0, 1e-6), (80, 40, 1e-4, 1e-8), (80, 40, 1.0, 0.1)];

#[test]
fn thousands_of_changes_keep_the_inverse() {
    for (shape, (n_rows, n, smallest, delta2)) in SHAPES.into_iter().enumerate() {
        let mut stream = Stream::new(shape as u64);
        let mut m = model(&mut stream, n_rows, n, smallest, delta2);
        let mut inverse = Inverse::new(m.a(), Threads::ONE).unwrap();
        for step in 1..=2400 {
            change_inverse(&mut stream, &mut m, &mut inverse, (n_rows, n), smallest);
            if step % 40 == 0 {
                let a = m.a();
                let found = excess(&a, &inverse.view().to_owned());
                assert!(found < 10.0, "shape {shape}, step {step}: {found} × n·ε·cond, {:?}", inverse.drift());
                let theta = inverse.solve(&m.zty()).unwrap();
                let error = worst(&m.predict(&theta), &fresh_predictions(&m));
                assert!(error < 1e-8, "shape {shape}, step {step}: predictions {error}");
            }
        }
        let Drift { checks, refreshes, .. } = inverse.drift();
        assert!(checks > 50, "{checks}");
        // The well-conditioned shape must do without computing anew, or updating would be pointless.
        assert!(shape != 2 || refreshes < 20, "{refreshes}");
    }
}

fn change_inverse(stream: &mut Stream, m: &mut Model, p: &mut Inverse, home: (usize, usize), smallest: f64) {
    match stream.below(6) {
        0 => {
            let row: Vec<f64> = m.scales.iter().map(|s| s * stream.normal()).collect();
            p.rank_one(1.0, &row).unwrap();
            m.rows.push(row);
            m.targets.push(stream.normal());
        }
        1 if m.rows.len() > home.0 => {
            let k = stream.below(m.rows.len());
            p.rank_one(-1.0, &m.rows.swap_remove(k)).unwrap();
            m.targets.swap_remove(k);
        }
        2 => {
            // Two rows in and one out at once.
            let k = stream.below(m.rows.len());
            let new: Vec<Vec<f64>> = (0..2).map(|_| m.scales.iter().map(|s| s * stream.normal()).collect()).collect();
            let old = m.rows.swap_remove(k);
            let v = Matrix::from_fn(m.n(), 3, |i, j| [&new[0], &old, &new[1]][j][i]);
            p.rank_k(&[1.0, -1.0, 1.0], v.view()).unwrap();
            m.rows.extend(new);
            m.targets.push(stream.normal());
        }
        3 if m.n() > home.1 / 2 => {
            let j = stream.below(m.n());
            p.swap_remove(j).unwrap();
            m.rows.iter_mut().for_each(|r| _ = r.swap_remove(j));
            m.scales.swap_remove(j);
        }
        4 if m.n() > home.1 / 2 => {
            let i = stream.below(m.n());
            let j = (i + 1 + stream.below(m.n() - 1)) % m.n();
            let mut theta = p.solve(&m.zty()).unwrap();
            p.merge(i, j, m.delta2).unwrap().apply(&mut theta);
            for row in &mut m.rows {
                row[i] += row[j];
                row.swap_remove(j);
            }
            m.scales[i] += m.scales[j];
            m.scales.swap_remove(j);
            assert!(worst(&m.predict(&theta), &fresh_predictions(m)) < 1e-7);
        }
        _ if m.n() < 2 * home.1 => {
            let scale = smallest.powf(stream.uniform());
            let column: Vec<f64> = m.rows.iter().map(|_| scale * stream.normal()).collect();
            let (b, d) = m.border(&column);
            p.border(&b, d).unwrap();
            m.rows.iter_mut().zip(column).for_each(|(r, c)| r.push(c));
            m.scales.push(scale);
        }
        _ => {}
    }
}

#[test]
fn thousands_of_changes_keep_the_factor() {
    for (shape, (n_rows, n, smallest, delta2)) in SHAPES.into_iter().enumerate() {
        let mut stream = Stream::new(10 + shape as u64);
        let mut m = model(&mut stream, n_rows, n, smallest, delta2);
        let mut factor = Factor::new(m.a(), Threads::ONE).unwrap();
        for step in 1..=2400 {
            change_factor(&mut stream, &mut m, &mut factor, (n_rows, n), smallest);
            if step % 40 == 0 {
                let n = m.n();
                let mut p = Matrix::identity(n);
                for j in 0..n {
                    let solved = factor.solve(p.column(j)).unwrap();
                    p.column_mut(j).copy_from_slice(&solved);
                }
                let found = excess(&m.a(), &p);
                assert!(found < 10.0, "shape {shape}, step {step}: {found} × n·ε·cond, {:?}", factor.drift());
                let theta = factor.solve(&m.zty()).unwrap();
                let error = worst(&m.predict(&theta), &fresh_predictions(&m));
                assert!(error < 1e-8, "shape {shape}, step {step}: predictions {error}");
            }
        }
        let fresh = Cholesky::new(m.a(), Threads::ONE).unwrap();
        assert!((factor.log_determinant() - fresh.log_determinant()).abs() < 1e-5);
        assert!(shape != 2 || factor.drift().refreshes < 20, "{:?}", factor.drift());
    }
}

fn change_factor(stream: &mut Stream, m: &mut Model, l: &mut Factor, home: (usize, usize), smallest: f64) {
    match stream.below(4) {
        0 => {
            let row: Vec<f64> = m.scales.iter().map(|s| s * stream.normal()).collect();
            l.rank_one(1.0, &row).unwrap();
            m.rows.push(row);
            m.targets.push(stream.normal());
        }
        1 if m.rows.len() > home.0 => {
            let k = stream.below(m.rows.len());
            l.rank_one(-1.0, &m.rows.swap_remove(k)).unwrap();
            m.targets.swap_remove(k);
        }
        2 if m.n() > home.1 / 2 => {
            let j = stream.below(m.n());
            l.remove(j).unwrap();
            m.rows.iter_mut().for_each(|r| _ = r.remove(j));
            m.scales.remove(j);
        }
        _ if m.n() < 2 * home.1 => {
            let scale = smallest.powf(stream.uniform());
            let column: Vec<f64> = m.rows.iter().map(|_| scale * stream.normal()).collect();
            let (b, d) = m.border(&column);
            l.append(&b, d).unwrap();
            m.rows.iter_mut().zip(column).for_each(|(r, c)| r.push(c));
            m.scales.push(scale);
        }
        _ => {}
    }
}

#[test]
fn deferred_changes_are_the_immediate_ones() {
    let mut stream = Stream::new(77);
    let m = model(&mut stream, 100, 60, 1.0, 0.3);
    let mut now = Inverse::new(m.a(), Threads::ONE).unwrap();
    let mut later = DeferredInverse::new(now.view().to_owned(), 10, Threads::ONE).unwrap();
    let mut theta = now.solve(&m.zty()).unwrap();
    let mut b = m.zty();
    for step in 0..57 {
        let n = later.n_rows();
        let (i, j) = (stream.below(n), stream.below(n));
        match step % 5 {
            3 => {
                let v: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
                now.rank_one(0.5, &v).unwrap();
                later.rank_one(0.5, &v).unwrap();
                theta = now.solve(&b).unwrap();
            }
            4 => {
                now.swap_remove(i).unwrap();
                later.swap_remove(i).unwrap();
                b.swap_remove(i);
                theta = now.solve(&b).unwrap();
            }
            _ if i != j => {
                now.merge(i, j, 0.3).unwrap();
                later.merge(i, j, 0.3).unwrap().apply(&mut theta);
                b[i] += b[j];
                b.swap_remove(j);
            }
            _ => assert!(matches!(later.merge(i, j, 0.3), Err(Error::InvalidParameter { .. }))),
        }
        assert_eq!(later.n_rows(), now.n_rows());
        assert!(worst(&theta, &now.solve(&b).unwrap()) < 1e-10);
        let mut column = vec![0.0; later.n_rows()];
        let probe = stream.below(later.n_rows());
        later.column(probe, &mut column);
        assert!(worst(&column, now.column(probe)) < 1e-10);
        assert!((later.get(0, probe) - column[0]).abs() < 1e-12);
        let mut image = column.clone();
        later.multiply(&b, &mut image);
        assert!(worst(&image, &theta) < 1e-10);
        assert!(later.residual(|x, out| now.matrix().multiply(x, out)) < 1e-9);
    }
    let whole = later.to_matrix();
    assert!(worst(whole.as_slice(), now.view().to_owned().as_slice()) < 1e-10);
    assert_eq!(later.n_pending(), 0);
}

#[test]
fn a_refused_change_changes_nothing() {
    let mut inverse = Inverse::new(Matrix::identity(3), Threads::ONE).unwrap();
    let mut factor = Factor::new(Matrix::identity(3), Threads::ONE).unwrap();
    let v = [1.0, 1.0, 0.0];
    assert!(matches!(inverse.rank_one(-1.0, &v), Err(Error::NotPositiveDefinite { .. })));
    assert!(matches!(factor.rank_one(-1.0, &v), Err(Error::NotPositiveDefinite { .. })));
    assert!(matches!(inverse.border(&v, 1.0), Err(Error::NotPositiveDefinite { row: 3 })));
    assert!(matches!(factor.append(&v, 1.0), Err(Error::NotPositiveDefinite { row: 3 })));
    let pair = Matrix::from_fn(3, 2, |i, j| if j == 0 { 1.0 } else { 2.0 * v[i] });
    assert!(matches!(inverse.rank_k(&[1.0, -1.0], pair.view()), Err(Error::NotPositiveDefinite { .. })));
    assert!(matches!(inverse.rank_one(1.0, &v[..2]), Err(Error::LengthMismatch { expected: 3, found: 2, .. })));
    assert!(matches!(inverse.merge(1, 1, 0.1), Err(Error::InvalidParameter { .. })));
    assert!(inverse.swap_remove(3).is_err() && factor.remove(3).is_err());
    assert_eq!(inverse.view().to_owned(), Matrix::identity(3));
    assert_eq!(factor.lower(), Matrix::identity(3));
}
