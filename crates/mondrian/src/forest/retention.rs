//! Which rows a forest holds: all, the last n, or a sample of n.
//!
//! A forest with a rule learns the rows that the rule lets in and forgets those that make room for them. Learning and forgetting
//! are exact, so the forest is the one of the rows held, bit for bit. A window holds the last n rows. A sample holds the n
//! rows of smallest keyed hash: a function of the set of rows, so that neither their order nor merging matters. Inputs are
//! hashed, and the targets of a regression; not classes, whose numbers may change.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::forest::{Forest, ForestParams};
use crate::model_file::{Archive, ModelFileError};
use crate::process::NodeKey;
use crate::select::split::{row_key, row_keys};
use crate::tree::PointStore;
use crate::{Error, Points, Result};

/// How many rows are held, and which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Rule {
    /// The last ones.
    Window(usize),
    /// Those of smallest keyed hash.
    Sample(usize),
}

impl Rule {
    /// The rule of these parameters, if they have one.
    pub(crate) fn of(params: &ForestParams) -> Option<Self> {
        params.window.map(Self::Window).or(params.max_rows.map(Self::Sample))
    }

    fn most(self) -> usize {
        match self {
            Self::Window(n) | Self::Sample(n) => n,
        }
    }
}

/// A row held: its point, and its targets or its class.
pub(crate) type HeldRow = (u32, Box<[f64]>);

/// The rows that a forest holds by a rule, in the order in which they would go.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    rule: Rule,
    key: NodeKey,
    /// The first one goes next. Keys are priorities with the number of arrival, so that equal rows are told apart.
    rows: BTreeMap<(u64, u64), HeldRow>,
    n_arrived: u64,
}

/// What becomes of rows that arrive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The arriving rows to learn, ascending.
    pub(crate) learned: Vec<usize>,
    /// Their priorities.
    priorities: Vec<u64>,
    /// How many of the held ones go.
    n_gone: usize,
}

impl Held {
    pub(crate) fn new(rule: Rule, seed: u64) -> Self {
        let key = NodeKey::root(seed, u64::from_le_bytes(*b"max rows"));
        Self { rule, key, rows: BTreeMap::new(), n_arrived: 0 }
    }

    pub(crate) fn rule(&self) -> Rule {
        self.rule
    }

    /// The priority of each row, given in raw units with what is hashed besides: the smaller, the sooner it goes. Nothing for a
    /// window.
    pub(crate) fn priorities(&self, points: Points<'_>, values: &[f64]) -> Vec<u64> {
        match self.rule {
            Rule::Window(_) => Vec::new(),
            Rule::Sample(_) => {
                let n_values = values.len() / points.n_rows().max(1);
                let mut keys = row_keys(self.key, &points.as_row_major(), points.n_columns());
                for (key, values) in keys.iter_mut().zip(values.chunks(n_values.max(1))) {
                    *key = row_key(*key, values.iter().copied());
                }
                keys.into_iter().map(|key| u64::MAX - key.to_bits() as u64).collect()
            }
        }
    }

    /// A window over rows that are there already, given in order of arrival; too many of them are yet to be forgotten.
    fn window_over(n: usize, rows: impl IntoIterator<Item = HeldRow>) -> Self {
        let mut held = Self::new(Rule::Window(n), 0);
        for row in rows {
            held.rows.insert((held.n_arrived, held.n_arrived), row);
            held.n_arrived += 1;
        }
        held
    }

    /// Takes the rows out that are too many: those to forget.
    fn trim(&mut self) -> Vec<HeldRow> {
        let n_gone = self.rows.len().saturating_sub(self.rule.most());
        (0..n_gone).filter_map(|_| self.rows.pop_first().map(|(_, row)| row)).collect()
    }

    /// What becomes of so many rows with these priorities.
    pub(crate) fn plan(&self, n_rows: usize, priorities: &[u64]) -> Plan {
        let most = self.rule.most();
        if let Rule::Window(_) = self.rule {
            let n_learned = n_rows.min(most);
            let n_gone = (self.rows.len() + n_learned).saturating_sub(most);
            return Plan { learned: (n_rows - n_learned..n_rows).collect(), priorities: Vec::new(), n_gone };
        }
        let mut order: Vec<usize> = (0..n_rows).collect();
        order.sort_by_key(|row| std::cmp::Reverse(priorities[*row]));
        let room = most.saturating_sub(self.rows.len()).min(n_rows);
        // Each row beyond the room takes the place of the one that would go next, if it would go later.
        let displaced = self.rows.keys().zip(&order[room..]);
        let n_gone = displaced.take_while(|((held, _), row)| *held < priorities[**row]).count();
        let mut learned = order[..room + n_gone].to_vec();
        learned.sort_unstable();
        let priorities = learned.iter().map(|row| priorities[*row]).collect();
        Plan { learned, priorities, n_gone }
    }

