//! Exact Laplace ridge against its definition, refits and closed forms.

use mondrian::Matrix;
use mondrian::internals::linalg::{Cholesky, Threads};
use mondrian::{Error, Lifetime};
use mondrian::{LaplaceKernel, LaplaceRidge};

use super::{normals, points, uniforms, worst};

fn kernel(lifetimes: &[f64]) -> LaplaceKernel {
    let lifetimes: Vec<Lifetime> = lifetimes.iter().map(|l| Lifetime::new(*l).unwrap()).collect();
    LaplaceKernel::per_dimension(&lifetimes).unwrap()
}

fn by_definition(k: &LaplaceKernel, x: &[f64], d: usize, y: &[f64], alpha: f64, query: &[f64]) -> Vec<f64> {
    let lifetimes = k.lifetimes(d).unwrap();
    let value = |a: &[f64], b: &[f64]| {
        (-a.iter().zip(b).zip(&lifetimes).map(|((a, b), l)| l * (a - b).abs()).sum::<f64>()).exp()
    };
    let rows: Vec<&[f64]> = x.chunks(d).collect();
    let n = rows.len();
    let a = Matrix::from_fn(n, n, |i, j| value(rows[i], rows[j]) + if i == j { alpha } else { 0.0 });
    let c = Cholesky::new(a, Threads::ONE).unwrap().solve(y).unwrap();
    query.chunks(d).map(|q| rows.iter().zip(&c).map(|(r, c)| c * value(q, r)).sum()).collect()
}

#[test]
fn predictions_are_the_reports_formula() {
    let (x, y, q) = (uniforms(1, 180), normals(2, 60), uniforms(3, 900));
    let k = kernel(&[0.5, 3.0, 1.0]);
    let expected = by_definition(&k, &x, 3, &y, 0.2, &q);
    for threads in [Threads::ONE, Threads::up_to(2)] {
        let params = LaplaceRidge::params(k.clone()).alpha(0.2).fit_intercept(false).threads(threads);
        let model = params.fit(points(&x, 3), &y).unwrap();
        assert!(worst(model.predict(points(&q, 3)).unwrap().as_slice(), &expected) < 1e-12);
    }
    // With an intercept: the formula for centred targets, plus the mean.
    let mean = y.iter().sum::<f64>() / 60.0;
    let centred: Vec<f64> = y.iter().map(|y| y - mean).collect();
    let expected: Vec<f64> = by_definition(&k, &x, 3, &centred, 0.2, &q).iter().map(|p| p + mean).collect();
    let model = LaplaceRidge::params(k).alpha(0.2).fit(points(&x, 3), &y).unwrap();
    assert!(worst(model.predict(points(&q, 3)).unwrap().as_slice(), &expected) < 1e-12);
}

#[test]
fn several_targets_are_several_fits() {
    let (x, y) = (uniforms(4, 80), Matrix::from_column_major(normals(5, 120), 40, 3).unwrap());
    let params = LaplaceRidge::params(kernel(&[1.0, 2.0])).alpha(0.1);
    let together = params.fit_many(points(&x, 2), y.view()).unwrap();
    let (predicted, variance) = (together.predict(points(&x, 2)).unwrap(), together.predict_variance(points(&x, 2)));
    for t in 0..3 {
        let alone = params.fit(points(&x, 2), y.column(t)).unwrap();
        assert!(worst(predicted.column(t), alone.predict(points(&x, 2)).unwrap().as_slice()) < 1e-12);
        let alone_variance = alone.predict_variance(points(&x, 2)).unwrap();
        assert!(worst(variance.as_ref().unwrap().column(t), alone_variance.as_slice()) < 1e-12);
        assert!((together.leave_one_out_rmse().unwrap()[t] - alone.leave_one_out_rmse().unwrap()[0]).abs() < 1e-12);
    }
}

#[test]
fn leave_one_out_is_leaving_one_out() {
    let (x, y) = (uniforms(6, 50), normals(7, 25));
    for intercept in [false, true] {
        let params = LaplaceRidge::params(kernel(&[2.0, 1.0])).alpha(0.3).fit_intercept(intercept);
        let closed = params.fit(points(&x, 2), &y).unwrap().leave_one_out_residuals().unwrap();
        for i in 0..25 {
            let rest_x: Vec<f64> =
                x.chunks(2).enumerate().filter(|(k, _)| *k != i).flat_map(|(_, r)| r.to_vec()).collect();
            let rest_y: Vec<f64> = y.iter().enumerate().filter(|(k, _)| *k != i).map(|(_, y)| *y).collect();
            let model = params.fit(points(&rest_x, 2), &rest_y).unwrap();
            let slow = y[i] - model.predict(points(&x[2 * i..2 * i + 2], 2)).unwrap()[(0, 0)];
            assert!((closed[(i, 0)] - slow).abs() < 1e-11, "row {i}: {} {slow}", closed[(i, 0)]);
        }
    }
}

