//! Feature maps: rows per second and tree, learning and transforming, on one thread of this machine at a time.
//!
//! `RAYON_NUM_THREADS=1 kernel_transform`: 100 000 points uniform on [0, 1]^D, 20 trees, columns named in the output.

use mondrian::ForestParams;
use mondrian::LaplaceKernel;
use mondrian::process::NodeKey;
use mondrian::{FeatureMap, MondrianFeatures, RandomBinning, RandomFourier};
use mondrian::{Lifetime, Points};
use mondrian_benches::timed;

const N: usize = 100_000;
const TREES: usize = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("| map | D | lifetime | columns | learn, rows/s/tree | transform, rows/s/tree |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    for (n_dims, lifetime) in [(2, 20.0), (10, 2.0), (20, 0.5)] {
        let uniform =
            |seed| -> Vec<f64> { (0..(N * n_dims) as u64).map(|k| NodeKey::root(seed, k).draw(0).uniform()).collect() };
        let (x, q) = (uniform(1), uniform(2));
        let kernel = LaplaceKernel::new(Lifetime::new(lifetime)?)?;
        let params = ForestParams { n_trees: TREES, ..ForestParams::default() };
        let points = Points::row_major(&x, n_dims)?;
        let mut trees = MondrianFeatures::on(&params, points, Lifetime::new(lifetime)?)?;
        let mut binning = RandomBinning::new(&kernel, n_dims, TREES, 0)?;
        let mut fourier = RandomFourier::new(&kernel, n_dims, 2 * TREES, 0)?;
        measure("Mondrian", lifetime, &mut trees, points, &q)?;
        measure("binning", lifetime, &mut binning, points, &q)?;
        measure("Fourier (a frequency)", lifetime, &mut fourier, points, &q)?;
    }
    Ok(())
}

fn measure(
    name: &str,
    lifetime: f64,
    map: &mut dyn FeatureMap,
    points: Points<'_>,
    queries: &[f64],
) -> mondrian::Result<()> {
    let (learned, learning) = timed(|| map.learn(points));
    learned?;
    let queries = Points::row_major(queries, points.n_columns())?;
    let (transformed, transforming) = timed(|| map.transform(queries));
    transformed?;
    let rate = |seconds: f64| (N * TREES) as f64 / seconds;
    println!(
        "| {name} | {} | {lifetime} | {} | {:.2e} | {:.2e} |",
        points.n_columns(),
        map.n_columns(),
        rate(learning),
        rate(transforming)
    );
    Ok(())
}
