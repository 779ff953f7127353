//! A free-list pool of the cells of a sweep: their rows and posteriors.
//!
//! A path meets every cell of every tree. With lists of its own for each, a sixth of the time went into making them.

use crate::forest::regression::posterior::Posterior;

/// Rows of each set, as ranges of a tree's permutations, and a posterior for each target.
#[derive(Debug, Default)]
pub(crate) struct Holding {
    pub(crate) ranges: Vec<(u32, u32)>,
    pub(crate) posteriors: Vec<Posterior>,
}

/// The pool of many cells.
#[derive(Debug)]
pub(crate) struct CellPool {
    n_sets: usize,
    n_targets: usize,
    /// Place by place.
    all: Holding,
    free: Vec<u32>,
}

impl CellPool {
    /// None yet, of so many sets (at least one) and targets.
    pub(crate) fn new(n_sets: usize, n_targets: usize) -> Self {
        Self { n_sets, n_targets, all: Holding::default(), free: Vec::new() }
    }

    /// Keeps what a cell holds; the place.
    pub(crate) fn keep(&mut self, holding: &Holding) -> u32 {
        let Self { n_sets, n_targets, all, free } = self;
        let Some(place) = free.pop() else {
            let place = all.ranges.len() / *n_sets;
            all.ranges.extend_from_slice(&holding.ranges);
            all.posteriors.extend_from_slice(&holding.posteriors);
            return place as u32;
        };
        all.ranges[place as usize * *n_sets..][..*n_sets].copy_from_slice(&holding.ranges);
        all.posteriors[place as usize * *n_targets..][..*n_targets].copy_from_slice(&holding.posteriors);
        place
    }

    /// The rows at a place.
    pub(crate) fn ranges(&self, place: u32) -> &[(u32, u32)] {
        &self.all.ranges[place as usize * self.n_sets..][..self.n_sets]
    }

    fn posteriors(&self, place: u32) -> &[Posterior] {
        &self.all.posteriors[place as usize * self.n_targets..][..self.n_targets]
    }

    /// Takes back what is kept at a place.
    pub(crate) fn take(&mut self, place: u32, holding: &mut Holding) {
        holding.ranges.clear();
        holding.ranges.extend_from_slice(self.ranges(place));
        holding.posteriors.clear();
        holding.posteriors.extend_from_slice(self.posteriors(place));
        self.free(place);
    }

    /// Lets a place be used again.
    pub(crate) fn free(&mut self, place: u32) {
        self.free.push(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_taken_back_from_places_used_again() {
        let holding = |k: u32| Holding {
            ranges: vec![(k, k + 1), (2 * k, 3 * k)],
            posteriors: vec![Posterior { mean: f64::from(k), variance: 1.0 }; 3],
        };
        let (mut pool, mut kept, mut found) = (CellPool::new(2, 3), Vec::new(), Holding::default());
        for k in 1..200 {
            kept.push((pool.keep(&holding(k)), k));
            if k % 3 == 0 {
                let (place, k) = kept.remove((k as usize * 7) % kept.len());
                assert_eq!(pool.ranges(place), holding(k).ranges);
                pool.take(place, &mut found);
                assert_eq!((&found.ranges, &found.posteriors), (&holding(k).ranges, &holding(k).posteriors));
            }
        }
        assert_eq!(pool.all.ranges.len(), 2 * kept.len(), "places that are free are used first");
    }
}
