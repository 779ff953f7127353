//! Ridge on features: three solvers, one answer.

use mondrian::Error;
use mondrian::Matrix;
use mondrian::internals::features::{CellArray, Design, UNSEEN};
use mondrian::internals::ridge::CgOptions;
use mondrian::internals::ridge::{Solver, conjugate_gradients};
use mondrian::{FeatureRidge, Features};

use super::{normals, uniforms, worst};

const CG: Solver = Solver::ConjugateGradients;
/// Conjugate gradients to rounding, to compare them with factors.
const TOLERANCE: f64 = 1e-13;

/// Cells made up: `per_tree` cells a tree, each used at least once if there are rows enough.
fn made_up(seed: u64, n_rows: usize, n_trees: usize, per_tree: usize) -> CellArray {
    let random = uniforms(seed, n_rows * n_trees);
    let cell = |k: usize| (k / n_rows * per_tree) as u32 + (random[k] * per_tree as f64) as u32;
    CellArray::new((0..n_rows * n_trees).map(cell).collect(), n_rows, n_trees, n_trees * per_tree).unwrap()
}

/// The matrix that a cell array stands for.
fn dense(cells: &CellArray) -> Matrix {
    let mut out = Matrix::zeros(cells.n_rows(), cells.n_columns());
    for i in 0..cells.n_rows() {
        cells.row(i).for_each(|(c, v)| out[(i, c as usize)] += v);
    }
    out
}

#[test]
fn a_cell_array_is_the_matrix_it_stands_for() {
    let plain = made_up(1, 2500, 5, 7);
    let with_gaps = {
        let cells = (0..60).map(|k| if k % 7 == 3 { UNSEEN } else { k / 20 * 4 + k % 4 }).collect();
        CellArray::new(cells, 20, 3, 12).unwrap().with_factors(uniforms(2, 60)).unwrap()
    };
    for cells in [plain, with_gaps] {
        let z = dense(&cells);
        let (n, c) = (cells.n_rows(), cells.n_columns());
        let (theta, v) = (normals(3, c), normals(4, n));
        let (mut a, mut b) = (vec![0.0; n], vec![0.0; n]);
        cells.multiply(&theta, &mut a);
        z.multiply(&theta, &mut b);
        assert!(worst(&a, &b) < 1e-11);
        let (mut a, mut b) = (vec![0.0; c], vec![0.0; c]);
        cells.multiply_transposed(&v, &mut a);
        z.multiply_transposed(&v, &mut b);
        assert!(worst(&a, &b) < 1e-11);
        cells.normal(&theta, &mut a);
        z.normal(&theta, &mut b);
        assert!(worst(&a, &b) < 1e-9);
        assert!(worst(&cells.column_squares(), &z.column_squares()) < 1e-11);
        let one = mondrian::internals::linalg::Threads::ONE;
        assert!(worst(cells.gram_lower(one).as_slice(), z.gram_lower(one).as_slice()) < 1e-10);
        assert!(worst(cells.dual_gram_lower(one).as_slice(), z.dual_gram_lower(one).as_slice()) < 1e-12);
        let csr = cells.to_csr();
        let mut from_csr = Matrix::zeros(n, c);
        for i in 0..n {
            for k in csr.indptr[i] as usize..csr.indptr[i + 1] as usize {
                from_csr[(i, csr.indices[k] as usize)] += csr.data[k];
            }
        }
        assert!(worst(from_csr.as_slice(), z.as_slice()) < 1e-15);
        assert_eq!(cells.to_row_major()[cells.n_trees()], cells.tree(0)[1]);
    }
}

#[test]
fn all_solvers_agree() {
    // rows, trees, cells a tree: more cells than rows, fewer, one tree, one point, one cell.
    let shapes = [(40, 30, 6), (300, 8, 5), (100, 1, 9), (1, 4, 1), (1, 1, 1), (20, 3, 1), (24, 20, 22)];
    for (k, (n_rows, n_trees, per_tree)) in shapes.into_iter().enumerate() {
        let mut cells = made_up(10 + k as u64, n_rows, n_trees, per_tree);
        if k == 1 {
            // Duplicate rows, and unseen cells among the training ones.
            let copies = (0..n_trees).flat_map(|m| {
                let tree = cells.tree(m).to_vec();
                (0..n_rows).map(move |i| if i == 5 { UNSEEN } else { tree[i / 2] })
            });
            cells = CellArray::new(copies.collect(), n_rows, n_trees, cells.n_columns()).unwrap();
        }
        let y = Matrix::from_column_major(normals(30 + k as u64, 2 * n_rows), n_rows, 2).unwrap();
        for (alpha, intercept) in [(1.0, true), (1e-3, false)] {
            let params = FeatureRidge::params().alpha(alpha).fit_intercept(intercept);
            let fit = |solver: Solver, z: Features| {
                params.clone().solver(solver).tolerance(TOLERANCE).fit(z, y.transposed().as_slice()).unwrap()
            };
            let z: Features = cells.clone().into();
            let reference = fit(Solver::Primal, dense(&cells).into());
            let expected = reference.predict(&dense(&cells).into()).unwrap();
            let spread = reference.predict_variance(&dense(&cells).into()).unwrap();
            for solver in [Solver::Primal, Solver::Dual, CG, Solver::Auto] {
                let model = fit(solver, z.clone());
                let found = model.predict(&z).unwrap();
                assert!(worst(found.as_slice(), expected.as_slice()) < 1e-8, "{solver:?} on shape {k}");
                assert!(model.report().residuals.iter().all(|r| *r < 1e-8), "{:?}", model.report());
                let variance = model.predict_variance(&z).unwrap();
                assert!(worst(variance.as_slice(), spread.as_slice()) < 1e-8, "{solver:?} on shape {k}");
                let degrees = model.degrees_of_freedom().unwrap();
                assert!((degrees - reference.degrees_of_freedom().unwrap()).abs() < 1e-7, "{solver:?} on shape {k}");
            }
        }
    }
}

