//! Archive to bytes.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::model_file::{Archive, FORMAT, ModelFileError, VERSION};

/// The header may not be longer than this: a bound on what a reader must parse.
pub(crate) const LONGEST_HEADER: usize = 64 << 20;

/// One array's line in the header.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) dtype: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) data_offsets: [u64; 2],
}

#[derive(Serialize)]
struct Header<'a> {
    #[serde(rename = "__metadata__")]
    metadata: &'a BTreeMap<String, String>,
    #[serde(flatten)]
    entries: BTreeMap<&'a str, Entry>,
}

/// The bytes in memory.
pub(crate) fn to_bytes(archive: &Archive) -> Result<Vec<u8>> {
    let (header, names) = header(archive)?;
    let n_data: usize = archive.arrays().values().map(crate::model_file::Array::n_bytes).sum();
    let mut bytes = Vec::with_capacity(header.len() + n_data);
    write_parts(archive, &header, &names, &mut bytes).expect("a vector takes all bytes");
    Ok(bytes)
}

/// The bytes to a writer: the arrays are never copied whole.
pub(crate) fn write_to(archive: &Archive, out: &mut impl Write) -> Result<io::Result<()>> {
    let (header, names) = header(archive)?;
    Ok(write_parts(archive, &header, &names, out))
}

fn write_parts(archive: &Archive, header: &[u8], names: &[&String], out: &mut impl Write) -> io::Result<()> {
    out.write_all(header)?;
    names.iter().try_for_each(|name| archive.arrays()[*name].write(out))
}

/// The header with its length before it, and the names of the arrays in the order of their data.
fn header(archive: &Archive) -> Result<(Vec<u8>, Vec<&String>)> {
    let mut metadata = archive.metadata().clone();
    let mut entries = BTreeMap::new();
    // Wide elements first, so that every array is aligned for readers that map the file.
    let mut names: Vec<&String> = archive.arrays().keys().collect();
    names.sort_by_key(|name| {
        std::cmp::Reverse(crate::model_file::array::element_width(archive.arrays()[*name].type_name()))
    });
    let mut start = 0;
    for name in &names {
        let array = &archive.arrays()[*name];
        let mut sum = Sum(crc32fast::Hasher::new());
        array.write(&mut sum).expect("a checksum takes all bytes");
        metadata.insert(format!("crc32:{name}"), format!("{:08x}", sum.0.finalize()));
        let data_offsets = [start, start + array.n_bytes() as u64];
        start = data_offsets[1];
        let (dtype, shape) = (array.type_name().to_owned(), array.shape().to_vec());
        entries.insert(name.as_str(), Entry { dtype, shape, data_offsets });
    }
    metadata.insert("format".into(), FORMAT.into());
    metadata.insert("version".into(), VERSION.to_string());
    metadata.insert("kind".into(), archive.kind().into());
    metadata.insert("writer".into(), archive.writer().into());
    let sum = header_sum(&metadata, entries.iter().map(|(&name, entry)| (name, entry)));
    metadata.insert("crc32".into(), format!("{sum:08x}"));

    let json = serde_json::to_vec(&Header { metadata: &metadata, entries })
        .map_err(|e| ModelFileError::Header { at: 8, what: e.to_string() })?;
    if json.len() > LONGEST_HEADER {
        let what = format!("{} bytes, more than the {LONGEST_HEADER} a header may have", json.len());
        return Err(ModelFileError::Header { at: 8, what }.into());
    }
    // Spaces until the data starts at a multiple of eight, as the container's specification allows.
    let padded = json.len().next_multiple_of(8);
    let mut bytes = Vec::with_capacity(8 + padded);
    bytes.extend_from_slice(&(padded as u64).to_le_bytes());
    bytes.extend_from_slice(&json);
    bytes.resize(8 + padded, b' ');
    Ok((bytes, names))
}

/// A checksum as a writer.
struct Sum(crc32fast::Hasher);

impl Write for Sum {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The checksum of everything in the header except itself, independent of the JSON formatting.
pub(crate) fn header_sum<'a>(
    metadata: &BTreeMap<String, String>,
    entries: impl Iterator<Item = (&'a str, &'a Entry)>,
) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    let mut put = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    for (key, value) in metadata.iter().filter(|(key, _)| *key != "crc32") {
        put(key);
        put(value);
    }
    for (name, entry) in entries {
        put(name);
        put(&entry.dtype);
        put(&format!("{:?} {:?}", entry.shape, entry.data_offsets));
    }
    hasher.finalize()
}
