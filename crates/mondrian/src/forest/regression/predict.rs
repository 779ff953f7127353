//! What a regression forest predicts: posteriors of its trees, mixed.

use crate::parallel::prelude::*;

use crate::forest::Unseen;
use crate::forest::regression::batch_predict::BatchPredictor;
use crate::forest::regression::calibration::{Calibration, prior_share};
use crate::forest::regression::mixture::{Normal, quantile};
use crate::forest::regression::posterior::{BlockPath, Gaussian, Mixture, Posterior, Reader};
use crate::forest::regression::{LeafModel, Prior, RegressionForest};
use crate::normal;
use crate::tree::{Child, CodedRows, Frozen, Locator, Traversal};
use crate::{Error, Points, Prediction, Result};

/// Rows predicted together where little is kept of each: the more, the fewer nodes a row has to itself.
const LARGE: usize = 1 << 16;
/// Rows predicted together where every tree's posterior is kept.
const SMALL: usize = 1 << 11;

impl RegressionForest {
    /// Predictive means, row-major by target.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] for rows of the wrong width.
    pub fn predict(&self, points: Points<'_>) -> Result<Vec<f64>> {
        Ok(self.mixtures(points, self.gaussians_for_means())?.iter().map(|(mixed, _)| mixed.mean).collect())
    }

    /// Predictive means as if κ were each of these in turn, the model's own for none: row-major by target, then κ. For choosing
    /// among them by errors on rows to come.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] for rows of the wrong width, [`Error::InvalidParameter`] for a κ that is none.
    pub fn predict_at_kappas(&self, points: Points<'_>, kappas: &[Option<f64>]) -> Result<Vec<f64>> {
        for kappa in kappas {
            Prior { kappa: *kappa, ..Prior::default() }.check()?;
        }
        let own = self.gaussians_for_means();
        let with = |own: &Gaussian, kappa: Option<f64>| Gaussian { kappa: kappa.unwrap_or(own.kappa), ..*own };
        if let ([own], [a, b, c, d], 1) = (own, kappas, points.n_rows()) {
            let mut x = self.core.forest.coordinates(points)?;
            let is_inside = self.core.forest.domain().clamp(&mut x) == 0.0;
            let priors = [a, b, c, d].map(|kappa| with(own, *kappa));
            if let Some(mixtures) = is_inside.then(|| self.mixtures_of_one(&x, &priors)).flatten() {
                return Ok(mixtures.map(|(mixed, _)| mixed.mean).to_vec());
            }
        }
        let mut found = vec![0.0; points.n_rows() * self.n_targets() * kappas.len()];
        for (at, kappa) in kappas.iter().enumerate() {
            let priors: Vec<Gaussian> = own.iter().map(|own| with(own, *kappa)).collect();
            for (slot, (mixed, _)) in found.chunks_exact_mut(kappas.len()).zip(self.mixtures(points, &priors)?) {
                slot[at] = mixed.mean;
            }
        }
        Ok(found)
    }

    /// Predictive means and standard deviations: the trees' predictive variances averaged, plus the spread of
    /// their means, calibrated on rows that were left out unless the noise was given.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] for rows of the wrong width.
    pub fn predict_with_std(&self, points: Points<'_>) -> Result<Prediction> {
        let (t, gaussians, calibrations) = (self.n_targets(), self.gaussians(), self.calibrations());
        let mixtures = self.mixtures(points, gaussians)?;
        let deviation = |(at, (mixed, within)): (usize, &(Posterior, f64))| {
            let gaussian = &gaussians[at % t];
            let share = prior_share(*within, gaussian);
            let factor = calibrations[at % t].as_ref().map_or(1.0, |calibration| calibration.deviation(share));
            (mixed.variance + gaussian.noise_variance).sqrt() * factor
        };
        Ok(Prediction {
            mean: mixtures.iter().map(|(mixed, _)| mixed.mean).collect(),
            std: mixtures.iter().enumerate().map(deviation).collect(),
        })
    }

