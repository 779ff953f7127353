//! The Laplace kernel, its features, ridge regression, and the dense algebra under them.

mod dense;
mod exact;
mod features;
mod ridge;

use mondrian::Points;
use mondrian::process::NodeKey;

/// Keyed uniform numbers of [0, 1).
fn uniforms(seed: u64, n: usize) -> Vec<f64> {
    (0..n).map(|k| NodeKey::root(seed, k as u64).draw(0).uniform()).collect()
}

/// Keyed standard normal numbers.
fn normals(seed: u64, n: usize) -> Vec<f64> {
    (0..n).map(|k| NodeKey::root(seed, k as u64).draw(1).normal()).collect()
}

fn points(data: &[f64], n_dims: usize) -> Points<'_> {
    Points::row_major(data, n_dims).unwrap()
}

fn worst(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}
