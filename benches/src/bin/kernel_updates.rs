//! Updating an inverse: merges one at a time against merges in blocks, and against one factorisation.
//!
//! `kernel_updates [N]`, by default 2000 features: all pairs of neighbours merged, N/2 merges, one thread.

use mondrian::Matrix;
use mondrian::internals::linalg::{Cholesky, DeferredInverse, Inverse, Threads};
use mondrian_benches::timed_on_processor as timed;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let n: usize = std::env::args().nth(1).map_or(Ok(2000), |a| a.parse())?;
    let a = Matrix::from_fn(n, n, |i, j| (-0.1 * i.abs_diff(j) as f64).exp() + if i == j { 1.0 } else { 0.0 });
    let (factor, factoring) = timed(|| Cholesky::new(a.clone(), Threads::ONE));
    let (p, inverting) = timed(|| factor.map(|f| f.inverse()));
    let p = p?;
    println!("kernel_updates/n={n}: factor {factoring:.3} s, inverse from it {inverting:.3} s");
    let merges = n / 2;
    let mut now = Inverse::new(a, Threads::ONE)?;
    let (done, seconds) = timed(|| (0..merges.min(200)).try_for_each(|k| now.merge(k, n - 2 * k - 1, 1.0).map(|_| ())));
    done?;
    println!("  one at a time: {:.1} µs a merge ({:?})", 1e6 * seconds / merges.min(200) as f64, now.drift());
    for block in [16, 32, 64, 128, 256] {
        let mut later = DeferredInverse::new(p.clone(), block, Threads::ONE)?;
        let (done, seconds) = timed(|| {
            (0..merges).try_for_each(|k| {
                let last = later.n_rows() - 1;
                later.merge(k % (last / 2 + 1), last, 1.0).map(|_| ())
            })
        });
        done?;
        println!(
            "  in blocks of {block}: {:.1} µs a merge, all in {:.2} factorisations",
            1e6 * seconds / merges as f64,
            seconds / factoring
        );
    }
    Ok(())
}