    /// Mean and variance, without noise, of the mixture over trees, and the trees' own variances on average: by row, then target.
    fn mixtures(&self, points: Points<'_>, gaussians: &[Gaussian]) -> Result<Vec<(Posterior, f64)>> {
        let (t, m) = (self.n_targets(), self.core.forest.n_trees() as f64);
        if points.n_rows() == 1 {
            let mut x = self.core.forest.coordinates(points)?;
            let is_inside = self.core.forest.domain().clamp(&mut x) == 0.0;
            if let (true, [gaussian]) = (is_inside, gaussians)
                && let Some(mixtures) = self.mixtures_of_one(&x, &[*gaussian])
            {
                return Ok(mixtures.to_vec());
            }
        }
        let chunks = self.over_chunks(points, gaussians, LARGE, |rows| {
            let mut mixtures: Vec<(Mixture, f64)> =
                (0..rows.len() * t).map(|at| (Mixture::about(gaussians[at % t].prior_mean), 0.0)).collect();
            // Trees in order: the sum does not depend on threads.
            rows.over_trees(|posteriors| {
                for ((mixture, within), posterior) in mixtures.iter_mut().zip(posteriors) {
                    mixture.add(1.0 / m, *posterior);
                    *within += posterior.variance / m;
                }
            });
            mixtures.iter().map(|(mixture, within)| (mixture.posterior(), *within)).collect::<Vec<_>>()
        })?;
        Ok(chunks.concat())
    }

    /// Quantiles of the predictive distribution: row-major by target, then quantile.
    ///
    /// Errors of rows that were left out say how far off new ones are, in predicted deviations. Where the noise was given, and with
    /// fewer than 20 rows, the distribution is the mixture over trees.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`]; [`Error::InvalidParameter`] for a quantile outside (0, 1).
    pub fn predict_quantiles(&self, points: Points<'_>, quantiles: &[f64]) -> Result<Vec<f64>> {
        if let Some(&value) = quantiles.iter().find(|p| !(**p > 0.0 && **p < 1.0)) {
            return Err(Error::InvalidParameter {
                name: "quantiles",
                value,
                expected: "between 0 and 1, both excluded",
            });
        }
        let calibrations = self.calibrations();
        if calibrations.iter().all(Option::is_none) {
            return self.quantiles_of_mixtures(points, quantiles);
        }
        let (t, gaussians) = (self.n_targets(), self.gaussians());
        // Of rows like those learned, and of the prior.
        let error = |calibration: &Option<Calibration>, p: f64| {
            let prior = normal::quantile(p);
            (calibration.as_ref().map_or(prior, |calibration| calibration.quantile(p)), prior)
        };
        let errors: Vec<Vec<(f64, f64)>> =
            calibrations.iter().map(|c| quantiles.iter().map(|p| error(c, *p)).collect()).collect();
        let of_row = |(at, (mixed, within)): (usize, (Posterior, f64))| {
            let gaussian = &gaussians[at % t];
            let deviation = (mixed.variance + gaussian.noise_variance).sqrt();
            let share = prior_share(within, gaussian);
            errors[at % t].iter().map(move |(near, far)| mixed.mean + deviation * (near + share * (far - near)))
        };
        Ok(self.mixtures(points, gaussians)?.into_iter().enumerate().flat_map(of_row).collect())
    }

    fn quantiles_of_mixtures(&self, points: Points<'_>, quantiles: &[f64]) -> Result<Vec<f64>> {
        let (t, gaussians) = (self.n_targets(), self.gaussians());
        let noise: Vec<f64> = gaussians.iter().map(|g| g.noise_variance).collect();
        let chunks = self.over_chunks(points, gaussians, SMALL, |rows| {
            let n = rows.len() * t;
            let mut all: Vec<Posterior> = Vec::with_capacity(n * self.core.forest.n_trees());
            rows.over_trees(|posteriors| all.extend_from_slice(posteriors));
            let mut found = Vec::with_capacity(n * quantiles.len());
            for at in 0..n {
                let components: Vec<Normal> = all
                    .chunks_exact(n)
                    .map(|tree| (tree[at].mean, (tree[at].variance + noise[at % t]).sqrt()))
                    .collect();
                found.extend(quantiles.iter().map(|p| quantile(&components, *p)));
            }
            found
        })?;
        Ok(chunks.concat())
    }

    /// Runs `reduce` over chunks of at most `most` rows, in parallel, in order.
    fn over_chunks<R: Send>(
        &self,
        points: Points<'_>,
        gaussians: &[Gaussian],
        most: usize,
        reduce: impl Fn(&Chunk<'_>) -> Vec<R> + Sync,
    ) -> Result<Vec<Vec<R>>> {
        let mut inside = self.core.forest.coordinates(points)?;
        let (n_dims, n_threads) = (self.n_dims(), crate::parallel::current_num_threads());
        let n_rows = points.n_rows().div_ceil(n_threads).clamp(1, most);
        let chunks = inside.par_chunks_mut(n_rows * n_dims);
        Ok(chunks.map(|inside| reduce(&Chunk::new(self, gaussians, inside))).collect())
    }
}

/// Rows that are predicted together.
struct Chunk<'a> {
    model: &'a RegressionForest,
    gaussians: &'a [Gaussian],
    /// The points of the root box nearest to the rows, and how far those lie from them.
    inside: CodedRows<'a>,
    distances: Vec<f64>,
}

