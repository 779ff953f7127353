//! The mixture of a single row, as a stream asks for it: down all trees in turns, without room for other rows.
//!
//! The numbers are those of many rows together ([`predict`](super::predict)), bit for bit. What is rare in streams is left to that:
//! several targets, independent leaves, rows outside the root box.

use crate::forest::regression::posterior::{Gaussian, Mixture, Posterior, Reader};
use crate::forest::regression::{LeafModel, RegressionForest};
use crate::tree::{Child, Descent, DescentStep, Found};

/// The way down a tree, and what the blocks so far say under each of K priors.
///
/// All nodes and the leaf of a run have the same rows, so a block is read where it ends: at the cut that separates its points, which the way
/// comes to in any case.
struct Way<'a, const K: usize> {
    reader: Reader<'a>,
    posteriors: [Posterior; K],
    is_in_root: bool,
}

impl<'a, const K: usize> Way<'a, K> {
    fn new(reader: Reader<'a>, gaussians: &[Gaussian; K]) -> Self {
        Self { reader, posteriors: gaussians.each_ref().map(Posterior::above_root), is_in_root: true }
    }

    #[inline]
    fn take_block(&mut self, child: Child, gaussians: &[Gaussian; K]) {
        let (sum, weight) = (self.reader.sum(child, 0), self.reader.weight(child));
        for (posterior, gaussian) in self.posteriors.iter_mut().zip(gaussians) {
            *posterior = Posterior::after(*posterior, sum, weight, gaussian);
        }
    }

    /// Takes note of a step and of where it has led; whether a single row can be told.
    #[inline]
    fn take_step(&mut self, descent: &Descent, step: DescentStep, gaussians: &[Gaussian; K]) -> bool {
        self.reader.targets.prefetch_at(self.reader.sums, descent);
        match step {
            DescentStep::Block(id) => {
                self.take_block(Child::inner(id), gaussians);
                self.is_in_root = false;
            }
            DescentStep::PassedNode(_) | DescentStep::PassedChain(_) => {}
            DescentStep::Left if self.is_in_root => self.posteriors = gaussians.each_ref().map(Posterior::prior),
            DescentStep::Unclear if self.is_in_root => return false,
            DescentStep::Left | DescentStep::Stayed | DescentStep::Unclear => {
                // An empty side has the rows of the cut that it is a side of.
                let last = match (self.reader.tree.end_of(descent.link), descent.parent) {
                    (Child::EMPTY, Some((node, _))) => Child::inner(node),
                    (last, _) => last,
                };
                self.take_block(last, gaussians);
            }
        }
        true
    }
}

impl RegressionForest {
    /// Mean and variance, without noise, of the mixture over trees for a row of the root box, and the trees' own variances on
    /// average, under each of K priors of one target. None where this has to be found as for many rows.
    pub(super) fn mixtures_of_one<const K: usize>(
        &self,
        x: &[f64],
        gaussians: &[Gaussian; K],
    ) -> Option<[(Posterior, f64); K]> {
        let core = &*self.core;
        if core.params.leaf_model != LeafModel::Hierarchical || self.n_targets() != 1 {
            return None;
        }
        let (trees, lifetime) = (core.forest.trees(), self.view.get());
        let reader = |(tree, sums)| Reader { tree, sums, targets: &core.targets };
        let mut ways: Vec<Way<'_, K>> =
            trees.iter().map(|(tree, sums)| Way::new(reader((tree, sums)), gaussians)).collect();
        let is_told = core.forest.with_places(|places| {
            let mut is_told = true;
            let visit = |number: usize, descent: &Descent, step| {
                is_told &= ways[number].take_step(descent, step, gaussians);
            };
            places.descend(|tree| &trees[tree].0, trees.len(), (x, lifetime), visit);
            places.ask(x, lifetime, Found::Ends);
            is_told
        });
        if !is_told {
            return None;
        }
        let m = core.forest.n_trees() as f64;
        Some(std::array::from_fn(|k| {
            let (mut mixture, mut within) = (Mixture::about(gaussians[k].prior_mean), 0.0);
            for Way { posteriors, .. } in &ways {
                mixture.add(1.0 / m, posteriors[k]);
                within += posteriors[k].variance / m;
            }
            (mixture.posterior(), within)
        }))
    }
}

#[cfg(test)]
mod tests {
    use crate::forest::{ForestParams, LifetimeChoice, RegressionParams};
    use crate::process::NodeKey;
    use crate::{Lifetime, Points};

