//! What a regression forest knows of its rows, and their sums by point; `sums.rs` has those by node and leaf.

mod sums;

pub use sums::Sums;

use crate::forest::regression::fixed::{self, Scale};
use crate::forest::retention::HeldRow;
use crate::forest::sample::{PointLabels, SampleSize};
use crate::simd::prefetch::prefetch;
use crate::tree::{Child, Descent};
use crate::{Error, Result};

/// No row.
const NONE: u32 = u32::MAX;

/// Targets and weights of all rows, and their sums by point.
///
/// Sums have one channel a target (Σ w·y) and, where some weight is not 1, one for Σ w.
#[derive(Debug, Clone, Default)]
pub struct Targets {
    n_targets: usize,
    is_weighted: bool,
    /// Row by row, in order of arrival; forgotten rows have no point until they are swept out.
    point_of: Vec<u32>,
    y: Vec<f64>,
    /// None while all are 1.
    weight: Vec<f64>,
    n_forgotten: usize,
    /// Rows that are known by their sums only.
    n_summarized: usize,
    /// The rows of a point as a list: its last, and for each row the one before.
    last_row: Vec<u32>,
    row_before: Vec<u32>,
    multiplicity: Vec<u32>,
    scales: Vec<Scale>,
    /// Sums by point as floats: every tree asks for all of them, in an order that memory does not like. Zeros follow, for
    /// cells of no point.
    point_floats: Vec<f64>,
    /// The same, exact. None while no point has several rows: floats are exact then.
    point_sums: Vec<i128>,
    /// Sums over all rows: one a channel, then Σ w·y² of each target.
    totals: Vec<i128>,
    square_scales: Vec<Scale>,
    /// Whether units or channels have changed since [`PointLabels::take_change`].
    has_changed: bool,
}

impl Targets {
    /// Bytes taken.
    pub(crate) fn n_bytes(&self) -> usize {
        let numbers = [&self.point_of, &self.last_row, &self.row_before, &self.multiplicity];
        numbers.iter().map(|n| size_of_val(n.as_slice())).sum::<usize>()
            + size_of_val(self.y.as_slice())
            + size_of_val(self.weight.as_slice())
            + size_of_val(self.point_sums.as_slice())
            + size_of_val(self.point_floats.as_slice())
    }

    /// Asks for the memory of what is known of the rows that a way down has come to: a node's, or those of a frozen point.
    #[inline]
    pub(crate) fn prefetch_at(&self, sums: &Sums, way: &Descent) {
        sums.prefetch(way);
        let point = Child::unresolved(way.link).single_or(0) as usize;
        prefetch(&self.point_floats, point);
        prefetch(&self.multiplicity, point);
    }

    pub(crate) fn new(n_targets: usize) -> Self {
        let scales = vec![Scale::default(); n_targets];
        Self { n_targets, square_scales: scales.clone(), totals: vec![0; 2 * n_targets], scales, ..Self::default() }
    }

    /// Rows known by their sums only: a point stands for all rows of a cell. `totals` are Σ y of each target in the units of
    /// its largest, then Σ y²; sums come by cell, then target.
    pub(crate) fn of_cells(
        largest: &[f64],
        sums: Vec<i128>,
        counts: Vec<u32>,
        totals: Vec<i128>,
        n_rows: usize,
    ) -> Self {
        let mut targets = Self::new(largest.len());
        let t = targets.n_targets;
        targets.last_row = vec![NONE; counts.len()];
        targets.point_floats = vec![0.0; (counts.len() + 1) * t];
        targets.take_totals(largest, totals, n_rows);
        for (at, sum) in sums.iter().enumerate() {
            targets.point_floats[at] = targets.scales[at % t].float(*sum);
        }
        (targets.multiplicity, targets.point_sums) = (counts, sums);
        targets
    }

    /// Takes these totals for its own: the rows held are a sample of so many.
    pub(crate) fn take_totals(&mut self, largest: &[f64], totals: Vec<i128>, n_rows: usize) {
        self.n_summarized = n_rows - (self.point_of.len() - self.n_forgotten);
        self.scales = largest.iter().map(|y| Scale::of_largest(*y)).collect();
        self.square_scales = largest.iter().map(|y| Scale::of_largest(fixed::weighted_square(*y, 1.0).0)).collect();
        self.totals = totals;
    }

    /// Number of targets.
    pub fn n_targets(&self) -> usize {
        self.n_targets
    }

    /// Points below this number may have rows.
    pub(crate) fn n_slots(&self) -> usize {
        self.last_row.len()
    }

