//! Fuzz targets: every reader of untrusted bytes, as a plain function that must not panic.
//!
//! `fuzz/` has libFuzzer targets over these; `tests/fuzz.rs` runs them on stable Rust over a kept corpus.

use std::io::Write;

use mondrian::internals::forest::Forest;
use mondrian::internals::model_file::Archive;

use crate::failure::Outcome;
use crate::model::Fitted;
use crate::prepare::{
    Besides, Categories, ColumnChoice, Inputs, MOST_CODES, Missing, Preparation, PreparedRows, Rules, Scaling,
    Selection, summarise,
};
use crate::screen::Screen;
use crate::table::{ReadOptions, Source};

/// Reads bytes as a model file; a valid file must be unchanged after writing and reading it again.
///
/// # Panics
/// If a valid archive changes in a round trip through bytes: this is the failure that the fuzzer searches for.
pub fn model(bytes: &[u8]) {
    if let Ok(archive) = Archive::from_bytes(bytes) {
        let again = archive.to_bytes().expect("a sound archive can be written");
        let back = Archive::from_bytes(&again).expect("what was written can be read");
        assert_eq!(back.to_bytes().expect("written twice"), again, "a model changed on its way through bytes");
    }
}

/// Reads bytes as a model with its preparation, and predicts a row.
///
/// # Panics
/// Never, for any bytes: a panic is the failure that the fuzzer searches for.
pub fn fitted(bytes: &[u8]) {
    if let Ok(fitted) = Fitted::from_bytes(bytes) {
        let row = vec![0.25; fitted.record.preparation.n_features()];
        let _ = fitted.model.predict(Inputs::new(&row, row.len()), Some(0.9));
        let _ = fitted.model.facts(&fitted.record.preparation.features());
        let _ = fitted.to_bytes();
    }
}

/// The archive with the digests of its trees recomputed from its contents, as an attacker would do: otherwise forests
/// are refused. `None` if it contains no forest that can be grown.
pub fn resealed(archive: &Archive) -> Option<Archive> {
    let (mut forest, _): (Forest, _) = Forest::read_from(archive).ok()?;
    forest.regrow(&());
    let mut out = Archive::new(archive.kind());
    forest.write_growth(&mut out).ok()?;
    for (name, array) in archive.arrays() {
        if !out.arrays().contains_key(name) {
            out.insert_array(name, array.clone()).ok()?;
        }
    }
    archive.metadata().iter().try_for_each(|(key, value)| out.set_metadata(key, value)).ok()?;
    Some(out)
}

/// Reads bytes as a table, twice, as `fit` does: all columns, the last as the target.
///
/// # Panics
/// If prepared rows contradict the summary: this is the failure that the fuzzer searches for.
pub fn table(bytes: &[u8]) {
    let scaling = Scaling::Quantile;
    for missing in [Missing::Drop, Missing::Mean, Missing::Refuse] {
        // Most byte strings are not tables; an error is fine, a panic is not.
        let _ = read_table(bytes, Rules { missing, scaling, categories: Categories::Indicators });
    }
    let rules = Rules { missing: Missing::Model, scaling: Scaling::None, categories: Categories::Codes };
    let _ = read_table(bytes, rules);
}

fn read_table(bytes: &[u8], rules: Rules) -> Outcome<()> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(bytes)?;
    let source = Source::open(file.path(), ReadOptions::default())?;
    let target = source.columns().last().map(|c| c.name.clone());
    let selection = Selection::new(&source, &ColumnChoice { target, ..ColumnChoice::default() })?;
    let screen = Screen { json: false, quiet: true };
    let summary = summarise(&source, &selection, rules.missing, MOST_CODES, screen)?;
    summary.check(source.place(), &selection, rules)?;
    let preparation = Preparation::new(&selection, &summary, rules)?;
    let (lower, upper) = preparation.bounds(&summary);
    let rows = PreparedRows::new(&source, &preparation, rules.missing, &Besides::learning())?.all()?;
    assert_eq!(rows.x.len(), rows.rows.len() * preparation.n_features(), "a whole number of rows");
    assert_eq!(rows.rows.len() as u64, summary.n_used, "as many rows as were counted");
    let width = preparation.n_features().max(1);
    for (i, x) in rows.x.iter().enumerate() {
        let (lo, hi) = (lower[i % width], upper[i % width]);
        assert!(!x.is_finite() || !lo.is_finite() || !hi.is_finite() || (lo <= *x && *x <= hi), "{x} in [{lo}, {hi}]");
    }
    Ok(())
}
