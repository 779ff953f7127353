//! Exact Laplace ridge: seconds to fit and to predict.
//!
//! `kernel_exact FOLDER D LIFETIME ALPHA [THREADS]` reads x.f64, y.f64 and q.f64 (raw little-endian numbers,
//! row-major), fits without an intercept, writes p.f64 and prints the processor seconds of fit and prediction.
//! `kernel_exact_vs_sklearn.py` beside this crate's manifest calls it and compares.

use std::path::Path;

use mondrian::internals::linalg::Threads;
use mondrian::{LaplaceKernel, LaplaceRidge};
use mondrian::{Lifetime, Points};
use mondrian_benches::timed_on_processor as timed;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, dims, lifetime, alpha, rest @ ..] = arguments.as_slice() else {
        return Err("usage: kernel_exact FOLDER D LIFETIME ALPHA [THREADS]".into());
    };
    let (folder, n_dims) = (Path::new(folder), dims.parse()?);
    let threads = Threads::up_to(rest.first().map_or(Ok(1), |t| t.parse())?);
    let (x, y, q) = (numbers(&folder.join("x.f64"))?, numbers(&folder.join("y.f64"))?, numbers(&folder.join("q.f64"))?);
    let kernel = LaplaceKernel::new(Lifetime::new(lifetime.parse()?)?)?;
    let params = LaplaceRidge::params(kernel).alpha(alpha.parse()?).fit_intercept(false).threads(threads);
    let (model, fit) = timed(|| params.fit(Points::row_major(&x, n_dims)?, &y));
    let model = model?;
    let queries = Points::row_major(&q, n_dims)?;
    let (predicted, predict) = timed(|| model.predict(queries));
    let bytes: Vec<u8> = predicted?.as_slice().iter().flat_map(|p| p.to_le_bytes()).collect();
    std::fs::write(folder.join("p.f64"), bytes)?;
    println!("{fit} {predict}");
    Ok(())
}

fn numbers(path: &Path) -> std::io::Result<Vec<f64>> {
    let bytes = std::fs::read(path)?;
    let (chunks, _) = bytes.as_chunks::<8>();
    Ok(chunks.iter().map(|c| f64::from_le_bytes(*c)).collect())
}