    /// What becomes of the rows that another forest holds in its store: with the coordinates and values of those to learn.
    pub(crate) fn plan_merge(&self, other: &Self, store: &PointStore) -> (Plan, Vec<f64>, Vec<f64>) {
        let priorities: Vec<u64> = other.rows().map(|(priority, _)| priority).collect();
        let plan = self.plan(priorities.len(), &priorities);
        let rows: Vec<&HeldRow> = other.rows().map(|(_, row)| row).collect();
        let learned = plan.learned.iter().map(|row| rows[*row]);
        let coordinates = learned.clone().flat_map(|(point, _)| store.point(*point).iter().copied()).collect();
        let values = learned.flat_map(|(_, values)| values.iter().copied()).collect();
        (plan, coordinates, values)
    }

    /// Takes note of a plan whose rows have been learned, given their points and values: the rows to forget.
    pub(crate) fn commit(&mut self, plan: &Plan, points: &[u32], values: &[f64]) -> Vec<HeldRow> {
        let gone = (0..plan.n_gone).filter_map(|_| self.rows.pop_first().map(|(_, row)| row)).collect();
        let n_values = values.len() / points.len().max(1);
        for (at, point) in points.iter().enumerate() {
            let priority = plan.priorities.get(at).copied().unwrap_or(self.n_arrived);
            let row = (*point, values[at * n_values..][..n_values].into());
            self.rows.insert((priority, self.n_arrived), row);
            self.n_arrived += 1;
        }
        gone
    }

    /// Takes note of a row that was forgotten otherwise. Of equal ones the one that would go next is taken.
    pub(crate) fn remove(&mut self, point: u32, values: &[f64]) {
        let found = self.rows.iter().find(|(_, (held, of))| *held == point && **of == *values);
        if let Some(key) = found.map(|(key, _)| *key) {
            self.rows.remove(&key);
        }
    }

    /// The rows held with their priorities, in the order in which they would go.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (u64, &HeldRow)> {
        self.rows.iter().map(|((priority, _), row)| (*priority, row))
    }

    /// The single value of each row becomes another.
    pub(crate) fn map_values(&mut self, value: impl Fn(f64) -> f64) {
        self.rows.values_mut().flat_map(|(_, values)| values.iter_mut()).for_each(|held| *held = value(*held));
    }

    /// Writes rule and rows into a model's archive.
    pub(crate) fn write_to(&self, archive: &mut Archive) -> Result<()> {
        archive.set_params("held", &self.rule)?;
        let n_values = self.rows.values().next().map_or(0, |(_, values)| values.len());
        // A window's numbers start anew, so that files of equal windows are equal.
        let numbered = |(at, (priority, _)): (usize, &(u64, u64))| match self.rule {
            Rule::Window(_) => at as u64,
            Rule::Sample(_) => *priority,
        };
        archive.insert_vec("held/priority", self.rows.keys().enumerate().map(numbered).collect())?;
        archive.insert_vec("held/point", self.rows.values().map(|(point, _)| *point).collect())?;
        let values = self.rows.values().flat_map(|(_, values)| values.iter().copied()).collect();
        archive.insert("held/values", &[self.rows.len(), n_values], values)
    }

    /// Reads them for points of a store, whose rows they must be; none if the archive has no rule.
    pub(crate) fn read_from(archive: &Archive, seed: u64, store: &PointStore) -> Result<Option<Self>> {
        if !archive.has_params("held") {
            return Ok(None);
        }
        let inconsistent = || ModelFileError::Inconsistent { what: "the rows of a window or sample" };
        let rule: Rule = archive.params("held")?;
        let mut held = Self::new(rule, seed);
        let (priorities, points): (&[u64], &[u32]) = (archive.slice("held/priority")?, archive.slice("held/point")?);
        let [n, n_values] = *archive.array("held/values")?.shape() else { return Err(inconsistent().into()) };
        if n != points.len() || n != priorities.len() || n > rule.most() || rule.most() == 0 {
            return Err(inconsistent().into());
        }
        let values: &[f64] = archive.matrix_slice("held/values", &[n, n_values])?;
        let mut left: Vec<u32> = store.multiplicities().to_vec();
        for (at, (priority, point)) in priorities.iter().zip(points).enumerate() {
            let count = left.get_mut(*point as usize).filter(|count| **count > 0).ok_or_else(inconsistent)?;
            *count -= 1;
            held.rows.insert((*priority, at as u64), (*point, values[at * n_values..][..n_values].into()));
        }
        held.n_arrived = n as u64;
        let numbered = !matches!(rule, Rule::Window(_)) || priorities.iter().zip(0..).all(|(p, at)| *p == at);
        if !numbered || left.iter().any(|count| *count > 0) {
            return Err(inconsistent().into());
        }
        Ok(Some(held))
    }
}

