//! Forests trained in parts that never meet: what a part of the rows says about every tree, without the rows.
//!
//! On a [domain](TrainingDomain) trees have the same cuts whatever rows they see. So the cells that hold rows at the lifetime, with
//! the number of rows, Σ y in fixed point or the counts of classes in each, add up over parts to those of all rows, bit for bit
//! and in any order, and the forest that they are [finished](Summary) to predicts what a fit on all rows would
//! (docs/many-machines.md). Size and merging cost follow the cells, not the rows.

mod cells;
mod domain;
mod exact_sum;
mod finish;
mod moments;
mod part;
mod sample;
mod saved;

pub use domain::TrainingDomain;
pub use moments::Moments;

use crate::forest::classification::check_labels;
use crate::points::first_not_finite;
use crate::select::split::keyed_hash;
use crate::{Error, Points, Result};
use part::{Part, RowLabels, Rows};
use sample::{AutomaticSample, BottomRows};

/// One row in so many is held out where the lifetime is chosen.
const HELD_OUT_PARTS: u64 = 5;
/// Held-out rows that the choice is judged on, at most.
const HELD_OUT_ROWS: usize = 8192;

/// What the rows of a summary are labelled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Task {
    Regression { n_targets: usize },
    Classification { n_classes: usize },
    Density,
}

impl Task {
    fn n_targets(self) -> usize {
        if let Self::Regression { n_targets } = self { n_targets } else { 0 }
    }

    /// Numbers that a label is written as beside a held-out row.
    fn n_labels(self) -> usize {
        match self {
            Self::Regression { n_targets } => n_targets,
            Self::Classification { .. } => 1,
            Self::Density => 0,
        }
    }
}

/// What rows say about the trees of a domain, without the rows: merged in any order, kept as bytes by [`crate::Saved`], and
/// finished to a forest.
///
/// ```
/// use mondrian::{ForestParams, Lifetime, Moments, Points, RegressionForest, Saved, Summary};
/// let x: Vec<f64> = (0..90).map(|i| f64::from(i % 30) / 30.0).collect();
/// let y: Vec<f64> = x.iter().map(|x| x * x).collect();
/// let lifetime = Lifetime::new(6.0)?;
/// let points = Points::row_major(&x, 1)?;
/// let domain = Moments::new(points, &y)?.domain(&ForestParams::default().n_trees(10).lifetime(lifetime))?;
///
/// let mut summary = Summary::of_regression(&domain, points.rows(60..90), &y[60..])?;    // one machine
/// let bytes = Summary::of_regression(&domain, points.rows(0..60), &y[..60])?.to_bytes()?; // another
/// summary.merge(&Summary::from_bytes(&bytes)?)?;
///
/// let whole = RegressionForest::params().n_trees(10).lifetime(lifetime).fit(points, &y)?;
/// assert_eq!(summary.finish_regression()?.predict(points)?, whole.predict(points)?);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    pub(crate) domain: TrainingDomain,
    pub(crate) task: Task,
    /// All rows, or those that are not held out.
    pub(crate) kept: Part,
    /// The others, where a lifetime is to be chosen.
    pub(crate) held: Option<Part>,
    /// Some of those, with their labels.
    pub(crate) held_rows: BottomRows,
    pub(crate) sample: AutomaticSample,
}

impl Summary {
    /// The summary of rows with targets, row-major and as many for each row as the domain has.
    ///
    /// # Errors
    /// [`Error::OutsideBox`] for a row outside the domain's box, [`Error::InvalidParameter`] for a target larger than the
    /// domain knows of, [`Error::LengthMismatch`], [`Error::NotFinite`].
    pub fn of_regression(domain: &TrainingDomain, points: Points<'_>, targets: &[f64]) -> Result<Self> {
        let (n, t) = (points.n_rows(), domain.largest_targets.len());
        if targets.len() != n * t || t == 0 {
            return Err(Error::LengthMismatch { what: "targets", expected: n * t.max(1), found: targets.len() });
        }
        if let Some(at) = first_not_finite(targets) {
            return Err(Error::NotFinite { what: "y", row: at / t, column: at % t, value: targets[at] });
        }
        domain.check_targets(targets, t)?;
        Self::of(domain, Task::Regression { n_targets: t }, points, &RowLabels::Targets(targets))
    }

    /// The summary of rows with class numbers below `n_classes`, which all parts must share.
    ///
    /// # Errors
    /// [`Error::OutsideBox`], [`Error::InvalidParameter`] for a label that is no class, [`Error::LengthMismatch`].
    pub fn of_classification(
        domain: &TrainingDomain,
        points: Points<'_>,
        labels: &[u32],
        n_classes: usize,
    ) -> Result<Self> {
        check_labels(points.n_rows(), labels, n_classes)?;
        Self::of(domain, Task::Classification { n_classes }, points, &RowLabels::Classes(labels, n_classes))
    }

