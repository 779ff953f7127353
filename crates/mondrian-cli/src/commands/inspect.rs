//! `mondrian inspect`: the contents of a model file.

use std::fmt::Write;

use mondrian::internals::model_file::Archive;
use serde_json::{Map, Value, json};

use crate::args::InspectArgs;
use crate::failure::{Failure, Outcome};
use crate::journal::{self, Entry, Identity};
use crate::model::read_file;
use crate::screen::Screen;

/// Number of arrays listed in the text; the JSON has all.
const LISTED: usize = 12;

pub(crate) fn run(args: &InspectArgs, screen: Screen) -> Outcome<()> {
    let bytes = read_file(&args.model)?;
    let archive = Archive::from_bytes(&bytes).map_err(|e| {
        Failure::input(format!("{}: {e}", args.model.display()), "give a complete model file written by `mondrian fit`")
    })?;
    let params = parameters(&archive);
    let mut text = format!("{}\n", args.model.display());
    let _ = writeln!(text, "  kind     {}", archive.kind());
    let _ = writeln!(text, "  written  by {}, format version {}", archive.writer(), archive.version());
    let _ = writeln!(text, "  size     {} bytes, {} arrays, all checksums right", bytes.len(), archive.arrays().len());
    let waiting = journal::pending(&args.model, Identity::of(&bytes))?.into_iter();
    let waiting = waiting.filter(|entry| matches!(entry, Entry::Row { .. })).count();
    if waiting > 0 {
        let _ = writeln!(text, "  journal  {waiting} rows that are not yet in the file");
    }
    for (name, value) in &params {
        let _ = writeln!(text, "  {name}");
        describe(&mut text, value, 4);
    }
    text.push_str("  arrays\n");
    for (name, array) in archive.arrays().iter().take(LISTED) {
        let _ = writeln!(text, "    {name:<28} {:<4} {:?}", array.type_name(), array.shape());
    }
    if archive.arrays().len() > LISTED {
        let _ = writeln!(text, "    and {} more", archive.arrays().len() - LISTED);
    }
    let arrays: Vec<Value> = archive
        .arrays()
        .iter()
        .map(|(name, array)| json!({"name": name, "type": array.type_name(), "shape": array.shape()}))
        .collect();
    let object = json!({
        "kind": archive.kind(),
        "writer": archive.writer(),
        "format_version": archive.version(),
        "bytes": bytes.len(),
        "journal_rows": waiting,
        "parameters": params,
        "arrays": arrays,
    });
    screen.result(text.trim_end(), &object)
}

fn parameters(archive: &Archive) -> Map<String, Value> {
    archive
        .metadata()
        .iter()
        .filter_map(|(key, value)| {
            let name = key.strip_prefix("params:")?;
            Some((name.to_owned(), serde_json::from_str(value).unwrap_or(Value::String(value.clone()))))
        })
        .collect()
}

/// Indented lines, one per value; long lists are truncated.
fn describe(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::Object(inner) if !inner.is_empty() => {
                        let _ = writeln!(text, "{:indent$}{name}", "");
                        describe(text, value, indent + 2);
                    }
                    _ => {
                        let _ = writeln!(text, "{:indent$}{name:<20} {}", "", short(value));
                    }
                }
            }
        }
        _ => {
            let _ = writeln!(text, "{:indent$}{}", "", short(value));
        }
    }
}

fn short(value: &Value) -> String {
    let full = match value {
        Value::String(s) => s.clone(),
        other => other.to_string(),
    };
    if full.chars().count() > 90 { format!("{}…", full.chars().take(89).collect::<String>()) } else { full }
}
