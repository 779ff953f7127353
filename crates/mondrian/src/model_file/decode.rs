//! Bytes to archive: everything is checked before it is used.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use crate::Result;
use crate::model_file::array::{element_width, n_elements};
use crate::model_file::encode::{Entry, LONGEST_HEADER, header_sum};
use crate::model_file::{Archive, Array, FORMAT, ModelFileError, VERSION};

pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Archive> {
    let (json, data) = split(bytes)?;
    let header: Header = serde_json::from_slice(json).map_err(|e| header_error(json, &e))?;
    let mut metadata = header.metadata.0;
    // The version is checked before anything that a later version may have changed.
    if metadata.get("format").map(String::as_str) != Some(FORMAT) {
        return Err(ModelFileError::NotAModel.into());
    }
    let version = checked_version(&metadata)?;
    let entries = header.entries;
    let stored = take_sum(&mut metadata, "crc32", "the header")?;
    let found = header_sum(&metadata, entries.iter().map(|(name, entry)| (name.as_str(), entry)));
    check_sum("the header", stored, found)?;
    check_layout(&entries, data.len())?;

    let kind = metadata.remove("kind").ok_or(ModelFileError::Missing { what: "metadata", name: "kind".into() })?;
    let writer = metadata.remove("writer").unwrap_or_default();
    metadata.remove("format");
    metadata.remove("version");
    let mut archive = Archive::read_as(kind, writer, version);
    for (name, entry) in &entries {
        let stored = take_sum(&mut metadata, &format!("crc32:{name}"), name)?;
        let part = &data[entry.data_offsets[0] as usize..entry.data_offsets[1] as usize];
        check_sum(name, stored, crc32fast::hash(part))?;
        let array = Array::read(&entry.dtype, &entry.shape, part)
            .ok_or(ModelFileError::Inconsistent { what: "an array's type, shape and bytes" })?;
        archive.insert_array(name, array)?;
    }
    for (key, value) in metadata {
        archive.set_metadata(&key, &value)?;
    }
    Ok(archive)
}

/// The header's JSON and the data after it.
fn split(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let found = bytes.len() as u64;
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else {
        return Err(ModelFileError::Truncated { expected: 8, found }.into());
    };
    let length = u64::from_le_bytes(*length);
    // The first eight bytes of a file of another format are an arbitrary length: the brace distinguishes it from a
    // damaged model file.
    if rest.first() != Some(&b'{') || length > LONGEST_HEADER as u64 {
        return Err(ModelFileError::NotAModel.into());
    }
    if length > rest.len() as u64 {
        return Err(ModelFileError::Truncated { expected: 8 + length, found }.into());
    }
    Ok(rest.split_at(length as usize))
}

fn checked_version(metadata: &BTreeMap<String, String>) -> Result<u32> {
    match metadata.get("version").and_then(|text| text.parse::<u32>().ok()) {
        Some(found) if found > VERSION => Err(ModelFileError::NewerVersion { found, supported: VERSION }.into()),
        Some(found @ 1..) => Ok(found),
        _ => Err(ModelFileError::Missing { what: "metadata", name: "version".into() }.into()),
    }
}

/// Every array lies within the data, has the bytes its type and shape need, and the arrays fill the data without gaps
/// and overlaps: so no announced size can request more memory than the file has bytes.
fn check_layout(entries: &BTreeMap<String, Entry>, n_data: usize) -> Result<()> {
    let mut spans = Vec::with_capacity(entries.len());
    for (name, entry) in entries {
        let [start, end] = entry.data_offsets;
        if end > n_data as u64 {
            return Err(ModelFileError::Truncated { expected: end, found: n_data as u64 }.into());
        }
        let width = element_width(&entry.dtype).ok_or_else(|| ModelFileError::Header {
            at: 8,
            what: format!("array {name:?} has the unknown element type {:?}", entry.dtype),
        })?;
        let needed = n_elements(&entry.shape).and_then(|n| n.checked_mul(width));
        if start > end || needed != Some((end - start) as usize) {
            return Err(ModelFileError::Inconsistent { what: "an array's shape and its offsets" }.into());
        }
        spans.push((start, end));
    }
    spans.sort_unstable();
    let mut at = 0;
    for (start, end) in spans {
        if start != at {
            return Err(ModelFileError::Inconsistent { what: "the arrays' places: a gap or an overlap" }.into());
        }
        at = end;
    }
    if at == n_data as u64 {
        Ok(())
    } else {
        Err(ModelFileError::Inconsistent { what: "the arrays' places: bytes after the last one" }.into())
    }
}

fn take_sum(metadata: &mut BTreeMap<String, String>, key: &str, part: &str) -> Result<u32> {
    metadata
        .remove(key)
        .and_then(|text| u32::from_str_radix(&text, 16).ok())
        .ok_or_else(|| ModelFileError::Missing { what: "checksum of", name: part.to_owned() }.into())
}

fn check_sum(part: &str, expected: u32, found: u32) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(ModelFileError::Checksum { part: part.to_owned(), expected, found }.into())
}

fn header_error(json: &[u8], error: &serde_json::Error) -> ModelFileError {
    let before: usize = json.split(|&b| b == b'\n').take(error.line().saturating_sub(1)).map(|l| l.len() + 1).sum();
    // The parser's message without its line and column, which are meaningless in one long line.
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text).to_owned();
    ModelFileError::Header { at: (8 + before + error.column()) as u64, what }
}

/// The header; a name given twice is an error, where serde's own maps would keep the last.
struct Header {
    metadata: Texts,
    entries: BTreeMap<String, Entry>,
}

/// A map of texts without repeated keys.
#[derive(Default)]
struct Texts(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Header;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a header")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Header, A::Error> {
                let mut metadata = None;
                let mut entries = BTreeMap::new();
                while let Some(name) = map.next_key::<String>()? {
                    let repeated = if name == "__metadata__" {
                        metadata.replace(map.next_value()?).is_some()
                    } else {
                        entries.insert(name, map.next_value()?).is_some()
                    };
                    if repeated {
                        return Err(serde::de::Error::custom("a name is given twice"));
                    }
                }
                Ok(Header { metadata: metadata.unwrap_or_default(), entries })
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Texts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of texts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Texts, A::Error> {
                let mut texts = BTreeMap::new();
                while let Some((key, value)) = map.next_entry()? {
                    if texts.insert(key, value).is_some() {
                        return Err(serde::de::Error::custom("a name is given twice"));
                    }
                }
                Ok(Texts(texts))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}
