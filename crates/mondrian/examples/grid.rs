//! A lifetime per dimension, found by moving the cuts of Mondrian grids: an irrelevant input gets a small one.

use mondrian::{GridRidge, Points, Result};

pub(crate) fn main() -> Result<()> {
    let x: Vec<[f64; 2]> = (0..200).map(|i| [f64::from(i) / 200.0, f64::from(i * 83 % 200) / 200.0]).collect();
    let y: Vec<f64> = x.iter().map(|[a, _]| (9.0 * a).sin()).collect();
    let model = GridRidge::params().fit(Points::of_rows(&x)?, &y)?;
    println!("lifetimes {:.2?}", model.lifetimes());
    assert_eq!(model.ranking()[0], 0);
    Ok(())
}
