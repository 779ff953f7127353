//! The models behind one face: fitted, saved, loaded, asked.

mod laplace;

use std::path::Path;

use mondrian::Points;
use mondrian::model_file::{Archive, Saved};
use mondrian::tuning::LaplaceKernelRidge;
use serde::{Deserialize, Serialize};

use crate::args::{ModelArgs, ModelKind};
use crate::failure::{Failure, Outcome};
use crate::prepare::{Preparation, Prepared};
use crate::screen::Screen;

/// A fitted model of any kind.
#[derive(Debug)]
pub(crate) enum Model {
    Laplace(LaplaceKernelRidge),
}

/// What the program keeps beside the model: enough to predict from raw rows and to fit again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) preparation: Preparation,
    pub(crate) seed: u64,
    /// The file it was fitted on.
    pub(crate) data: String,
}

/// A model and how its rows are prepared.
#[derive(Debug)]
pub(crate) struct Fitted {
    pub(crate) model: Model,
    pub(crate) record: Record,
}

/// What a model says about some rows.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// A normal distribution a row; only its mean where that was asked for.
    Regression { mean: Vec<f64>, std: Option<Vec<f64>> },
}

/// A line about a fitted model, for people and machines.
pub(crate) struct Facts(pub(crate) Vec<(&'static str, serde_json::Value)>);

impl Model {
    /// Fits a model of this kind.
    pub(crate) fn fit(
        kind: ModelKind,
        preparation: &Preparation,
        rows: &Prepared,
        args: &ModelArgs,
        screen: Screen,
    ) -> Outcome<Self> {
        match kind {
            ModelKind::Laplace => laplace::fit(preparation, rows, args, screen).map(Self::Laplace),
        }
    }

    /// Predictions for prepared rows.
    pub(crate) fn predict(&self, points: Points<'_>, mean_only: bool) -> Outcome<Answer> {
        match self {
            Self::Laplace(model) if mean_only => Ok(Answer::Regression { mean: model.predict(points)?, std: None }),
            Self::Laplace(model) => {
                let (mean, std) = model.predict_with_std(points)?;
                Ok(Answer::Regression { mean, std: Some(std) })
            }
        }
    }

    /// The kind's name.
    pub(crate) fn kind(&self) -> ModelKind {
        match self {
            Self::Laplace(_) => ModelKind::Laplace,
        }
    }

    /// What is worth saying about it.
    pub(crate) fn facts(&self, features: &[String]) -> Facts {
        match self {
            Self::Laplace(model) => laplace::facts(model, features),
        }
    }

    fn to_archive(&self) -> mondrian::Result<Archive> {
        match self {
            Self::Laplace(model) => model.to_archive(),
        }
    }

    fn from_archive(archive: &Archive) -> mondrian::Result<Option<Self>> {
        Ok(Some(match archive.kind() {
            LaplaceKernelRidge::KIND => Self::Laplace(LaplaceKernelRidge::from_archive(archive)?),
            _ => return Ok(None),
        }))
    }
}

impl Fitted {
    /// The bytes of the model file.
    pub(crate) fn to_bytes(&self) -> Outcome<Vec<u8>> {
        let mut archive = self.model.to_archive()?;
        archive.set_params("program", &self.record)?;
        Ok(archive.to_bytes()?)
    }

    /// Writes the model file, whole or not at all.
    pub(crate) fn save(&self, path: &Path) -> Outcome<()> {
        crate::save::write_file(path, &self.to_bytes()?)
    }

    /// Reads a model file.
    pub(crate) fn load(path: &Path) -> Outcome<Self> {
        let bytes = crate::commands::read_file(path)?;
        Self::from_bytes(&bytes).map_err(|failure| match failure {
            Failure::Input { what, mend } => Failure::input(format!("{}: {what}", path.display()), mend),
            other => other,
        })
    }

    /// The model of a file's bytes, which may come from anywhere.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Outcome<Self> {
        let archive = Archive::from_bytes(bytes)?;
        let Some(model) = Model::from_archive(&archive)? else {
            return Err(Failure::input(
                format!("a model of the kind {:?}, which this program does not know", archive.kind()),
                "use the program that wrote it",
            ));
        };
        let record: Record = archive.params("program").map_err(|_| {
            Failure::input(
                "the model was not written by `mondrian fit`: it does not say how rows are prepared",
                "use it from Python or Rust, or fit it again here",
            )
        })?;
        record.preparation.check()?;
        Ok(Self { model, record })
    }
}

impl Prepared {
    /// The inputs as the library takes them.
    pub(crate) fn points(&self, preparation: &Preparation) -> Outcome<Points<'_>> {
        Ok(Points::row_major(&self.x, preparation.n_features())?)
    }
}
