//! Exact moments of rows: what a domain is made of, in one pass that any number of machines share.

use crate::forest::density::DensityParams;
use crate::forest::regression::fixed::mean_and_variance;
use crate::forest::summary::TrainingDomain;
use crate::forest::summary::domain::check_lifetime;
use crate::forest::summary::exact_sum::ExactSum;
use crate::forest::summary::sample::BottomRows;
use crate::forest::{ForestParams, LifetimeChoice, MeasureChoice, WeightsChoice};
use crate::points::first_not_finite;
use crate::process::{Bounds, BuiltInMeasure, Measure, NodeKey, QuantileMeasure, Weights};
use crate::select::split::row_key;
use crate::simd::vectorise;
use crate::tree::{Domain, PointStore, Tree};
use crate::{Error, Lifetime, Points, Result};

/// Rows of smallest hash that are kept, and trees grown on them for an automatic lifetime.
const SAMPLE_ROWS: usize = 2048;
const SAMPLE_TREES: usize = 8;
/// Rows that are looked at together, column by column.
const AT_ONCE: usize = 512;
/// A deviation at the level of rounding is a constant column.
const CONSTANT: f64 = 1e-14;

/// One column: range, and sums that do not depend on the order of rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ColumnMoments {
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) sum: ExactSum,
    pub(crate) squares: ExactSum,
}

impl ColumnMoments {
    fn empty() -> Self {
        Self { min: f64::INFINITY, max: f64::NEG_INFINITY, sum: ExactSum::default(), squares: ExactSum::default() }
    }

    fn add(&mut self, values: &[f64]) {
        let (min, max) = range_of(values);
        (self.min, self.max) = (self.min.min(min) + 0.0, self.max.max(max) + 0.0);
        self.sum.add_all(values);
        self.squares.add_squares(values);
    }

    fn merge(&mut self, other: &Self) {
        (self.min, self.max) = (self.min.min(other.min), self.max.max(other.max));
        self.sum.merge(&other.sum);
        self.squares.merge(&other.squares);
    }
}

/// The least and the greatest number, in eight strands.
fn range_of(values: &[f64]) -> (f64, f64) {
    let (least, greatest) = vectorise(
        #[inline(always)]
        || {
            let (mut least, mut greatest) = ([f64::INFINITY; 8], [f64::NEG_INFINITY; 8]);
            let (chunks, rest) = values.as_chunks::<8>();
            for chunk in chunks {
                for k in 0..8 {
                    least[k] = if chunk[k] < least[k] { chunk[k] } else { least[k] };
                    greatest[k] = if chunk[k] > greatest[k] { chunk[k] } else { greatest[k] };
                }
            }
            rest.iter().for_each(|x| (least[0], greatest[0]) = (least[0].min(*x), greatest[0].max(*x)));
            (least, greatest)
        },
    );
    (least.into_iter().fold(f64::INFINITY, f64::min), greatest.into_iter().fold(f64::NEG_INFINITY, f64::max))
}

/// Number, range, exact Σx and Σx² of all columns, and a keyed sample: of the rows of a table, or of all tables whose moments
/// were merged, whatever the parts and their order.
///
/// ```
/// use mondrian::{ForestParams, Lifetime, Moments, Points};
/// let (x, y) = ([0.0, 3.0, 1.0, 2.0], [1.0, 4.0, 2.0, 3.0]);
/// let mut moments = Moments::new(Points::row_major(&x[..1], 1)?, &y[..1])?;
/// moments.merge(&Moments::new(Points::row_major(&x[1..], 1)?, &y[1..])?)?;
/// assert_eq!(moments, Moments::new(Points::row_major(&x, 1)?, &y)?);
/// let domain = moments.domain(&ForestParams::default().lifetime(Lifetime::new(2.0)?))?;
/// assert_eq!(domain.bounds()?.upper(), [3.0]);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    pub(crate) n_rows: u64,
    pub(crate) inputs: Vec<ColumnMoments>,
    pub(crate) targets: Vec<ColumnMoments>,
    /// Inputs and targets of some rows.
    pub(crate) sample: BottomRows,
}

impl Moments {
    /// The moments of rows; targets are row-major, the same number for each row, or none.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::LengthMismatch`], [`Error::NotFinite`].
    pub fn new(points: Points<'_>, targets: &[f64]) -> Result<Self> {
        Self::with_sample(points, targets, SAMPLE_ROWS)
    }

