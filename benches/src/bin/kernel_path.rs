//! The Laplace kernel's path: its cost in Cholesky fits, against the report's plain updates, and its growth with C.
//!
//! `kernel_path [C...]`, by default 3000 (the comparison) and 500 1000 2000 4000 8000 (the growth). N = 3000 training
//! and 1000 validation rows × 8 inputs, 50 trees, the terminal lifetime chosen for about C features, one thread,
//! processor time. The twin is the report's: two rank-one updates, a deletion and a rank-one update of the whole
//! inverse per cut, then θ = C⁻¹(Zᵀy) and the validation error. It is timed on a part of its cuts, at C and at C/2
//! features, and scaled by Simpson's rule (a cut costs O(C²)): the whole of it would take too long.

use mondrian::FeatureRidge;
use mondrian::Progress;
use mondrian::internals::features::{CellArray, Design, UNSEEN};
use mondrian::internals::linalg::{Cholesky, Into, Inverse, MatrixRef, Threads, gemv};
use mondrian::internals::ridge::Solver;
use mondrian::process::NodeKey;
use mondrian::{FeatureMap, MondrianFeatures};
use mondrian::{ForestParams, WeightsChoice};
use mondrian::{KernelRidge, PathMethod, RegularizationPath};
use mondrian::{Lifetime, Points, Result};
use mondrian_benches::timed_on_processor as timed;

const N_TRAIN: usize = 3000;
const N_VALIDATION: usize = 1000;
const D: usize = 8;
const N_TREES: usize = 50;
const ALPHA: f64 = 0.1;
/// Cuts on which the twin is timed, at each of two sizes.
const TWIN_CUTS: usize = 25;

struct Data {
    x: Vec<f64>,
    y: Vec<f64>,
}

impl Data {
    fn new(n: usize, seed: u64) -> Self {
        let uniform = |k: usize| NodeKey::root(seed, k as u64).draw(0).uniform();
        let x: Vec<f64> = (0..n * D).map(uniform).collect();
        let noise = |row: usize| 0.1 * NodeKey::root(seed, row as u64).draw(1).normal();
        let y = (0..n).map(|row| (6.0 * x[row * D]).sin() + x[row * D + 1] + noise(row)).collect();
        Self { x, y }
    }

    fn points(&self) -> Result<Points<'_>> {
        Points::row_major(&self.x, D)
    }
}

/// A model of about `c` features.
fn model(train: &Data, c: usize) -> Result<KernelRidge> {
    let trees = ForestParams { n_trees: N_TREES, weights: WeightsChoice::Raw, ..ForestParams::default() };
    let mut grown = MondrianFeatures::on(&trees, train.points()?, Lifetime::new(8.0)?)?;
    grown.learn(train.points()?)?;
    let (mut low, mut high) = (0.01, 8.0);
    while high / low > 1.002 {
        let middle = f64::sqrt(low * high);
        let n_columns = grown.at(Lifetime::new(middle)?)?.n_columns();
        if n_columns < c { low = middle } else { high = middle }
    }
    let params = KernelRidge::params().trees(trees).alpha(ALPHA).lifetime(Lifetime::new(high)?);
    params.fit(train.points()?, &train.y)
}

struct Measured {
    features: usize,
    factor: f64,
    fit: f64,
    path: f64,
    found: RegularizationPath,
}

/// The best of a few runs of one Cholesky fit at the terminal lifetime and of the whole path.
fn measure(model: &KernelRidge, train: &Data, held: &Data, runs: usize) -> Result<Measured> {
    let z = model.features().training()?;
    let features = z.n_columns();
    let params = FeatureRidge::params().alpha(ALPHA).solver(Solver::Primal);
    let (mut fit, mut factor, mut path, mut found) = (f64::INFINITY, f64::INFINITY, f64::INFINITY, None);
    for _ in 0..runs {
        let copy = z.clone();
        let (done, seconds) = timed(|| params.fit(copy.into(), &train.y));
        done?;
        fit = fit.min(seconds);
        let mut gram = z.gram_lower(Threads::ONE);
        (0..features).for_each(|i| gram[(i, i)] += ALPHA);
        let (done, seconds) = timed(|| Cholesky::new(gram, Threads::ONE));
        done?;
        factor = factor.min(seconds);
        let (done, seconds) =
            timed(|| model.path(&[(held.points()?, &held.y)], &PathMethod::Removal, &mut Progress::none()));
        found = Some(done?);
        path = path.min(seconds);
    }
    Ok(Measured { features, factor, fit, path, found: found.expect("ran") })
}

