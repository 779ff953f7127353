//! Collects a path during its computation, in bounded memory.

use crate::path::{Loss, PathNotes, RegularizationPath};

/// Largest number of values of a path by default; a longer path is thinned as it grows.
const DEFAULT_CAP: usize = 1 << 20;

/// Collects the losses of a moving model, in ascending order of lifetime.
///
/// ```
/// use mondrian::Loss;
/// use mondrian::internals::path::PathBuilder;
/// let mut path = PathBuilder::new(Loss::Rmse, 1);
/// path.push(0.0, 3.0, &[4.0]);
/// path.push(0.5, 2.0, &[2.5]);
/// path.push(0.9, 1.0, &[2.8]);
/// let path = path.finish(None);
/// assert_eq!(path.best_lifetime().get(), 0.5);
/// ```
#[derive(Debug, Clone)]
pub struct PathBuilder {
    path: RegularizationPath,
    cap: usize,
}

impl PathBuilder {
    /// An empty path with that many validation sets.
    pub fn new(loss: Loss, n_validation: usize) -> Self {
        let path = RegularizationPath {
            loss,
            lifetimes: Vec::new(),
            train: Vec::new(),
            validation: vec![Vec::new(); n_validation],
            leave_one_out: None,
            standard_error: None,
            is_thinned: false,
            notes: PathNotes::default(),
        };
        Self { path, cap: DEFAULT_CAP }
    }

    /// Keeps at most `cap` values (at least 16).
    #[must_use]
    pub fn cap(mut self, cap: usize) -> Self {
        self.cap = cap.max(16);
        self
    }

    /// The values from a lifetime on. A second push at the same lifetime replaces the first.
    ///
    /// # Panics
    /// If lifetimes descend, or for a wrong number of validation losses.
    pub fn push(&mut self, lifetime: f64, train: f64, validation: &[f64]) {
        assert_eq!(validation.len(), self.path.validation.len(), "a loss for each validation set");
        if let Some(&last) = self.path.lifetimes.last() {
            assert!(lifetime >= last, "lifetimes ascend");
            if lifetime == last {
                self.pop();
            }
        }
        self.path.lifetimes.push(lifetime);
        self.path.train.push(train);
        for (curve, value) in self.path.validation.iter_mut().zip(validation) {
            curve.push(*value);
        }
        if self.path.len() >= 2 * self.cap {
            self.path = self.path.thinned(self.cap);
        }
    }

    /// As [`PathBuilder::push`], with a leave-one-out loss.
    pub fn push_leave_one_out(&mut self, lifetime: f64, train: f64, validation: &[f64], leave_one_out: f64) {
        // Pushed first, so that thinning sees curves of one length.
        let before = self.path.lifetimes.last().copied();
        let curve = self.path.leave_one_out.get_or_insert_default();
        if before == Some(lifetime) {
            curve.pop();
        }
        curve.push(leave_one_out);
        let popped = before == Some(lifetime);
        if popped {
            // `push` replaces the last value of the other curves, but not of this one.
            let kept = self.path.leave_one_out.take();
            self.push(lifetime, train, validation);
            self.path.leave_one_out = kept;
        } else {
            self.push(lifetime, train, validation);
        }
    }

    fn pop(&mut self) {
        self.path.lifetimes.pop();
        self.path.train.pop();
        for curve in &mut self.path.validation {
            curve.pop();
        }
        if let Some(curve) = &mut self.path.leave_one_out {
            curve.pop();
        }
    }

    /// The path, with the standard error of the selecting loss at its minimum if it is known.
    ///
    /// # Panics
    /// Without any value.
    pub fn finish(self, standard_error: Option<f64>) -> RegularizationPath {
        assert!(!self.path.lifetimes.is_empty(), "a path has a value at lifetime 0");
        let path = if self.path.len() > self.cap { self.path.thinned(self.cap) } else { self.path };
        RegularizationPath { standard_error, ..path }
    }

    /// The values so far.
    pub fn so_far(&self) -> &RegularizationPath {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lifetime;

    fn build(n: usize, cap: usize) -> RegularizationPath {
        let mut path = PathBuilder::new(Loss::Rmse, 2).cap(cap);
        for i in 0..n {
            let t = i as f64;
            let dip = if i == n / 3 { -5.0 } else { 0.0 };
            path.push_leave_one_out(t, -t, &[(t - 700.0).abs() + dip, t], t * t);
        }
        path.finish(Some(1.5))
    }

    #[test]
    fn thinning_keeps_first_last_and_smallest() {
        let (full, thin) = (build(5000, 1 << 20), build(5000, 64));
        assert!(!full.is_thinned() && thin.is_thinned());
        assert!(thin.len() <= 64);
        assert_eq!(thin.best_lifetime(), full.best_lifetime());
        assert_eq!(thin.lifetimes()[0], 0.0);
        assert_eq!(thin.lifetimes()[thin.len() - 1], 4999.0);
        assert_eq!(thin.leave_one_out().unwrap().len(), thin.len());
        assert_eq!(full.thinned(100).best_lifetime(), full.best_lifetime());
    }

    /// A path whose cuts are dense at its end keeps values in every octave after repeated thinning; thinning evenly by
    /// number would keep none in the first two.
    #[test]
    fn thinning_keeps_the_beginning() {
        let lifetime = |i: i32| (f64::from(i) / 200_000.0).powf(0.25);
        let mut path = PathBuilder::new(Loss::Rmse, 0).cap(128);
        (0..200_000).for_each(|i| path.push(lifetime(i), 1.0, &[]));
        let path = path.finish(None);
        assert!(path.len() <= 128);
        for octave in 0..4 {
            let (from, to) = (lifetime(16_i32.pow(octave)), lifetime(16_i32.pow(octave + 1)));
            let held = path.lifetimes().iter().filter(|t| (from..to).contains(*t)).count();
            assert!(held >= 6, "{held} of 128 values in octave {octave}");
        }
    }

    #[test]
    fn values_hold_from_their_lifetime_on() {
        let path = build(2000, 1 << 20);
        let at = |t: f64| path.value_at(Lifetime::new(t).unwrap());
        assert_eq!((at(0.0), at(10.5), at(10.0), at(1e9)), (700.0, 690.0, 690.0, 1299.0));
        assert_eq!(at(f64::INFINITY), 1299.0);
        assert_eq!(path.best_lifetime().get(), 700.0);
        assert_eq!(path.best_lifetime_1se().get(), 699.0);
    }

    #[test]
    fn a_second_value_at_one_lifetime_replaces_the_first() {
        let mut path = PathBuilder::new(Loss::Error, 0);
        path.push(0.0, 1.0, &[]);
        path.push(0.0, 2.0, &[]);
        path.push_leave_one_out(0.0, 3.0, &[], 4.0);
        let path = path.finish(None);
        assert_eq!((path.train(), path.leave_one_out()), (&[3.0][..], Some(&[4.0][..])));
    }
}