    /// As [`Moments::new`], with a sample of so many rows, which all parts must share.
    ///
    /// # Errors
    /// As [`Moments::new`].
    pub fn with_sample(points: Points<'_>, targets: &[f64], n_sample: usize) -> Result<Self> {
        let (n, n_dims) = (points.n_rows(), points.n_columns());
        if n == 0 {
            return Err(Error::Empty { what: "X", rows: 0, columns: n_dims });
        }
        if !targets.len().is_multiple_of(n) {
            return Err(Error::LengthMismatch { what: "targets", expected: n, found: targets.len() });
        }
        let t = targets.len() / n;
        if let Some(at) = first_not_finite(targets) {
            return Err(Error::NotFinite { what: "y", row: at / t, column: at % t, value: targets[at] });
        }
        let mut sample = BottomRows::new(n_sample);
        let root = NodeKey::root(0, u64::from_le_bytes(*b"moments "));
        let (mut inputs, mut outputs) = (vec![ColumnMoments::empty(); n_dims], vec![ColumnMoments::empty(); t]);
        // In blocks that stay in cache while their columns are looked at in turn. So the keys of many rows are extended together,
        // which takes a third of the time of one row's after the other: each waits for its last number.
        let (mut keys, mut values) = (Vec::with_capacity(AT_ONCE), Vec::with_capacity(AT_ONCE));
        for start in (0..n).step_by(AT_ONCE) {
            let rows = start..(start + AT_ONCE).min(n);
            keys.clear();
            keys.resize(rows.len(), root);
            let mut add = |column: &mut ColumnMoments, values: &[f64]| {
                keys.iter_mut().zip(values).for_each(|(key, x)| *key = row_key(*key, [*x]));
                column.add(values);
            };
            for (dim, column) in inputs.iter_mut().enumerate() {
                values.clear();
                values.extend(rows.clone().map(|row| points.get(row, dim)));
                add(column, &values);
            }
            for (at, column) in outputs.iter_mut().enumerate() {
                values.clear();
                values.extend(rows.clone().map(|row| targets[row * t + at]));
                add(column, &values);
            }
            let bound = sample.bound();
            for (row, key) in rows.zip(&keys).filter(|(_, key)| bound.is_none_or(|bound| key.to_bits() < bound)) {
                let numbers = || points.row(row).chain(targets[row * t..][..t].iter().copied());
                sample.add(key.to_bits(), || numbers().map(|x| x + 0.0).collect());
            }
        }
        Ok(Self { n_rows: n as u64, inputs, targets: outputs, sample })
    }