/// The report's state: the inverse, and the cells of training and validation rows.
struct Plain {
    p: Vec<f64>,
    n: usize,
    train: Vec<Vec<usize>>,
    held: Vec<Vec<usize>>,
}

impl Plain {
    /// P − (Pe_i)(vᵀP)/(1 + vᵀPe_i): the inverse after e_i vᵀ is added (or its transpose, by symmetry of the caller).
    fn rank_one(&mut self, column: &[f64], row: &[f64], pivot: f64) {
        for (c, r) in self.p.chunks_exact_mut(self.n).zip(row) {
            let scale = r / pivot;
            c.iter_mut().zip(column).for_each(|(p, x)| *p -= x * scale);
        }
    }

    /// Row j of ZᵀZ + δ²I.
    fn covariance(&self, j: usize) -> Vec<f64> {
        let mut v = vec![0.0; self.n];
        for row in self.train.iter().filter(|row| row.contains(&j)) {
            row.iter().for_each(|f| v[*f] += 1.0 / N_TREES as f64);
        }
        v[j] += ALPHA;
        v
    }

    fn times(&self, v: &[f64], transposed: bool) -> Vec<f64> {
        let mut out = vec![0.0; self.n];
        let p = MatrixRef::new(&self.p, self.n, self.n);
        if transposed {
            gemv(1.0, p.t(), v, Into::Replace, &mut out);
        } else {
            gemv(1.0, p, v, Into::Replace, &mut out);
        }
        out
    }

    fn row(&self, i: usize) -> Vec<f64> {
        (0..self.n).map(|c| self.p[c * self.n + i]).collect()
    }

    fn column(&self, i: usize) -> Vec<f64> {
        self.p[i * self.n..][..self.n].to_vec()
    }

    /// The four steps; the last feature moves to position j.
    fn merge(&mut self, i: usize, j: usize) {
        let v = self.covariance(j);
        // (1) Row j added to row i.
        let (column, row) = (self.column(i), self.times(&v, true));
        self.rank_one(&column, &row, 1.0 + row[i]);
        // (2) Column j, whose entry i now holds two, added to column i.
        let mut w = v.clone();
        w[i] += v[j];
        let (column, row) = (self.times(&w, false), self.row(i));
        self.rank_one(&column, &row, 1.0 + column[i]);
        // (3) Row and column j deleted.
        let (column, row) = (self.column(j), self.row(j));
        self.rank_one(&column, &row, column[j]);
        self.drop(j);
        // (4) δ² taken from the diagonal.
        let i = if i == self.n { j } else { i };
        let (column, row) = (self.column(i), self.row(i));
        self.rank_one(&column, &row, -1.0 / ALPHA + column[i]);
        for cells in self.train.iter_mut().chain(&mut self.held) {
            cells.iter_mut().filter(|f| **f == j).for_each(|f| *f = usize::MAX);
            cells.iter_mut().filter(|f| **f == self.n).for_each(|f| *f = j);
            cells.iter_mut().filter(|f| **f == usize::MAX).for_each(|f| *f = i);
        }
    }

    fn drop(&mut self, j: usize) {
        let (n, last) = (self.n, self.n - 1);
        let mut next = Vec::with_capacity(last * last);
        let place = |k: usize| if k == j { last } else { k };
        for c in 0..last {
            let column = &self.p[place(c) * n..][..n];
            let at = next.len();
            next.extend_from_slice(&column[..last]);
            if j < last {
                next[at + j] = column[last];
            }
        }
        (self.p, self.n) = (next, last);
    }

