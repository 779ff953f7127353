//! Archive to bytes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Archive, FORMAT, ModelFileError, VERSION};
use crate::Result;

/// The header may not be longer than this: a bound on what a reader must parse.
pub(super) const LONGEST_HEADER: usize = 64 << 20;

/// One array's line in the header.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) dtype: String,
    pub(super) shape: Vec<usize>,
    pub(super) data_offsets: [u64; 2],
}

#[derive(Serialize)]
struct Header<'a> {
    #[serde(rename = "__metadata__")]
    metadata: &'a BTreeMap<String, String>,
    #[serde(flatten)]
    entries: BTreeMap<&'a str, Entry>,
}

pub(super) fn to_bytes(archive: &Archive) -> Result<Vec<u8>> {
    let mut data = Vec::with_capacity(archive.arrays().values().map(super::Array::n_bytes).sum::<usize>());
    let mut metadata = archive.metadata().clone();
    let mut entries = BTreeMap::new();
    // Wide elements first, so that every array is aligned for readers that map the file.
    let mut names: Vec<&String> = archive.arrays().keys().collect();
    names.sort_by_key(|name| std::cmp::Reverse(super::array::element_width(archive.arrays()[*name].type_name())));
    for name in names {
        let array = &archive.arrays()[name];
        let start = data.len();
        array.write(&mut data);
        metadata.insert(format!("crc32:{name}"), format!("{:08x}", crc32fast::hash(&data[start..])));
        let data_offsets = [start as u64, data.len() as u64];
        let (dtype, shape) = (array.type_name().to_owned(), array.shape().to_vec());
        entries.insert(name.as_str(), Entry { dtype, shape, data_offsets });
    }
    metadata.insert("format".into(), FORMAT.into());
    metadata.insert("version".into(), VERSION.to_string());
    metadata.insert("kind".into(), archive.kind().into());
    metadata.insert("writer".into(), archive.writer().into());
    let sum = header_sum(&metadata, entries.iter().map(|(&name, entry)| (name, entry)));
    metadata.insert("crc32".into(), format!("{sum:08x}"));

    let mut json = serde_json::to_vec(&Header { metadata: &metadata, entries })
        .map_err(|e| ModelFileError::Header { at: 8, what: e.to_string() })?;
    if json.len() > LONGEST_HEADER {
        let what = format!("{} bytes, more than the {LONGEST_HEADER} a header may have", json.len());
        return Err(ModelFileError::Header { at: 8, what }.into());
    }
    // Spaces until the data starts at a multiple of eight, as the container's specification allows.
    json.resize(json.len().next_multiple_of(8), b' ');
    let mut bytes = Vec::with_capacity(8 + json.len() + data.len());
    bytes.extend_from_slice(&(json.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&json);
    bytes.extend_from_slice(&data);
    Ok(bytes)
}

/// The checksum of everything in the header but itself, in a form free of JSON's spelling.
pub(super) fn header_sum<'a>(
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
