//! Iris setosa as the density experiments take it: fifty flowers, every fifth held out, one box around all.

use anyhow::Result;
use mondrian::{DensityForest, DensityParams, GammaChoice};
use mondrian::{ForestParams, LifetimeChoice};
use mondrian::{Lifetime, Points};

use crate::context::Context;

/// The flowers are the first rows of the table.
const N_ROWS: usize = 50;
/// Inputs.
pub(crate) const D: usize = 4;
/// Trees, as in the report.
pub(crate) const N_TREES: usize = 200;
/// Weight of the prior, which the report does not state: what the automatic choice finds on these rows.
pub(crate) const GAMMA: f64 = 1e-3;

/// One way of holding out a fifth.
pub(crate) struct Fold {
    all: Vec<f64>,
    pub(crate) train: Vec<f64>,
    pub(crate) test: Vec<f64>,
}

impl Fold {
    /// Holds out the rows whose number leaves the remainder `number` by five.
    pub(crate) fn new(context: &Context, number: usize) -> Result<Self> {
        let table = context.table("iris")?;
        let all = table.x[..N_ROWS * D].to_vec();
        let part = |test: bool| -> Vec<f64> {
            let rows = all.chunks_exact(D).enumerate().filter(|(row, _)| (row % 5 == number) == test);
            rows.flat_map(|(_, x)| x.to_vec()).collect()
        };
        let (train, test) = (part(false), part(true));
        Ok(Self { all, train, test })
    }

    /// A density of the training rows on the box around all rows, so that no test row lies outside.
    pub(crate) fn fit(&self, n_trees: usize, lifetime: f64, seed: u64) -> Result<DensityForest> {
        let lifetime = LifetimeChoice::Value(Lifetime::new(lifetime)?);
        let forest = ForestParams { n_trees, lifetime, seed, ..ForestParams::default() };
        let mut params = DensityParams { gamma: GammaChoice::Value(GAMMA), ..DensityParams::from(forest) };
        params.forest.bounds = Some(params.bounds_on(Points::row_major(&self.all, D)?)?);
        Ok(params.fit(Points::row_major(&self.train, D)?)?)
    }

    pub(crate) fn train(&self) -> Result<Points<'_>> {
        Ok(Points::row_major(&self.train, D)?)
    }

    pub(crate) fn test(&self) -> Result<Points<'_>> {
        Ok(Points::row_major(&self.test, D)?)
    }
}