    #[test]
    fn a_row_on_its_own_says_what_it_says_among_others() {
        let bits = |numbers: &[f64]| numbers.iter().map(|p| p.to_bits()).collect::<Vec<_>>();
        for (n, n_dims) in [(1, 2), (60, 1), (90, 3), (80, 12)] {
            let draw = |i: usize| NodeKey::root(11, i as u64).draw(0).uniform();
            // Clusters, so that there are chains; some rows are repeated.
            let place = |row: usize, dim: usize| draw(row % 7 * 20 + dim) + 1e-4 * draw(1000 + row * 2 / 3 * 20 + dim);
            let x: Vec<f64> = (0..n * n_dims).map(|at| place(at / n_dims, at % n_dims)).collect();
            let y: Vec<f64> = (0..n).map(|row| draw(5000 + row)).collect();
            for lifetime in [0.0, 0.7, 40.0, 3000.0, f64::INFINITY] {
                let lifetime = LifetimeChoice::Value(Lifetime::new(lifetime).unwrap());
                let forest = ForestParams { n_trees: 6, lifetime, ..ForestParams::default() };
                // The first rows fix a box that others leave.
                let (first, rest) = x.split_at((n / 3).max(1) * n_dims);
                let (first_y, rest_y) = y.split_at((n / 3).max(1));
                let params = RegressionParams { forest, ..RegressionParams::default() };
                let mut model = params.fit(Points::row_major(first, n_dims).unwrap(), first_y).unwrap();
                for (x, y) in rest.chunks_exact(n_dims).zip(rest_y) {
                    model.learn(Points::row_major(x, n_dims).unwrap(), &[*y]).unwrap();
                }
                let queries: Vec<f64> = x
                    .iter()
                    .copied()
                    .chain((0..40 * n_dims).map(|at| place(at / n_dims, at % n_dims) * (1.0 + 1e-5 * draw(9000 + at))))
                    .chain((0..20 * n_dims).map(|at| 3.0 * draw(7000 + at) - 1.0))
                    .collect();
                let together = model.predict_with_std(Points::row_major(&queries, n_dims).unwrap()).unwrap();
                for (row, x) in queries.chunks_exact(n_dims).enumerate() {
                    let alone = model.predict_with_std(Points::row_major(x, n_dims).unwrap()).unwrap();
                    let (mean, std) = (&together.mean[row..=row], &together.std[row..=row]);
                    assert_eq!(
                        (bits(&alone.mean), bits(&alone.std)),
                        (bits(mean), bits(std)),
                        "row {row}, {lifetime:?}"
                    );
                    let x = Points::row_major(x, n_dims).unwrap();
                    for kappas in [&[None, Some(0.8), Some(3.2), Some(12.8)][..], &[Some(3.2)]] {
                        let several = model.predict_at_kappas(x, kappas).unwrap();
                        let one_by_one: Vec<f64> =
                            kappas.iter().map(|kappa| model.predict_at_kappas(x, &[*kappa]).unwrap()[0]).collect();
                        assert_eq!(bits(&several), bits(&one_by_one));
                    }
                    assert_eq!(bits(&model.predict_at_kappas(x, &[None]).unwrap()), bits(&alone.mean));
                }
            }
        }
    }

    #[test]
    fn a_row_that_was_asked_for_is_learned_as_any_other() {
        let draw = |i: usize| NodeKey::root(13, i as u64).draw(0).uniform();
        for (n, n_dims, lifetime) in [(60, 1, f64::INFINITY), (80, 3, 40.0), (70, 12, f64::INFINITY)] {
            let place = |row: usize, dim: usize| {
                let far = if row % 19 == 18 { 3.0 } else { 1.0 };
                far * draw(row % 5 * 20 + dim) + 1e-3 * draw(1000 + row * 3 / 4 * 20 + dim)
            };
            let x: Vec<f64> = (0..n * n_dims).map(|at| place(at / n_dims, at % n_dims)).collect();
            let row = |i: usize| Points::row_major(&x[i * n_dims..(i + 1) * n_dims], n_dims).unwrap();
            let y = |i: usize| [draw(5000 + i)];
            let lifetime = LifetimeChoice::Value(Lifetime::new(lifetime).unwrap());
            let forest = ForestParams { n_trees: 5, lifetime, ..ForestParams::default() };
            let params = RegressionParams { forest, ..RegressionParams::default() };
            let mut silent = params.fit(row(0), &y(0)).unwrap();
            let mut asked = silent.clone();
            for i in 1..n {
                silent.learn(row(i), &y(i)).unwrap();
                // Twice in a row the model sees a stream; then another row is asked for last, or rows change in between.
                asked.predict(row(i)).unwrap();
                if i % 5 == 3 {
                    asked.predict(row((i + 7) % n)).unwrap();
                }
                if i % 5 == 4 {
                    asked.forget(row(i - 1), &y(i - 1)).unwrap();
                    asked.learn(row(i - 1), &y(i - 1)).unwrap();
                }
                asked.learn(row(i), &y(i)).unwrap();
                let (a, b) = (silent.forest(), asked.forest());
                let are_same =
                    a.trees().iter().zip(b.trees()).all(|((x, _), (y, _))| x.same_as(a.store(), y, b.store()));
                assert!(are_same, "D = {n_dims}, row {i}");
                let bits = |model: &crate::RegressionForest| model.predict(row(i / 2)).unwrap()[0].to_bits();
                assert_eq!(bits(&silent), bits(&asked), "D = {n_dims}, row {i}");
                asked.predict(row((i + 1) % n)).unwrap();
            }
        }
    }
}