    /// The moments of the rows of both.
    ///
    /// # Errors
    /// [`Error::Incompatible`] for other numbers of columns; nothing has changed then.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if (self.inputs.len(), self.targets.len()) != (other.inputs.len(), other.targets.len()) {
            return Err(Error::Incompatible { what: "numbers of columns" });
        }
        let n_rows = self.n_rows + other.n_rows;
        // As many terms as exact sums hold.
        let limit = (1_u64 << 31) as f64;
        if n_rows as f64 > limit {
            return Err(Error::TooLarge { what: "rows", expected: n_rows as f64, limit });
        }
        self.sample.merge(&other.sample)?;
        self.n_rows = n_rows;
        self.inputs.iter_mut().zip(&other.inputs).for_each(|(a, b)| a.merge(b));
        self.targets.iter_mut().zip(&other.targets).for_each(|(a, b)| a.merge(b));
        Ok(())
    }

    /// Number of rows.
    pub fn n_rows(&self) -> u64 {
        self.n_rows
    }

    /// The box of all rows, with a margin on each side as a share of its length.
    ///
    /// # Errors
    /// [`Error::ZeroWidth`] for a margin around a column of one value, which a density cannot have.
    pub fn bounds(&self, margin: f64) -> Result<Bounds> {
        let corners = |f: fn(&ColumnMoments) -> f64| self.inputs.iter().map(f).collect::<Vec<f64>>();
        let (lower, upper) = (corners(|c| c.min), corners(|c| c.max));
        if margin == 0.0 {
            return Bounds::new(&lower, &upper);
        }
        let rows = [lower, upper].concat();
        DensityParams::default().margin(margin).bounds_on(Points::row_major(&rows, self.inputs.len())?)
    }

    /// Mean and standard deviation of each input.
    pub fn mean_and_deviation(&self) -> Vec<(f64, f64)> {
        let moments = |column: &ColumnMoments| {
            let (mean, variance) =
                mean_and_variance((self.n_rows as f64, 0.0), column.sum.pair(), column.squares.pair());
            (mean, variance.sqrt())
        };
        self.inputs.iter().map(moments).collect()
    }

    /// Inputs and targets of the sampled rows, row-major.
    pub fn sample(&self) -> (Vec<f64>, Vec<f64>) {
        let n = self.inputs.len();
        (self.sample.columns(0..n), self.sample.columns(n..n + self.targets.len()))
    }

    /// The domain that a forest with these parameters has on all rows: box, weights of the measure and lifetime are found where
    /// they are automatic.
    ///
    /// An automatic lifetime is the one at which half of the cuts have come that separate the sampled rows, as an upper end;
    /// a smaller one is then chosen on a keyed fifth of the rows, in the same pass as the summary. Weights are raw units for a
    /// lifetime by value and 1/standard deviation for an automatic one. The quantile measure is that of the sample.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for an infinite lifetime among others, [`Error::LengthMismatch`].
    pub fn domain(&self, params: &ForestParams) -> Result<TrainingDomain> {
        params.check_holds_all()?;
        params.check()?;
        let n_dims = self.inputs.len();
        let bounds = match &params.bounds {
            Some(bounds) if bounds.n_dims() == n_dims => bounds.clone(),
            Some(bounds) => {
                let (expected, found) = (n_dims, bounds.n_dims());
                return Err(Error::LengthMismatch { what: "dimensions of the root box", expected, found });
            }
            None => self.bounds(0.0)?,
        };
        let measure = self.measure(params)?;
        measure.check_dims(n_dims)?;
        let (lifetime, chooses_lifetime) = match params.lifetime {
            LifetimeChoice::Value(lifetime) => (lifetime, false),
            LifetimeChoice::Auto => (self.upper_lifetime(params.seed, &measure, &bounds)?, true),
        };
        check_lifetime(lifetime)?;
        let domain = TrainingDomain {
            seed: params.seed,
            n_trees: params.n_trees,
            trees: None,
            lifetime,
            chooses_lifetime,
            lower: bounds.lower().to_vec(),
            upper: bounds.upper().to_vec(),
            measure,
            largest_targets: self.targets.iter().map(|y| y.max.abs().max(y.min.abs())).collect(),
            prior: crate::Prior::default(),
            leaf_model: crate::LeafModel::default(),
            gamma: crate::GammaChoice::default(),
            notes: std::collections::BTreeMap::new(),
        };
        domain.check()?;
        Ok(domain)
    }

    fn measure(&self, params: &ForestParams) -> Result<BuiltInMeasure> {
        let by_deviation = || {
            let factor = |(mean, deviation): (f64, f64), column: &ColumnMoments| {
                let scale = column.max.abs().max(column.min.abs()).max(mean.abs());
                let weight = 1.0 / deviation;
                if deviation > CONSTANT * scale && weight.is_finite() { weight } else { 1.0 }
            };
            Weights::new(self.mean_and_deviation().into_iter().zip(&self.inputs).map(|(m, c)| factor(m, c)).collect())
        };
        let given = if let WeightsChoice::Given(weights) = &params.weights { Some(weights) } else { None };
        if let MeasureChoice::Given(table) = &params.measure {
            return crate::forest::params::table_with(table, given, self.inputs.len());
        }
        if params.measure == MeasureChoice::Quantile {
            let (rows, _) = self.sample();
            let points = Points::row_major(&rows, self.inputs.len())?;
            return Ok(BuiltInMeasure::Quantile(QuantileMeasure::of_points(points, given)?));
        }
        Ok(match &params.weights {
            WeightsChoice::Given(weights) => BuiltInMeasure::Weighted(weights.clone()),
            WeightsChoice::Raw => BuiltInMeasure::Uniform,
            WeightsChoice::Deviation => BuiltInMeasure::Weighted(by_deviation()?),
            WeightsChoice::Auto => match params.lifetime {
                LifetimeChoice::Value(_) => BuiltInMeasure::Uniform,
                LifetimeChoice::Auto => BuiltInMeasure::Weighted(by_deviation()?),
            },
        })
    }

    /// The median time of the cuts that separate the sampled rows, in a few trees.
    fn upper_lifetime(&self, seed: u64, measure: &BuiltInMeasure, bounds: &Bounds) -> Result<Lifetime> {
        let domain = Domain::new(seed, &crate::forest::in_measure(measure, bounds)?, Lifetime::INFINITE)?;
        let mut store = PointStore::new(self.inputs.len());
        for x in measure.coordinates(&self.sample().0, self.inputs.len()).chunks_exact(self.inputs.len()) {
            // A box of one's own may leave some rows outside.
            if domain.root_box().contains(x) {
                store.add(x)?;
            }
        }
        let mut times = Vec::new();
        for index in 0..SAMPLE_TREES {
            let tree = Tree::grown(&domain, domain.tree_key(index), &store);
            let nodes = tree.node_ids().map(|id| tree.node(id));
            times.extend(nodes.filter(|node| node.separates()).map(crate::tree::Node::time));
        }
        times.sort_unstable_by(f64::total_cmp);
        Lifetime::new(times.get(times.len() / 2).copied().unwrap_or(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uniform(k: u64) -> f64 {
        NodeKey::root(31, k).draw(0).uniform()
    }

    #[test]
    fn parts_in_any_order_give_the_moments_of_all_rows() {
        let (n, n_dims) = (5000, 3);
        let x: Vec<f64> = (0..n * n_dims).map(|i| (uniform(i) - 0.3) * 10_f64.powi((i % 3) as i32 * 40)).collect();
        let y: Vec<f64> = (0..2 * n).map(|i| uniform(90_000 + i)).collect();
        let part = |rows: std::ops::Range<usize>| {
            let points = Points::row_major(&x[rows.start * 3..rows.end * 3], 3).unwrap();
            Moments::new(points, &y[rows.start * 2..rows.end * 2]).unwrap()
        };
        let whole = part(0..5000);
        let mut merged = part(4000..5000);
        for rows in [0..1, 2500..4000, 1..2500] {
            merged.merge(&part(rows)).unwrap();
        }
        assert_eq!(merged, whole);
        assert_eq!(whole.sample.rows.len(), SAMPLE_ROWS);
        for (dim, (mean, deviation)) in whole.mean_and_deviation().into_iter().enumerate() {
            let scale = 10_f64.powi(dim as i32 * 40);
            let values: Vec<f64> = x.iter().skip(dim).step_by(3).map(|x| x / scale).collect();
            let plain = values.iter().sum::<f64>() / 5000.0;
            let spread = (values.iter().map(|v| (v - plain).powi(2)).sum::<f64>() / 5000.0).sqrt();
            assert!((mean / scale - plain).abs() < 1e-12 && (deviation / scale - spread).abs() < 1e-12);
        }
        let domain = whole.domain(&ForestParams::default()).unwrap();
        assert!(domain.chooses_lifetime && domain.lifetime().get() > 0.0);
        assert_eq!(TrainingDomain::from_json(&domain.to_json().unwrap()).unwrap(), domain);
    }

    #[test]
    fn refuses_what_no_domain_can_be_made_of() {
        assert!(matches!(Moments::new(Points::row_major(&[], 2).unwrap(), &[]), Err(Error::Empty { .. })));
        let points = Points::row_major(&[1.0, 2.0], 1).unwrap();
        assert!(matches!(Moments::new(points, &[1.0]), Err(Error::LengthMismatch { .. })));
        assert!(matches!(Moments::new(points, &[1.0, f64::NAN]), Err(Error::NotFinite { row: 1, .. })));
        let mut moments = Moments::new(points, &[1.0, 2.0]).unwrap();
        assert!(moments.merge(&Moments::new(points, &[]).unwrap()).is_err());
        let endless = ForestParams::default().lifetime(Lifetime::INFINITE);
        assert!(matches!(moments.domain(&endless), Err(Error::InvalidParameter { name: "lifetime", .. })));
        for json in ["", "{}", "[]", "{\"seed\":1}"] {
            assert!(TrainingDomain::from_json(json).is_err());
        }
    }
}