impl<S: Default + Clone + Send + Sync + std::fmt::Debug> Forest<S> {
    /// Holds the last rows from now on, given the length of the window and all rows of the forest in order of arrival, or all
    /// rows without one: the rows that the model must forget. Rows of a window that is there keep their order.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for a window of no rows, [`Error::WithoutRows`].
    pub(crate) fn set_window(&mut self, window: Option<usize>, rows: Vec<HeldRow>) -> Result<Vec<HeldRow>> {
        ForestParams::default().window(window).check()?;
        let Some(n) = window else {
            self.held = None;
            return Ok(Vec::new());
        };
        self.check_rows("a window")?;
        let mut held = match &self.held {
            Some(held) if matches!(held.rule, Rule::Window(_)) => Held { rule: Rule::Window(n), ..held.clone() },
            _ => Held::window_over(n, rows),
        };
        let gone = held.trim();
        self.held = Some(held);
        Ok(gone)
    }
}

/// The rows of a first call that are held, by number, where a rule leaves some of them out. `values` are what is hashed with
/// each row.
///
/// # Errors
/// [`Error::NoWeights`] with weights: rows of a window or a sample count once each.
pub(crate) fn first_rows(
    params: &ForestParams,
    points: Points<'_>,
    values: &[f64],
    weights: Option<&[f64]>,
) -> Result<Option<Vec<usize>>> {
    params.check()?;
    let Some(rule) = Rule::of(params) else { return Ok(None) };
    refuse_weights(weights)?;
    let n_rows = points.n_rows();
    if n_rows <= rule.most() || !values.len().is_multiple_of(n_rows) {
        return Ok(None);
    }
    let held = Held::new(rule, params.seed);
    Ok(Some(held.plan(n_rows, &held.priorities(points, values)).learned))
}

/// Refuses weights of rows that are held by a rule.
pub(crate) fn refuse_weights(weights: Option<&[f64]>) -> Result<()> {
    let model = "a forest with a window or a maximum of rows";
    if weights.is_some() { Err(Error::NoWeights { model }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values_of(held: &Held) -> Vec<f64> {
        held.rows().map(|(_, (_, values))| values[0]).collect()
    }

    fn take(held: &mut Held, y: &[f64]) -> Vec<f64> {
        let points = Points::row_major(y, 1).unwrap();
        let plan = held.plan(y.len(), &held.priorities(points, y));
        let learned: Vec<f64> = plan.learned.iter().map(|row| y[*row]).collect();
        let numbers: Vec<u32> = learned.iter().map(|y| *y as u32).collect();
        held.commit(&plan, &numbers, &learned).into_iter().map(|(_, values)| values[0]).collect()
    }

    #[test]
    fn a_window_holds_the_last_rows() {
        let mut held = Held::new(Rule::Window(3), 1);
        assert!(take(&mut held, &[1.0, 2.0]).is_empty());
        assert_eq!(take(&mut held, &[3.0, 4.0]), [1.0]);
        assert_eq!(values_of(&held), [2.0, 3.0, 4.0]);
        held.remove(3, &[3.0]);
        assert!(take(&mut held, &[5.0]).is_empty());
        assert_eq!(take(&mut held, &[6.0, 7.0, 8.0, 9.0]), [2.0, 4.0, 5.0]);
        assert_eq!(values_of(&held), [7.0, 8.0, 9.0]);
    }

    /// The rows held are those of smallest hash of all that came, in whatever batches and order.
    #[test]
    fn a_sample_is_a_function_of_the_rows() {
        let y: Vec<f64> = (0..200).map(f64::from).collect();
        let whole = {
            let mut held = Held::new(Rule::Sample(20), 7);
            take(&mut held, &y);
            values_of(&held)
        };
        for size in [1, 3, 64] {
            let mut held = Held::new(Rule::Sample(20), 7);
            for batch in y.rchunks(size) {
                take(&mut held, batch);
            }
            assert_eq!(values_of(&held), whole, "{size}");
        }
        assert!(whole.iter().any(|y| *y >= 20.0), "not the first ones");
        let mut other = Held::new(Rule::Sample(20), 8);
        take(&mut other, &y);
        assert_ne!(values_of(&other), whole, "another seed takes other rows");
    }
}
