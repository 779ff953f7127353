//! The Mondrian process as a type: sample it, restrict it, run it on, and find the cell of a point.

use mondrian::process::Partition;
use mondrian::{Lifetime, Result};

pub(crate) fn main() -> Result<()> {
    let partition = Partition::sample(&[0.0, 0.0], &[1.0, 1.0], Lifetime::new(5.0)?, 1)?;
    let coarse = partition.at(Lifetime::new(2.0)?)?;
    println!("{} cells at lifetime 5, {} at lifetime 2", partition.n_cells(), coarse.n_cells());
    assert!(coarse.n_cells() <= partition.n_cells());
    Ok(())
}