    /// Whether some row was learned with a weight other than 1.
    pub fn is_weighted(&self) -> bool {
        self.is_weighted
    }

    fn n_channels(&self) -> usize {
        self.n_targets + usize::from(self.is_weighted)
    }

    /// Rows in order of arrival: point, targets, weight.
    pub fn rows(&self) -> impl Iterator<Item = (u32, &[f64], f64)> + '_ {
        let t = self.n_targets;
        (0..self.point_of.len())
            .filter(|row| self.point_of[*row] != NONE)
            .map(move |row| (self.point_of[row], &self.y[row * t..][..t], self.weight_of(row)))
    }

    fn weight_of(&self, row: usize) -> f64 {
        self.weight.get(row).copied().unwrap_or(1.0)
    }

    /// A row's term in a channel.
    #[inline]
    fn term(&self, row: usize, channel: usize) -> f64 {
        if channel == self.n_targets {
            return self.weight_of(row);
        }
        self.weight_of(row) * self.y[row * self.n_targets + channel]
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.point_of.len() - self.n_forgotten + self.n_summarized
    }

    /// Adds rows; whether units or channels changed, so that all sums must be gathered anew.
    pub(crate) fn add(&mut self, points: &[u32], y: &[f64], weights: Option<&[f64]>) -> bool {
        let t = self.n_targets;
        let mut changed = false;
        if !self.is_weighted && weights.is_some_and(|w| w.iter().any(|w| *w != 1.0)) {
            self.start_weighing();
            changed = true;
        }
        points.iter().max().into_iter().for_each(|last| self.make_room(*last));
        let (n, first) = (points.len(), self.point_of.len());
        self.point_of.extend_from_slice(points);
        self.y.extend_from_slice(&y[..n * t]);
        match weights {
            Some(weights) if self.is_weighted => self.weight.extend_from_slice(&weights[..n]),
            _ if self.is_weighted => self.weight.resize(first + n, 1.0),
            _ => {}
        }
        self.row_before.reserve(n);
        for (&point, row) in points.iter().zip(first as u32..) {
            self.row_before.push(self.last_row[point as usize]);
            self.last_row[point as usize] = row;
            self.multiplicity[point as usize] += 1;
        }
        let mut scales = std::mem::take(&mut self.scales);
        for (channel, scale) in scales.iter_mut().enumerate() {
            changed |= scale.add_all((first..first + n).map(|row| self.term(row, channel)));
        }
        self.scales = scales;
        let mut scales = std::mem::take(&mut self.square_scales);
        let mut is_coarser = changed;
        for (target, scale) in scales.iter_mut().enumerate() {
            is_coarser |= scale.add_all((first..first + n).map(|row| self.square(row, target).0));
        }
        self.square_scales = scales;
        if is_coarser {
            self.add_up();
        } else {
            (first..first + n).for_each(|row| self.change_totals(row, 1));
        }
        self.has_changed |= changed;
        let repeats = self.point_sums.is_empty() && points.iter().any(|point| self.multiplicity[*point as usize] > 1);
        if changed || repeats {
            self.sum_points();
        } else {
            self.make_room_for_sums();
            points.iter().zip(first as u32..).for_each(|(point, row)| self.change_sums(*point, row, 1));
        }
        changed
    }

    /// w·y² as the sum of two numbers, exactly but for what no number can hold.
    fn square(&self, row: usize, target: usize) -> (f64, f64) {
        fixed::weighted_square(self.y[row * self.n_targets + target], self.weight_of(row))
    }

    /// Adds a row's terms to the sums over all rows, or takes them away.
    fn change_totals(&mut self, row: usize, sign: i128) {
        let channels = self.n_channels();
        for channel in 0..channels {
            self.totals[channel] += sign * self.scales[channel].units(self.term(row, channel)) as i128;
        }
        for target in 0..self.n_targets {
            let (scale, (square, rest)) = (&self.square_scales[target], self.square(row, target));
            let units = scale.units(square) as i128 + scale.units(rest) as i128;
            self.totals[channels + target] += sign * units;
        }
    }

    /// The sums over all rows, made anew.
    fn add_up(&mut self) {
        self.totals = vec![0; self.n_channels() + self.n_targets];
        for row in 0..self.point_of.len() {
            if self.point_of[row] != NONE {
                self.change_totals(row, 1);
            }
        }
    }

    /// Weighted mean and variance of a target over all rows: exact sums, so that the order of arrival does not matter. None
    /// without rows.
    pub(crate) fn moments(&self, target: usize) -> Option<(f64, f64)> {
        let (n, channels) = (self.n_rows(), self.n_channels());
        if n == 0 {
            return None;
        }
        let weight = if self.is_weighted {
            self.scales[self.n_targets].pair(self.totals[self.n_targets])
        } else {
            (n as f64, 0.0)
        };
        let sum = self.scales[target].pair(self.totals[target]);
        let squares = self.square_scales[target].pair(self.totals[channels + target]);
        Some(fixed::mean_and_variance(weight, sum, squares))
    }

    fn start_weighing(&mut self) {
        self.is_weighted = true;
        self.weight = vec![1.0; self.point_of.len()];
        let mut scale = Scale::default();
        scale.add_all(self.rows().map(|(_, _, weight)| weight));
        self.scales.push(scale);
    }

    fn make_room(&mut self, point: u32) {
        let slots = point as usize + 1;
        if self.last_row.len() < slots {
            self.last_row.resize(slots, NONE);
            self.multiplicity.resize(slots, 0);
        }
    }

    /// Not part of [`Targets::make_room`]: where the unit changes, all sums are made anew.
    fn make_room_for_sums(&mut self) {
        let (slots, channels) = (self.last_row.len(), self.n_channels());
        self.point_floats.resize((slots + 1) * channels, 0.0);
        if !self.point_sums.is_empty() {
            self.point_sums.resize(slots * channels, 0);
        }
    }

    /// Adds or takes away a row's terms from its point's sums.
    #[inline]
    fn change_sums(&mut self, point: u32, row: u32, sign: i128) {
        let channels = self.n_channels();
        let (row, start) = (row as usize, point as usize * channels);
        for channel in 0..channels {
            let scale = &self.scales[channel];
            let units = scale.units(self.term(row, channel));
            self.point_floats[start + channel] = match self.point_sums.get_mut(start + channel) {
                None if sign == 1 => scale.of_units(units),
                None => 0.0,
                // A float as it is: turning a long integer into one takes longer than all the rest.
                Some(sum @ 0) if sign == 1 => {
                    *sum = units as i128;
                    scale.of_units(units)
                }
                Some(sum) => {
                    *sum += sign * units as i128;
                    scale.float(*sum)
                }
            };
        }
    }

    fn sum_points(&mut self) {
        let (channels, slots) = (self.n_channels(), self.last_row.len());
        let repeats = self.multiplicity.iter().any(|n| *n > 1);
        self.point_sums = vec![0; if repeats { slots * channels } else { 0 }];
        self.point_floats = vec![0.0; (slots + 1) * channels];
        for (channel, scale) in self.scales.iter().enumerate() {
            for (row, point) in self.point_of.iter().enumerate().filter(|(_, point)| **point != NONE) {
                let units = scale.units(self.term(row, channel));
                let at = *point as usize * channels + channel;
                self.point_floats[at] = scale.of_units(units);
                if repeats {
                    self.point_sums[at] += units as i128;
                }
            }
            // A float as it is where it can be: turning a long integer into one takes longer than all the rest.
            for (point, _) in self.multiplicity.iter().enumerate().filter(|(_, n)| **n > 1) {
                self.point_floats[point * channels + channel] =
                    scale.float(self.point_sums[point * channels + channel]);
            }
        }
    }

    /// The rows that would be forgotten for each request of a point and its targets.
    ///
    /// # Errors
    /// [`Error::UnknownRow`] with the first request that no remaining row answers; nothing changes.
    pub(crate) fn find(&self, requests: &[(Option<u32>, &[f64])]) -> Result<Vec<u32>> {
        let mut found = Vec::with_capacity(requests.len());
        let mut taken = std::collections::HashSet::new();
        for (at, (point, y)) in requests.iter().enumerate() {
            let mut row = point.map_or(NONE, |p| self.last_row[p as usize]);
            while row != NONE && (taken.contains(&row) || self.y_of(row) != *y) {
                row = self.row_before[row as usize];
            }
            if row == NONE {
                return Err(Error::UnknownRow { row: at });
            }
            taken.insert(row);
            found.push(row);
        }
        Ok(found)
    }

    /// As [`Targets::find`], for rows held by a rule.
    pub(crate) fn find_held(&self, rows: &[HeldRow]) -> Result<Vec<u32>> {
        let requests: Vec<(Option<u32>, &[f64])> = rows.iter().map(|(point, y)| (Some(*point), &**y)).collect();
        self.find(&requests)
    }

    /// The rows of a point.
    fn rows_of(&self, point: u32) -> Vec<u32> {
        let next = |row: &u32| Some(self.row_before[*row as usize]).filter(|row| *row != NONE);
        std::iter::successors(Some(self.last_row[point as usize]).filter(|row| *row != NONE), next).collect()
    }

    /// Calls `each` with target and weight of a point's rows, in an order of their own.
    pub(crate) fn each_value_of(&self, point: u32, target: usize, mut each: impl FnMut(f64, f64)) {
        let row = self.last_row[point as usize];
        if row != NONE && self.row_before[row as usize] == NONE {
            // Nearly all points have one row.
            return each(self.y_of(row)[target], self.weight_of(row as usize));
        }
        self.values_of(point, target).into_iter().for_each(|(y, weight)| each(y, weight));
    }

    /// Targets and weights of a point's rows, in an order of their own.
    pub(crate) fn values_of(&self, point: u32, target: usize) -> Vec<(f64, f64)> {
        let value = |row: &u32| (self.y_of(*row)[target], self.weight_of(*row as usize));
        let mut values: Vec<(f64, f64)> = self.rows_of(point).iter().map(value).collect();
        values.sort_unstable_by(|a, b| a.partial_cmp(b).expect("targets are finite"));
        values
    }

    fn y_of(&self, row: u32) -> &[f64] {
        &self.y[row as usize * self.n_targets..][..self.n_targets]
    }

    /// Forgets rows, as [`Targets::find`] gave them: their points, and whether all sums must be gathered anew.
    pub(crate) fn remove(&mut self, rows: &[u32]) -> (Vec<u32>, bool) {
        let (mut points, mut changed, mut is_finer) = (Vec::with_capacity(rows.len()), false, false);
        for &row in rows {
            let point = self.point_of[row as usize];
            points.push(point);
            self.unlink(point, row);
            if !changed {
                self.change_sums(point, row, -1);
            }
            self.change_totals(row as usize, -1);
            for channel in 0..self.n_channels() {
                let term = self.term(row as usize, channel);
                changed |= self.scales[channel].remove(term);
            }
            for target in 0..self.n_targets {
                let (square, _) = self.square(row as usize, target);
                is_finer |= self.square_scales[target].remove(square);
            }
            self.point_of[row as usize] = NONE;
            self.multiplicity[point as usize] -= 1;
            self.n_forgotten += 1;
        }
        if changed || is_finer {
            self.add_up();
        }
        self.has_changed |= changed;
        if self.n_forgotten > 64 && self.n_forgotten * 2 > self.point_of.len() {
            self.sweep();
        }
        if changed {
            self.sum_points();
        }
        (points, changed)
    }

    fn unlink(&mut self, point: u32, row: u32) {
        let before = self.row_before[row as usize];
        if self.last_row[point as usize] == row {
            self.last_row[point as usize] = before;
            return;
        }
        let mut at = self.last_row[point as usize];
        while self.row_before[at as usize] != row {
            at = self.row_before[at as usize];
        }
        self.row_before[at as usize] = before;
    }

    /// Writes the rows anew without the forgotten ones.
    fn sweep(&mut self) {
        let rows: Vec<(u32, Vec<f64>, f64)> = self.rows().map(|(p, y, w)| (p, y.to_vec(), w)).collect();
        self.point_of.clear();
        self.y.clear();
        self.weight.clear();
        self.row_before.clear();
        self.last_row.fill(NONE);
        self.n_forgotten = 0;
        for (row, (point, y, weight)) in rows.into_iter().enumerate() {
            self.point_of.push(point);
            self.y.extend(y);
            if self.is_weighted {
                self.weight.push(weight);
            }
            self.row_before.push(self.last_row[point as usize]);
            self.last_row[point as usize] = row as u32;
        }
    }
}

impl PointLabels for Targets {
    const SAMPLE_SIZE: SampleSize = SampleSize { factor: 4, least: 128 };

    fn emptied(&self) -> Self {
        Self::new(self.n_targets)
    }

    fn copy_point(&mut self, from: &Self, theirs: u32, ours: u32) {
        let mut row = from.last_row[theirs as usize];
        while row != NONE {
            let weight = from.weight_of(row as usize);
            self.add(&[ours], from.y_of(row), Some(&[weight]).filter(|_| weight != 1.0).map(|w| &w[..]));
            row = from.row_before[row as usize];
        }
    }

    fn clear_point(&mut self, point: u32) {
        self.remove(&self.rows_of(point));
    }

    fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    fn adapt(&mut self, _: &Self) -> bool {
        false
    }
}
