//! Threads: rayon with the feature `parallel`, one thread without it. Results are the same bits either way.

#[cfg(feature = "parallel")]
pub(crate) use rayon::{current_num_threads, join};

/// The names of `rayon::prelude`.
#[cfg(feature = "parallel")]
pub(crate) mod prelude {
    pub(crate) use rayon::prelude::*;
}

#[cfg(not(feature = "parallel"))]
pub(crate) use sequential::{current_num_threads, join};

#[cfg(not(feature = "parallel"))]
pub(crate) mod prelude {
    pub(crate) use super::sequential::{IntoParallel, ParallelIterator, ParallelSlice};
}

/// The same names on one thread: ordinary iterators.
#[cfg(not(feature = "parallel"))]
mod sequential {
    use std::cmp::Ordering;

    pub(crate) fn current_num_threads() -> usize {
        1
    }

    pub(crate) fn join<A, B>(a: impl FnOnce() -> A, b: impl FnOnce() -> B) -> (A, B) {
        (a(), b())
    }

    pub(crate) trait ParallelSlice<T> {
        fn par_iter(&self) -> std::slice::Iter<'_, T>;
        fn par_iter_mut(&mut self) -> std::slice::IterMut<'_, T>;
        fn par_chunks(&self, size: usize) -> std::slice::Chunks<'_, T>;
        fn par_chunks_mut(&mut self, size: usize) -> std::slice::ChunksMut<'_, T>;
        fn par_sort_unstable_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);
    }

    impl<T> ParallelSlice<T> for [T] {
        fn par_iter(&self) -> std::slice::Iter<'_, T> {
            self.iter()
        }

        fn par_iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
            self.iter_mut()
        }

        fn par_chunks(&self, size: usize) -> std::slice::Chunks<'_, T> {
            self.chunks(size)
        }

        fn par_chunks_mut(&mut self, size: usize) -> std::slice::ChunksMut<'_, T> {
            self.chunks_mut(size)
        }

        fn par_sort_unstable_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering) {
            self.sort_unstable_by(compare);
        }
    }

    pub(crate) trait IntoParallel: IntoIterator + Sized {
        fn into_par_iter(self) -> Self::IntoIter {
            self.into_iter()
        }
    }

    impl<I: IntoIterator> IntoParallel for I {}

    pub(crate) trait ParallelIterator: Iterator + Sized {
        fn for_each_init<S>(self, mut init: impl FnMut() -> S, mut each: impl FnMut(&mut S, Self::Item)) {
            let mut state = init();
            self.for_each(|item| each(&mut state, item));
        }

        fn with_min_len(self, _: usize) -> Self {
            self
        }
    }

    impl<I: Iterator> ParallelIterator for I {}
}