    /// θ = P(Zᵀy), and the root mean squared error on the validation rows.
    fn validation_error(&self, y: &[f64], y_held: &[f64]) -> f64 {
        let scale = 1.0 / (N_TREES as f64).sqrt();
        let mut b = vec![0.0; self.n];
        for (row, y) in self.train.iter().zip(y) {
            row.iter().for_each(|f| b[*f] += scale * y);
        }
        let theta = self.times(&b, false);
        let error = |(row, y): (&Vec<usize>, &f64)| (row.iter().map(|f| theta[*f]).sum::<f64>() * scale - y).powi(2);
        (self.held.iter().zip(y_held).map(error).sum::<f64>() / y_held.len() as f64).sqrt()
    }
}

/// Cells by row; a rider in no cell has none.
fn by_row(cells: &CellArray) -> Vec<Vec<usize>> {
    let seen = |row: &[u32]| row.iter().filter(|c| **c != UNSEEN).map(|c| *c as usize).collect();
    cells.to_row_major().chunks_exact(cells.n_trees()).map(seen).collect()
}

/// The pairs that merge as the lifetime falls from the model's, for `n` merges, in the twin's numbering, and the lifetime
/// just below the last of them.
fn merges(model: &KernelRidge, path: &RegularizationPath, n: usize) -> Result<(Vec<(usize, usize)>, Lifetime)> {
    let mut cells = model.features().training()?.to_row_major();
    let mut n_features = model.n_features();
    let mut found = Vec::new();
    let mut below = model.features().lifetime();
    for time in path.lifetimes().iter().rev() {
        if found.len() == n {
            break;
        }
        below = Lifetime::new(time.next_down().max(0.0))?;
        let now = model.features().at(below)?.training()?;
        if now.n_columns() == n_features {
            continue;
        }
        // The new cell that two cells were merged into.
        let mut names = vec![usize::MAX; now.n_columns()];
        let mut pair = None;
        for (old, new) in cells.iter().zip(now.to_row_major()) {
            let name = &mut names[new as usize];
            if *name == usize::MAX {
                *name = *old as usize;
            } else if *name != *old as usize {
                pair = Some(((*name).min(*old as usize), (*name).max(*old as usize)));
                break;
            }
        }
        let (i, j) = pair.expect("a feature fewer is a merge");
        n_features -= 1;
        for cell in &mut cells {
            if *cell as usize == j {
                *cell = i as u32;
            } else if *cell as usize == n_features {
                *cell = j as u32;
            }
        }
        found.push((i, j));
    }
    Ok((found, below))
}

