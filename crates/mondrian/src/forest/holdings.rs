//! What cells on the way through time hold: rows and beliefs, in places that are used again.
//!
//! A path meets every cell of every tree. Two lists of its own for each would be most of the work.

use super::posterior::Belief;

/// Rows of each set, as ranges of a tree's permutations, and a belief for each target.
#[derive(Debug, Clone, Default)]
pub(super) struct Holding {
    pub(super) ranges: Vec<(u32, u32)>,
    pub(super) beliefs: Vec<Belief>,
}

/// The holdings of many cells, all with as many sets and targets.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    all: Holding,
    free: Vec<u32>,
    n_places: u32,
}

impl Holdings {
    /// Keeps what a cell holds; the place.
    pub(super) fn keep(&mut self, holding: &Holding) -> u32 {
        let (sets, targets) = (holding.ranges.len(), holding.beliefs.len());
        if let Some(place) = self.free.pop() {
            let at = place as usize;
            self.all.ranges[at * sets..][..sets].copy_from_slice(&holding.ranges);
            self.all.beliefs[at * targets..][..targets].copy_from_slice(&holding.beliefs);
            return place;
        }
        self.all.ranges.extend_from_slice(&holding.ranges);
        self.all.beliefs.extend_from_slice(&holding.beliefs);
        self.n_places += 1;
        self.n_places - 1
    }

    /// The rows at a place, of so many sets.
    pub(super) fn ranges(&self, place: u32, n_sets: usize) -> &[(u32, u32)] {
        &self.all.ranges[place as usize * n_sets..][..n_sets]
    }

    /// Takes back what is kept at a place. `holding` has as many sets and targets.
    pub(super) fn take(&mut self, place: u32, holding: &mut Holding) {
        let (at, sets, targets) = (place as usize, holding.ranges.len(), holding.beliefs.len());
        holding.ranges.copy_from_slice(&self.all.ranges[at * sets..][..sets]);
        holding.beliefs.copy_from_slice(&self.all.beliefs[at * targets..][..targets]);
        self.free(place);
    }

    /// Lets a place be used again.
    pub(super) fn free(&mut self, place: u32) {
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
            beliefs: vec![Belief { mean: f64::from(k), variance: 1.0 }; 3],
        };
        let (mut holdings, mut kept, mut found) = (Holdings::default(), Vec::new(), holding(0));
        for k in 1..200 {
            kept.push((holdings.keep(&holding(k)), k));
            if k % 3 == 0 {
                let (place, k) = kept.remove((k as usize * 7) % kept.len());
                assert_eq!(holdings.ranges(place, 2), holding(k).ranges);
                holdings.take(place, &mut found);
                assert_eq!((&found.ranges, &found.beliefs), (&holding(k).ranges, &holding(k).beliefs));
            }
        }
        assert_eq!(holdings.n_places as usize, kept.len(), "places that are free are used first");
    }
}
