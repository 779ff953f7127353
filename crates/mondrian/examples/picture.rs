//! Samples a Mondrian process and writes four pictures of it into the folder given (default: the current one).
//!
//! `cargo run --release -p mondrian --example picture -- /tmp`

use std::path::PathBuf;

use mondrian::Lifetime;
use mondrian::process::{Partition, Picture};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned()));
    let seed: u64 = std::env::args().nth(2).map_or(Ok(1), |seed| seed.parse())?;

    let plane = Partition::sample(&[0.0, 0.0], &[1.2, 1.0], Lifetime::new(4.5)?, seed)?;
    std::fs::write(folder.join("painted.svg"), Picture::new().paint(true).svg(&plane)?)?;
    std::fs::write(folder.join("times.svg"), Picture::new().times(true).svg(&plane)?)?;

    let line = Partition::sample(&[0.0], &[3.0], Lifetime::new(4.0)?, seed)?;
    std::fs::write(folder.join("line.svg"), Picture::new().times(true).svg(&line)?)?;

    let space = Partition::sample(&[0.0; 4], &[1.0; 4], Lifetime::new(9.0)?, seed)?;
    std::fs::write(folder.join("slice.svg"), Picture::new().axes(0, 3).svg(&space)?)?;
    Ok(())
}