/// Seconds per cut of the twin, and of one symmetric rank-two update at a time; their error is compared with the
/// path's.
fn twin(model: &KernelRidge, path: &RegularizationPath, train: &Data, held: &Data) -> Result<(f64, f64)> {
    let wide = model.widened_for(held.points()?)?;
    let (pairs, below) = merges(&wide, path, TWIN_CUTS)?;
    let z = wide.features().training()?;
    let n = z.n_columns();
    let mut gram = z.gram_lower(Threads::ONE);
    (0..n).for_each(|i| gram[(i, i)] += ALPHA);
    gram.mirror_lower();
    let p = Cholesky::new(gram.clone(), Threads::ONE)?.inverse().into_vec();
    let mean = train.y.iter().sum::<f64>() / train.y.len() as f64;
    let centred = |y: &[f64]| y.iter().map(|y| y - mean).collect::<Vec<f64>>();
    let (y, y_held) = (centred(&train.y), centred(&held.y));
    let mut plain = Plain { p, n, train: by_row(&z), held: by_row(&wide.features().cells(held.points()?)?) };
    let (error, seconds) = timed(|| {
        let mut error = f64::NAN;
        for &(i, j) in &pairs {
            plain.merge(i, j);
            error = plain.validation_error(&y, &y_held);
        }
        error
    });
    // Separated riders are not merged again in the twin, which is in its favour; its solution is compared on the
    // training rows.
    plain.held = plain.train.clone();
    let by_twin = plain.validation_error(&y, &y);
    let refit = wide.at(below)?;
    let fitted = refit.predict(train.points()?)?;
    let squares: f64 = train.y.iter().enumerate().map(|(row, y)| (fitted[(row, 0)] - y).powi(2)).sum();
    let apart = (by_twin - (squares / N_TRAIN as f64).sqrt()).abs();
    assert!(apart < 1e-8 && refit.n_features() == plain.n, "the twin solves another problem: {apart:.1e}");
    let mut one = Inverse::new(gram, Threads::ONE)?;
    let (done, collapsed) = timed(|| pairs.iter().try_for_each(|&(i, j)| one.merge(i, j, ALPHA).map(|_| ())));
    done?;
    println!("  {} cuts from C = {n}: {:.1} ms per cut [{error:.4}]", pairs.len(), 1e3 * seconds / pairs.len() as f64);
    Ok((seconds / pairs.len() as f64, collapsed / pairs.len() as f64))
}

/// Everything at one size.
fn compare(c: usize, train: &Data, held: &Data) -> Result<()> {
    let whole = model(train, c)?;
    let Measured { features, factor, fit, path, found } = measure(&whole, train, held, 3)?;
    println!("C = {features}, N = {N_TRAIN} + {N_VALIDATION}, M = {N_TREES}, {} values", found.len());
    println!("one Cholesky fit at the terminal lifetime: {fit:.3} s (the factorisation alone: {factor:.3} s)");
    println!(
        "path: {path:.3} s, {:.2} fits, {:.2} factorisations; worst residual {:e}, {} refreshes",
        path / fit,
        path / factor,
        found.worst_residual(),
        found.n_refreshes()
    );
    let half = model(train, c / 2)?;
    let half_path = half.path(&[(held.points()?, &held.y)], &PathMethod::Removal, &mut Progress::none())?;
    println!("the report's four steps, one cut at a time:");
    let (at_c, one_at_c) = twin(&whole, &found, train, held)?;
    let (at_half, one_at_half) = twin(&half, &half_path, train, held)?;
    let cuts = (features - N_TREES) as f64;
    let total = cuts / 6.0 * (at_c + 4.0 * at_half);
    let one = cuts / 6.0 * (one_at_c + 4.0 * one_at_half);
    println!("  all {cuts} cuts, scaled: {total:.1} s, {:.1} times the path", total / path);
    println!("one symmetric rank-two update at a time (no predictions), scaled: {one:.1} s, {:.1} times", one / path);
    Ok(())
}

fn run() -> Result<()> {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let (train, held) = (Data::new(N_TRAIN, 1), Data::new(N_VALIDATION, 2));
    if sizes.is_empty() {
        compare(3000, &train, &held)?;
    }
    let sizes = if sizes.is_empty() { vec![500, 1000, 2000, 4000, 8000] } else { sizes };
    println!("| C | fit s | path s | ratio | exponent |\n| ---: | ---: | ---: | ---: | ---: |");
    let mut before: Option<(f64, f64)> = None;
    for c in sizes {
        let model = model(&train, c)?;
        let found = measure(&model, &train, &held, if c > 4000 { 1 } else { 2 })?;
        let now = (found.features as f64, found.path);
        let exponent = before.map_or(String::new(), |b| format!("{:.2}", (now.1 / b.1).ln() / (now.0 / b.0).ln()));
        println!(
            "| {} | {:.3} | {:.3} | {:.2} | {exponent} |",
            found.features,
            found.fit,
            found.path,
            found.path / found.fit
        );
        before = Some(now);
    }
    Ok(())
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    // All parallel parts on one worker, so that its processor time is the whole time.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    pool.install(run)?;
    Ok(())
}