    /// The summary of rows without labels.
    ///
    /// # Errors
    /// [`Error::OutsideBox`], [`Error::LengthMismatch`], [`Error::ZeroWidth`] for a box without volume.
    pub fn of_density(domain: &TrainingDomain, points: Points<'_>) -> Result<Self> {
        let bounds = domain.bounds()?;
        let widths = bounds.lower().iter().zip(bounds.upper()).enumerate();
        if let Some((dim, (lower, _))) = widths.into_iter().find(|(_, (lower, upper))| lower >= upper) {
            return Err(Error::ZeroWidth { dim, value: *lower });
        }
        Self::of(domain, Task::Density, points, &RowLabels::None)
    }

    fn of(domain: &TrainingDomain, task: Task, points: Points<'_>, labels: &RowLabels<'_>) -> Result<Self> {
        domain.check()?;
        domain.check_inside(points)?;
        let mut sample = AutomaticSample::new(task.n_targets());
        let mut held_rows = BottomRows::new(if domain.chooses_lifetime { HELD_OUT_ROWS } else { 0 });
        let rows = Rows { domain, task, points, labels };
        if !domain.chooses_lifetime {
            let all: Vec<usize> = (0..points.n_rows()).collect();
            let kept = rows.part(&all, &mut sample)?;
            return Ok(Self { domain: domain.clone(), task, kept, held: None, held_rows, sample });
        }
        let is_kept = |row: &usize| !keyed_hash(domain.seed, points.row(*row)).is_multiple_of(HELD_OUT_PARTS);
        let (kept, held): (Vec<usize>, Vec<usize>) = (0..points.n_rows()).partition(is_kept);
        rows.add_to(&held, &mut held_rows);
        let (kept, held) = (rows.part(&kept, &mut sample)?, rows.part(&held, &mut sample)?);
        Ok(Self { domain: domain.clone(), task, kept, held: Some(held), held_rows, sample })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.kept.n_rows + self.held.as_ref().map_or(0, |held| held.n_rows)
    }

    /// The domain.
    pub fn domain(&self) -> &TrainingDomain {
        &self.domain
    }

    /// What its rows are labelled with: `"regression"`, `"classification"` or `"density"`.
    pub fn task(&self) -> &'static str {
        match self.task {
            Task::Regression { .. } => "regression",
            Task::Classification { .. } => "classification",
            Task::Density => "density",
        }
    }

    /// Cells that hold rows, over all trees.
    pub fn n_cells(&self) -> usize {
        let of = |part: &Part| part.trees.iter().map(|tree| tree.cells.len()).sum::<usize>();
        of(&self.kept) + self.held.as_ref().map_or(0, of)
    }

    /// Takes the rows of another summary on the same domain: the summary of both, whatever the order.
    ///
    /// # Errors
    /// [`Error::Incompatible`] saying what differs, [`Error::TooLarge`] for more rows than trees can count; nothing has changed
    /// then.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_same(other, self.domain == other.domain)?;
        let kept = self.kept.merged(&other.kept)?;
        let held = match (&self.held, &other.held) {
            (Some(ours), Some(theirs)) => Some(ours.merged(theirs)?),
            (None, None) => None,
            _ => return Err(Error::Incompatible { what: "domains" }),
        };
        let n_rows = kept.n_rows + held.as_ref().map_or(0, |held: &Part| held.n_rows);
        if u32::try_from(n_rows).is_err() {
            return Err(cells::too_large());
        }
        let mut sample = self.sample.clone();
        sample.merge(&other.sample)?;
        self.held_rows.merge(&other.held_rows)?;
        (self.kept, self.held, self.sample) = (kept, held, sample);
        Ok(())
    }

    /// Takes other trees of the same rows: those that follow its own.
    ///
    /// # Errors
    /// [`Error::Incompatible`] where domains or rows differ, or the trees do not follow each other; nothing has changed then.
    pub fn join(&mut self, other: &Self) -> Result<()> {
        let (ours, theirs) = (self.domain.trees(), other.domain.trees());
        let domain = TrainingDomain { trees: self.domain.trees.clone(), ..other.domain.clone() };
        self.check_same(other, self.domain == domain)?;
        if ours.end != theirs.start {
            return Err(Error::Incompatible { what: "the trees of shards (they must follow each other), which" });
        }
        let same = |a: &Part, b: &Part| a.n_rows == b.n_rows && a.totals == b.totals;
        let held = match (&self.held, &other.held) {
            (Some(a), Some(b)) => same(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        if !(held && same(&self.kept, &other.kept) && self.sample == other.sample) {
            return Err(Error::Incompatible { what: "the rows of shards, which" });
        }
        self.kept.trees.extend_from_slice(&other.kept.trees);
        if let (Some(ours), Some(theirs)) = (&mut self.held, &other.held) {
            ours.trees.extend_from_slice(&theirs.trees);
        }
        let all = ours.start..theirs.end;
        self.domain.trees = Some(all.clone()).filter(|all| *all != (0..self.domain.n_trees));
        Ok(())
    }

    fn check_same(&self, other: &Self, is_same_domain: bool) -> Result<()> {
        if !is_same_domain {
            return Err(Error::Incompatible { what: "domains" });
        }
        if self.task != other.task {
            return Err(Error::Incompatible { what: "tasks, or numbers of targets or classes," });
        }
        Ok(())
    }
}