#[test]
fn it_is_a_linear_smoother() {
    let (cells, y) = (made_up(50, 60, 10, 4), normals(51, 60));
    for intercept in [true, false] {
        for solver in [Solver::Primal, Solver::Dual, CG] {
            let params = FeatureRidge::params().alpha(0.4).fit_intercept(intercept).solver(solver).tolerance(TOLERANCE);
            let z: Features = cells.clone().into();
            let model = params.fit(z.clone(), &y).unwrap();
            let (smoother, fitted) = (model.equivalent_kernel(&z).unwrap(), model.predict(&z).unwrap());
            let slow: Vec<f64> = (0..60).map(|i| (0..60).map(|j| smoother[(i, j)] * y[j]).sum()).collect();
            assert!(worst(&slow, fitted.as_slice()) < 1e-9);
            let trace: f64 = (0..60).map(|i| smoother[(i, i)]).sum();
            assert!((trace - model.degrees_of_freedom().unwrap()).abs() < 1e-8);
        }
    }
}

#[test]
fn a_warm_start_saves_steps_and_gives_the_same() {
    let cells = made_up(60, 500, 20, 30);
    let mut b = vec![0.0; cells.n_columns()];
    cells.multiply_transposed(&normals(61, 500), &mut b);
    let options = CgOptions { tolerance: 1e-12, max_steps: 1000 };
    let cold = conjugate_gradients(&cells, 0.1, &b, None, options);
    let near = conjugate_gradients(&cells, 0.11, &b, None, options);
    let warm = conjugate_gradients(&cells, 0.1, &b, Some(&near.solution), options);
    assert!(warm.steps < cold.steps && worst(&warm.solution, &cold.solution) < 1e-8);
    let again = conjugate_gradients(&cells, 0.1, &b, Some(&cold.solution), CgOptions { tolerance: 1e-9, ..options });
    assert_eq!(again.steps, 0);
    let stopped = conjugate_gradients(&cells, 0.1, &b, None, CgOptions { max_steps: 3, ..options });
    assert!(stopped.steps == 3 && stopped.residual > 1e-9);
}

#[test]
fn the_cheapest_solver_that_fits_is_taken() {
    let choose = |n_rows, n_trees, per_tree, limit: f64| {
        let params = FeatureRidge::params().memory_limit(limit);
        let z = made_up(70, n_rows, n_trees, per_tree).into();
        params.fit(z, &normals(71, n_rows)).unwrap().report().solver
    };
    assert_eq!(choose(3000, 10, 5, 1e9), Solver::Primal);
    assert_eq!(choose(60, 60, 55, 1e9), Solver::Dual);
    assert!(matches!(choose(3000, 10, 5, 1e3), Solver::ConjugateGradients));
}

#[test]
fn refuses_with_a_reason() {
    let z: Features = made_up(80, 10, 2, 2).into();
    let y = normals(81, 10);
    for alpha in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let refused = FeatureRidge::params().alpha(alpha).fit(z.clone(), &y).unwrap_err();
        assert!(matches!(refused, Error::InvalidParameter { name: "alpha", .. }), "{refused}");
    }
    assert!(matches!(FeatureRidge::params().fit(z.clone(), &y[..9]), Err(Error::LengthMismatch { found: 9, .. })));
    let model = FeatureRidge::params().fit(z, &y).unwrap();
    let narrow = CellArray::new(vec![0], 1, 1, 1).unwrap();
    assert!(matches!(model.predict(&narrow.into()), Err(Error::LengthMismatch { expected: 4, found: 1, .. })));
    assert!(matches!(CellArray::new(vec![3], 1, 1, 3), Err(Error::InvalidParameter { .. })));
    assert!(matches!(CellArray::new(vec![0; 5], 2, 2, 3), Err(Error::LengthMismatch { .. })));
    let factors = CellArray::new(vec![0], 1, 1, 1).unwrap().with_factors(vec![f64::NAN]);
    assert!(matches!(factors, Err(Error::NotFinite { .. })));
}