#[test]
fn equivalent_kernel_and_degrees_of_freedom() {
    let (x, y, q) = (uniforms(8, 60), normals(9, 30), uniforms(10, 20));
    for intercept in [false, true] {
        let params = LaplaceRidge::params(kernel(&[2.0, 1.0])).alpha(0.3).fit_intercept(intercept);
        let model = params.fit(points(&x, 2), &y).unwrap();
        let smoother = model.equivalent_kernel(points(&q, 2)).unwrap();
        let predicted = model.predict(points(&q, 2)).unwrap();
        for i in 0..10 {
            let sum: f64 = (0..30).map(|j| smoother[(i, j)] * y[j]).sum();
            assert!((sum - predicted[(i, 0)]).abs() < 1e-12);
            let weights: f64 = (0..30).map(|j| smoother[(i, j)]).sum();
            assert!(!intercept || (weights - 1.0).abs() < 1e-12, "with an intercept constants are kept");
        }
        let hat = model.equivalent_kernel(points(&x, 2)).unwrap();
        let trace: f64 = (0..30).map(|i| hat[(i, i)]).sum();
        assert!((trace - model.degrees_of_freedom().unwrap()).abs() < 1e-10);
    }
}

#[test]
fn variance_is_the_gaussian_process() {
    let (x, y, alpha) = (uniforms(11, 24), normals(12, 24), 0.2);
    let k = kernel(&[3.0]);
    let model = LaplaceRidge::params(k.clone()).alpha(alpha).fit_intercept(false).fit(points(&x, 1), &y).unwrap();
    let gram = k.gram(points(&x, 1), Threads::ONE).unwrap();
    let a = Matrix::from_fn(24, 24, |i, j| gram[(i, j)] + if i == j { alpha } else { 0.0 });
    let factor = Cholesky::new(a, Threads::ONE).unwrap();
    let prior = factor.solve(&y).unwrap().iter().zip(&y).map(|(c, y)| c * y).sum::<f64>() / 24.0;
    assert!((model.prior_variances()[0] - prior).abs() < 1e-13);
    let q = [0.5, 40.0];
    let found = model.predict_variance(points(&q, 1)).unwrap();
    for (i, q) in q.iter().enumerate() {
        let kq: Vec<f64> = x.iter().map(|x| (-3.0 * (x - q).abs()).exp()).collect();
        let explained: f64 = factor.solve(&kq).unwrap().iter().zip(&kq).map(|(s, k)| s * k).sum();
        assert!((found[(i, 0)] - prior * (1.0 + alpha - explained)).abs() < 1e-13);
    }
    assert!((found[(1, 0)] - prior - model.noise_variances()[0]).abs() < 1e-12, "far away: prior and noise");
}

#[test]
fn no_regularisation_interpolates_or_is_refused() {
    let y = [1.0, -2.0, 0.5];
    let params = LaplaceRidge::params(kernel(&[1.0])).alpha(0.0);
    let model = params.fit(points(&[0.0, 1.0, 3.0], 1), &y).unwrap();
    assert!(worst(model.predict(points(&[0.0, 1.0, 3.0], 1)).unwrap().as_slice(), &y) < 1e-12);
    let twice = params.fit(points(&[0.0, 1.0, 1.0], 1), &y);
    assert!(matches!(twice, Err(Error::NotPositiveDefinite { row: 2 })));
    assert!(matches!(
        LaplaceRidge::params(kernel(&[1.0])).alpha(-1.0).fit(points(&[0.0], 1), &[1.0]),
        Err(Error::InvalidParameter { name: "alpha", .. })
    ));
    assert!(matches!(
        params.fit(points(&[0.0, 1.0], 1), &[1.0]),
        Err(Error::LengthMismatch { what: "targets", expected: 2, found: 1 })
    ));
    assert!(matches!(
        params.fit(points(&[0.0, 1.0], 1), &[1.0, f64::NAN]),
        Err(Error::NotFinite { what: "y", row: 1, column: 0, .. })
    ));
    assert!(model.predict(points(&[0.0, 1.0], 2)).is_err());
}
