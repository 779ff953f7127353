//! The contents of a model file: a kind, parameter sets and named arrays.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Result;
use crate::model_file::{Array, Element, ModelFileError, VERSION, decode, encode};

/// Longest name of an array or parameter set, in bytes.
const LONGEST_NAME: usize = 200;
/// The prefix of the name of a parameter set in the metadata.
const PARAMS: &str = "params:";
/// The metadata entries that the container itself writes.
pub(crate) const RESERVED: [&str; 5] = ["format", "version", "kind", "writer", "crc32"];

/// The contents of a model file; see [`Saved`](crate::model_file::Saved) for how models are stored.
///
/// Names are arbitrary; a model made of parts stores each under a prefix with [`Archive::put`].
#[derive(Debug, Clone, PartialEq)]
pub struct Archive {
    kind: String,
    writer: String,
    version: u32,
    metadata: BTreeMap<String, String>,
    arrays: BTreeMap<String, Array>,
}

impl Archive {
    /// An archive without parameters and arrays yet.
    pub fn new(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            writer: concat!("mondrian ", env!("CARGO_PKG_VERSION")).to_owned(),
            version: VERSION,
            metadata: BTreeMap::new(),
            arrays: BTreeMap::new(),
        }
    }

    pub(crate) fn read_as(kind: String, writer: String, version: u32) -> Self {
        Self { kind, writer, version, metadata: BTreeMap::new(), arrays: BTreeMap::new() }
    }

    /// The kind of model.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The program that wrote it.
    pub fn writer(&self) -> &str {
        &self.writer
    }

    /// The container's version in the file it was read from; [`VERSION`] for a new one. Writing always writes that.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// All free metadata: parameter sets are under `params:NAME` as JSON.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// All arrays by name.
    pub fn arrays(&self) -> &BTreeMap<String, Array> {
        &self.arrays
    }

    /// Refuses an archive of another kind.
    ///
    /// # Errors
    /// [`ModelFileError::WrongKind`].
    pub fn check_kind(&self, expected: &str) -> Result<()> {
        if self.kind == expected {
            return Ok(());
        }
        Err(ModelFileError::WrongKind { expected: expected.to_owned(), found: self.kind.clone() }.into())
    }

    /// Adds an entry of metadata.
    ///
    /// # Errors
    /// [`ModelFileError::Name`] if the key is there already, empty, too long, or one of the container's own.
    pub fn set_metadata(&mut self, key: &str, value: &str) -> Result<()> {
        check_name(key)?;
        if RESERVED.contains(&key) || key.starts_with("crc32:") || self.metadata.contains_key(key) {
            return Err(ModelFileError::Name { name: key.to_owned() }.into());
        }
        self.metadata.insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    /// Adds a set of parameters, stored as JSON.
    ///
    /// JSON has no infinities: give such a field `#[serde(with = "mondrian::internals::model_file::wide_float")]`
    /// ([`crate::Lifetime`] takes care of itself).
    ///
    /// # Errors
    /// [`ModelFileError::Name`] for a name given twice, [`ModelFileError::Parameters`] for values that JSON cannot
    /// represent.
    pub fn set_params<T: Serialize>(&mut self, name: &str, params: &T) -> Result<()> {
        let json = serde_json::to_string(params)
            .map_err(|e| ModelFileError::Parameters { name: name.to_owned(), why: e.to_string() })?;
        self.set_metadata(&format!("{PARAMS}{name}"), &json)
    }

    /// A set of parameters.
    ///
    /// # Errors
    /// [`ModelFileError::Missing`] or [`ModelFileError::Parameters`].
    pub fn params<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        let json = self
            .metadata
            .get(&format!("{PARAMS}{name}"))
            .ok_or_else(|| ModelFileError::Missing { what: "parameters", name: name.to_owned() })?;
        serde_json::from_str(json)
            .map_err(|e| ModelFileError::Parameters { name: name.to_owned(), why: e.to_string() }.into())
    }

    /// Whether there is such a set of parameters.
    pub(crate) fn has_params(&self, name: &str) -> bool {
        self.metadata.contains_key(&format!("{PARAMS}{name}"))
    }

    /// Adds an array.
    ///
    /// # Errors
    /// [`ModelFileError::Name`] if the name is taken or not allowed, [`ModelFileError::WrongShape`] if the numbers do
    /// not fill the shape.
    pub fn insert<T: Element>(&mut self, name: &str, shape: &[usize], numbers: Vec<T>) -> Result<()> {
        self.insert_array(name, Array::new(shape, numbers)?)
    }

    /// Adds an array of one dimension.
    ///
    /// # Errors
    /// [`ModelFileError::Name`] if the name is taken or not allowed.
    pub fn insert_vec<T: Element>(&mut self, name: &str, numbers: Vec<T>) -> Result<()> {
        self.insert(name, &[numbers.len()], numbers)
    }

    /// Adds an array of any type.
    ///
    /// # Errors
    /// [`ModelFileError::Name`] if the name is taken or not allowed.
    pub fn insert_array(&mut self, name: &str, array: Array) -> Result<()> {
        check_name(name)?;
        if name == "__metadata__" || self.arrays.contains_key(name) {
            return Err(ModelFileError::Name { name: name.to_owned() }.into());
        }
        self.arrays.insert(name.to_owned(), array);
        Ok(())
    }

    /// An array.
    ///
    /// # Errors
    /// [`ModelFileError::Missing`].
    pub fn array(&self, name: &str) -> Result<&Array> {
        self.arrays.get(name).ok_or_else(|| ModelFileError::Missing { what: "array", name: name.to_owned() }.into())
    }

    /// The numbers of an array of one dimension.
    ///
    /// # Errors
    /// [`ModelFileError::Missing`], [`ModelFileError::WrongType`] or [`ModelFileError::WrongShape`].
    pub fn slice<T: Element>(&self, name: &str) -> Result<&[T]> {
        let array = self.array(name)?;
        self.matrix_slice(name, &[array.len()])
    }

    /// A copy of the numbers of an array of one dimension. Errors as for [`Archive::slice`].
    pub fn vec<T: Element>(&self, name: &str) -> Result<Vec<T>> {
        Ok(self.slice(name)?.to_vec())
    }

    /// The numbers of an array that must have this shape, row-major.
    ///
    /// # Errors
    /// [`ModelFileError::Missing`], [`ModelFileError::WrongType`] or [`ModelFileError::WrongShape`].
    pub fn matrix_slice<T: Element>(&self, name: &str, shape: &[usize]) -> Result<&[T]> {
        let array = self.array(name)?;
        if array.shape() != shape {
            let (expected, found) = (shape.to_vec(), array.shape().to_vec());
            return Err(ModelFileError::WrongShape { name: name.to_owned(), expected, found }.into());
        }
        array.slice().ok_or_else(|| {
            ModelFileError::WrongType { name: name.to_owned(), expected: T::NAME, found: array.type_name() }.into()
        })
    }

    /// Adds a part's parameters and arrays under `prefix/`.
    ///
    /// # Errors
    /// [`ModelFileError::Name`] where a name is taken, or if the prefix holds a colon.
    pub fn put(&mut self, prefix: &str, part: Self) -> Result<()> {
        if prefix.contains(':') {
            return Err(ModelFileError::Name { name: prefix.to_owned() }.into());
        }
        let kind_key = format!("kind:{prefix}");
        self.set_metadata(&kind_key, &part.kind)?;
        for (key, value) in &part.metadata {
            match key.split_once(':') {
                Some((label, name)) => self.set_metadata(&format!("{label}:{prefix}/{name}"), value)?,
                None => self.set_metadata(&format!("{prefix}/{key}"), value)?,
            }
        }
        for (name, array) in part.arrays {
            self.insert_array(&format!("{prefix}/{name}"), array)?;
        }
        Ok(())
    }

    /// A part that was added with [`Archive::put`], copied out.
    ///
    /// # Errors
    /// [`ModelFileError::Missing`] if there is none of that name.
    pub fn part(&self, prefix: &str) -> Result<Self> {
        let kind = self
            .metadata
            .get(&format!("kind:{prefix}"))
            .ok_or_else(|| ModelFileError::Missing { what: "part", name: prefix.to_owned() })?;
        let mut part = Self::read_as(kind.clone(), self.writer.clone(), self.version);
        let start = format!("{prefix}/");
        for (key, value) in &self.metadata {
            let (label, name) = key.split_once(':').map_or((None, key.as_str()), |(l, n)| (Some(l), n));
            if let Some(rest) = name.strip_prefix(&start) {
                let key = label.map_or_else(|| rest.to_owned(), |label| format!("{label}:{rest}"));
                part.metadata.insert(key, value.clone());
            }
        }
        for (name, array) in &self.arrays {
            if let Some(rest) = name.strip_prefix(&start) {
                part.arrays.insert(rest.to_owned(), array.clone());
            }
        }
        Ok(part)
    }

    /// The bytes of a model file. Equal archives give equal bytes.
    ///
    /// # Errors
    /// [`ModelFileError::Header`] if the header grows past its limit.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        encode::to_bytes(self)
    }

    /// Writes the bytes of a model file, without a second copy of the arrays: the inner error is the writer's own.
    ///
    /// # Errors
    /// As for [`Archive::to_bytes`].
    pub fn write_to(&self, out: &mut impl std::io::Write) -> Result<std::io::Result<()>> {
        encode::write_to(self, out)
    }

    /// The archive of a model file's bytes, all checksums verified.
    ///
    /// Never allocates more than a small multiple of `bytes`, whatever they announce.
    ///
    /// # Errors
    /// [`ModelFileError`], with the problem and its location.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        decode::from_bytes(bytes)
    }
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
        return Err(ModelFileError::Name { name: name.chars().take(40).collect() }.into());
    }
    Ok(())
}
