//! Models as bytes: one versioned, checksummed container for files, pickles and messages between machines.
//!
//! The container is a [safetensors] file: eight bytes that hold the length of a JSON header, the header, then the
//! arrays' little-endian numbers. Any safetensors reader can list and load the arrays; this one checks more. The format
//! version, the kind of model, its parameters and a CRC-32 of every array are in the header's `__metadata__`
//! (`docs/model-format.md` has the whole description).
//!
//! This module does not access files except in [`Saved::save_to`] and [`Saved::load_from`]: it converts models to and
//! from bytes.
//!
//! ```
//! use mondrian::Saved;
//! use mondrian::internals::model_file::Archive;
//!
//! struct Centre { at: Vec<f64>, radius: f64 }
//!
//! impl Saved for Centre {
//!     const KIND: &'static str = "example.centre";
//!     fn to_archive(&self) -> mondrian::Result<Archive> {
//!         let mut archive = Archive::new(Self::KIND);
//!         archive.insert_vec("at", self.at.clone())?;
//!         archive.set_params("centre", &self.radius)?;
//!         Ok(archive)
//!     }
//!     fn from_archive(archive: &Archive) -> mondrian::Result<Self> {
//!         Ok(Self { at: archive.vec("at")?, radius: archive.params("centre")? })
//!     }
//! }
//!
//! let bytes = Centre { at: vec![1.0, 2.0], radius: 0.5 }.to_bytes()?;
//! assert_eq!(Centre::from_bytes(&bytes)?.at, [1.0, 2.0]);
//! # Ok::<(), mondrian::Error>(())
//! ```
//!
//! [safetensors]: https://github.com/huggingface/safetensors

mod archive;
mod array;
mod decode;
mod encode;
pub mod wide_float;

pub use crate::error::ModelFileError;
pub use archive::Archive;
pub use array::{Array, Element, Numbers};

use crate::Result;

/// The newest version of the container that this library writes and reads.
pub const VERSION: u32 = 2;

/// The value of the metadata entry `format`, which distinguishes a model from any other safetensors file.
pub const FORMAT: &str = "mondrian-model";

/// A model that can be turned into bytes and back.
///
/// `from_archive` receives untrusted bytes: it must check every length, index and number it relies on, and
/// return an error (usually [`ModelFileError::Inconsistent`]) where they do not fit together.
pub trait Saved: Sized {
    /// The kind of model, such as `"forest.regression"`; written to the file and checked when it is read.
    const KIND: &'static str;

    /// The model's parameters and arrays.
    ///
    /// # Errors
    /// [`ModelFileError`], where a name is given twice or an array does not fill its shape.
    fn to_archive(&self) -> Result<Archive>;

    /// As [`Saved::to_archive`], consuming the model: parts that are not in the archive are freed first, so that less
    /// memory is needed than for both.
    ///
    /// # Errors
    /// As for [`Saved::to_archive`].
    fn into_archive(self) -> Result<Archive> {
        self.to_archive()
    }

    /// The model of an archive of this kind.
    ///
    /// # Errors
    /// [`ModelFileError`], where something is missing or does not fit.
    fn from_archive(archive: &Archive) -> Result<Self>;

    /// The model as the bytes of a model file.
    ///
    /// # Errors
    /// As for [`Saved::to_archive`].
    fn to_bytes(&self) -> Result<Vec<u8>> {
        self.to_archive()?.to_bytes()
    }

    /// Writes the model file to a file, a socket or a vector.
    ///
    /// ```
    /// use mondrian::{Points, RegressionForest, Saved};
    /// let points = Points::row_major(&[0.0, 1.0, 2.0], 1)?;
    /// let forest = RegressionForest::params().n_trees(5).fit(points, &[0.0, 1.0, 4.0])?;
    /// let mut file = Vec::new();
    /// forest.save(&mut file)?;
    /// assert_eq!(RegressionForest::load(&file[..])?.predict(points)?, forest.predict(points)?);
    /// # Ok::<(), mondrian::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Saved::to_archive`], and [`crate::Error::Io`].
    fn save(&self, mut to: impl std::io::Write) -> Result<()> {
        Ok(to.write_all(&self.to_bytes()?).and_then(|()| to.flush())?)
    }

    /// Reads the model file of [`Saved::save`].
    ///
    /// # Errors
    /// As for [`Saved::from_bytes`], and [`crate::Error::Io`].
    fn load(mut from: impl std::io::Read) -> Result<Self> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes)?;
        Self::from_bytes(&bytes)
    }

    /// Writes the model file of this path, replacing what is there.
    ///
    /// # Errors
    /// As for [`Saved::save`].
    fn save_to(&self, path: impl AsRef<std::path::Path>) -> Result<()> {
        self.save(std::fs::File::create(path)?)
    }

    /// Reads the model file of this path.
    ///
    /// # Errors
    /// As for [`Saved::load`].
    fn load_from(path: impl AsRef<std::path::Path>) -> Result<Self> {
        Self::load(std::fs::File::open(path)?)
    }

    /// The model from the bytes of a model file.
    ///
    /// # Errors
    /// [`ModelFileError`], where the bytes are not a valid model file of this kind.
    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let archive = Archive::from_bytes(bytes)?;
        archive.check_kind(Self::KIND)?;
        Self::from_archive(&archive)
    }
}