impl<'a> Chunk<'a> {
    fn new(model: &'a RegressionForest, gaussians: &'a [Gaussian], coordinates: &'a mut [f64]) -> Self {
        let domain = model.core.forest.domain();
        let distances = coordinates.chunks_exact_mut(model.n_dims()).map(|x| domain.clamp(x)).collect();
        Self { model, gaussians, inside: CodedRows::new(domain, coordinates), distances }
    }

    fn len(&self) -> usize {
        self.distances.len()
    }

    /// Calls `take` with the posteriors of each tree in turn, by row, then target.
    fn over_trees(&self, mut take: impl FnMut(&[Posterior])) {
        let core = &self.model.core;
        let mut posteriors = Vec::with_capacity(self.len() * self.model.n_targets());
        for (tree, sums) in core.forest.trees() {
            let reader = Reader { tree, sums, targets: &core.targets };
            posteriors.clear();
            match core.params.leaf_model {
                LeafModel::Hierarchical => self.hierarchical(&reader, &mut posteriors),
                LeafModel::Independent => self.independent(&reader, &mut posteriors),
            }
            take(&posteriors);
        }
    }

    fn rows(&self) -> impl Iterator<Item = (&[f64], f64)> {
        (0..self.len() as u32).map(|row| self.inside.row(row)).zip(self.distances.iter().copied())
    }

    fn hierarchical(&self, reader: &Reader<'_>, posteriors: &mut Vec<Posterior>) {
        let (lifetime, gaussians) = (self.model.view.get(), self.gaussians);
        let together = !self.inside.are_few();
        if together {
            let (tree, forest) = (reader.tree, &self.model.core.forest);
            let (domain, store, rows) = (forest.domain(), forest.store(), &self.inside);
            let traversal = Traversal { tree, domain, store, rows, lifetime, draws_cuts: false };
            BatchPredictor::predict(reader, gaussians, &traversal, posteriors);
        }
        let (forest, mut path) = (&self.model.core.forest, BlockPath::default());
        let mut locator = Locator::new(reader.tree, forest.domain(), forest.store(), self.model.view);
        for (row, (x, distance)) in self.rows().enumerate() {
            if together && distance == 0.0 {
                continue;
            }
            path.follow(&mut locator, x);
            for (target, gaussian) in gaussians.iter().enumerate() {
                let posterior = reader.hierarchical(&path, distance, lifetime, target, gaussian);
                match posteriors.get_mut(row * gaussians.len() + target) {
                    Some(slot) => *slot = posterior,
                    None => posteriors.push(posterior),
                }
            }
        }
    }

    fn independent(&self, reader: &Reader<'_>, posteriors: &mut Vec<Posterior>) {
        let (view, gaussians) = (self.model.view, self.gaussians);
        for ((cell, stays), distance) in self.cells(reader).into_iter().zip(&self.distances) {
            let outside = if *distance == 0.0 { 1.0 } else { (-distance * view.get()).exp() };
            let stays = stays * outside;
            for (target, gaussian) in gaussians.iter().enumerate() {
                let prior = Posterior::prior(gaussian);
                let posterior = match cell {
                    Child::EMPTY => prior,
                    cell => reader.independent(cell, target, gaussian),
                };
                if stays == 1.0 {
                    posteriors.push(posterior);
                    continue;
                }
                let mut mixture = Mixture::about(gaussian.prior_mean);
                mixture.add(stays, posterior);
                mixture.add(1.0 - stays, prior);
                posteriors.push(mixture.posterior());
            }
        }
    }

    /// The training cell of each row, and how likely the row is still in it.
    fn cells(&self, reader: &Reader<'_>) -> Vec<(Child, f64)> {
        let (core, view) = (&self.model.core, self.model.view);
        let (domain, store) = (core.forest.domain(), core.forest.store());
        if core.params.unseen == Unseen::Integrate {
            let mut locator = Locator::new(reader.tree, domain, store, view);
            return self.rows().map(|(x, _)| locator.locate_in_law(x)).collect();
        }
        let cells = reader.tree.cells(domain, store, &self.inside, view, Frozen::Resumed);
        cells.into_iter().map(|cell| (cell, 1.0)).collect()
    }
}
