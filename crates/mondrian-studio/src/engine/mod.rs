//! All calls into the library: fits, and queries of fitted models at a lifetime.

mod fit;
mod inputs;
mod moving;
mod open;
mod plane;
mod row;
mod stream;
mod view;

pub(crate) use fit::{Watch, fit};
pub(crate) use open::{n_trees, open};
pub(crate) use plane::plane_of_stream;
pub(crate) use stream::Stream;

use std::sync::OnceLock;

use mondrian::internals::laplace::LaplaceKernelRidge;
use mondrian::internals::tree::Domain;
use mondrian::process::BuiltInMeasure;
use mondrian::{
    ClassificationForest, ClassificationPath, DensityForest, Error, GridRidge, KernelRidge, LaplaceClassifier,
    LaplaceRegressor, Lifetime, Points, RegressionForest, RegularizationPath,
};

use crate::api::{Curve, Problem};
use crate::tables::Part;

/// Largest number of values of a curve sent to the page.
const CURVE_POINTS: usize = 1500;
/// Largest number of held-out rows in the charts.
const SHOWN_ROWS: usize = 1000;

/// A fitted model of any kind.
pub(crate) enum Model {
    Laplace(Box<LaplaceRegressor>),
    LaplaceClasses(Box<LaplaceClassifier>),
    /// The report's kernel, with only lifetimes tuned: from a file only.
    Axes(Box<LaplaceKernelRidge>),
    Forest {
        model: RegressionForest,
        path: RegularizationPath,
        deviations: OnceLock<moving::Deviations>,
    },
    Classifier {
        model: Box<ClassificationForest>,
        path: Box<ClassificationPath>,
    },
    Kernel {
        model: Box<KernelRidge>,
        path: RegularizationPath,
    },
    Grid(Box<GridRidge>),
    Density {
        model: Box<DensityForest>,
        path: RegularizationPath,
    },
}

impl Model {
    /// Losses at every lifetime, if the model has a path.
    pub(crate) fn path(&self) -> Option<&RegularizationPath> {
        match self {
            Self::Forest { path, .. } | Self::Kernel { path, .. } | Self::Density { path, .. } => Some(path),
            Self::Classifier { path, .. } => Some(path.log_loss()),
            Self::Laplace(_) | Self::LaplaceClasses(_) | Self::Axes(_) | Self::Grid(_) => None,
        }
    }

    /// A forest of numbers.
    fn forest(model: RegressionForest, path: RegularizationPath) -> Self {
        Self::Forest { model, path, deviations: OnceLock::new() }
    }

    /// The curve for the page.
    pub(crate) fn curve(&self) -> Option<Curve> {
        let whole = self.path()?;
        let path = whole.thinned(CURVE_POINTS);
        let n = path.lifetimes().iter().position(|l| !l.is_finite()).unwrap_or(path.len());
        let mut lifetimes = path.lifetimes()[..n].to_vec();
        let mut train = path.train()[..n].to_vec();
        let mut held_out = path.validation().first().map_or(Vec::new(), |losses| losses[..n].to_vec());
        let last_cut = lifetimes.last().copied().filter(|l| *l > 0.0).unwrap_or(1.0);
        // Trees that end later than their last cut are shown to their end.
        let end = self.trees_lifetime();
        let to = if end.is_finite() { last_cut.max(end.get()) } else { last_cut };
        if to > last_cut {
            lifetimes.push(to);
            for losses in [&mut train, &mut held_out] {
                losses.extend(losses.last().copied());
            }
        }
        let first = lifetimes.iter().copied().find(|l| *l > 0.0).unwrap_or(to);
        let finite = |l: Lifetime| if l.is_finite() { l.get() } else { to };
        let (best, simplest) = match whole.validation() {
            [] => (self.trees_lifetime(), self.trees_lifetime()),
            _ => (whole.best_lifetime(), whole.best_lifetime_1se()),
        };
        Some(Curve {
            loss: path.loss().name().to_owned(),
            train,
            held_out,
            best: finite(best).min(to),
            best_1se: finite(simplest).min(to),
            // Nothing changes before the first cut, and the first cuts change little: four decades are enough for the
            // slider.
            from: (first * 0.8).max(to * 1e-4),
            to,
            lifetimes,
        })
    }

    /// The requested lifetime, by default the best one, at most that of the trees.
    pub(crate) fn lifetime(&self, requested: Option<f64>) -> Result<Option<Lifetime>, Problem> {
        let Some(path) = self.path() else { return Ok(None) };
        let Some(requested) = requested else {
            let own = path.validation().is_empty().then(|| self.trees_lifetime());
            return Ok(Some(own.unwrap_or_else(|| path.best_lifetime())));
        };
        let lifetime = Lifetime::new(requested).map_err(|e| problem(&e))?;
        let last = path.lifetimes().last().copied().unwrap_or(0.0);
        Ok(Some(match self {
            Self::Density { .. } | Self::Kernel { .. } => lifetime.min(Lifetime::new(last).unwrap_or(Lifetime::ZERO)),
            _ => lifetime.min(self.trees_lifetime()),
        }))
    }

    /// The lifetime of the trees; infinite for a forest fitted here.
    fn trees_lifetime(&self) -> Lifetime {
        self.trees().map_or(Lifetime::INFINITE, |(domain, _)| domain.lifetime())
    }

    /// Box, keys and measure of the trees that a plane is cut from; none for models without trees.
    fn trees(&self) -> Option<(&Domain, &BuiltInMeasure)> {
        match self {
            Self::Forest { model, .. } => Some((model.forest().domain(), model.forest().measure())),
            Self::Classifier { model, .. } => Some((model.forest().domain(), model.forest().measure())),
            Self::Kernel { model, .. } => {
                let forest = model.features().forest();
                Some((forest.domain(), forest.measure()))
            }
            Self::Density { model, .. } => Some((model.forest().domain(), model.forest().measure())),
            Self::Laplace(_) | Self::LaplaceClasses(_) | Self::Axes(_) | Self::Grid(_) => None,
        }
    }
}

/// The held-out rows in the charts, at equal steps.
pub(crate) fn shown(part: &Part) -> Vec<usize> {
    let stride = part.rows.len().div_ceil(SHOWN_ROWS).max(1);
    (0..part.rows.len()).step_by(stride).collect()
}

/// Some rows of a part.
fn rows_of(part: &Part, which: &[usize], width: usize) -> Vec<f64> {
    which.iter().flat_map(|&row| &part.x[row * width..][..width]).copied().collect()
}

fn points(x: &[f64], width: usize) -> Result<Points<'_>, Problem> {
    Points::row_major(x, width).map_err(|e| problem(&e))
}

/// An error of the library, for the page.
pub(crate) fn problem(error: &Error) -> Problem {
    let hint = match error {
        Error::NotFinite { .. } => Some("choose what to do about missing cells"),
        Error::Empty { .. } => Some("give at least one row and one input"),
        Error::ZeroWidth { .. } => Some("leave that constant column out"),
        Error::TooLarge { what, .. } if what.starts_with("bytes of the rows") => Some("use fewer rows or columns"),
        Error::TooLarge { .. } => Some("take a smaller lifetime or fewer trees"),
        Error::Cancelled => Some("fit it again to go on"),
        _ => None,
    };
    Problem { message: error.to_string(), hint: hint.map(str::to_owned), column: None }
}

pub(crate) use fit::Classified;
