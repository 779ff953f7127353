//! What an experiment leaves behind: one JSON file, from which its figures and its part of a page are made.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::plot::Figure;

/// The whole of a run of one experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its name on the command line.
    pub name: String,
    /// Heading of its part of the page.
    pub title: String,
    /// What the report's caption claims, in our words.
    pub report: String,
    /// What we see, with `{name}` for numbers; see [`Record::fill`].
    pub seen: Vec<String>,
    /// Statements that the numbers decide.
    pub claims: Vec<Claim>,
    /// Settings, as name and value.
    pub settings: Vec<(String, String)>,
    /// Over how many seeds, and what they change.
    pub seeds: String,
    /// The first of them.
    #[serde(default)]
    pub first_seed: u64,
    /// Whether it was the small version.
    pub small: bool,
    /// Threads it ran on; no number depends on them, except times.
    pub threads: usize,
    /// How long it took, by the clock.
    pub seconds: f64,
    /// Processor time, if the system reports it: on a shared machine only this figure is meaningful.
    #[serde(default)]
    pub processor_seconds: Option<f64>,
    /// Whether it was compiled with assertions and overflow checks, the profile of the tests.
    #[serde(default)]
    pub development: bool,
    /// Numbers by name.
    #[serde(deserialize_with = "with_gaps")]
    pub numbers: BTreeMap<String, f64>,
    /// Tables.
    pub tables: Vec<NumberTable>,
    /// Pictures.
    pub figures: Vec<Figure>,
}

/// A statement and whether it came out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Short name, for tests.
    pub name: String,
    /// The statement, with `{name}` for numbers.
    pub text: String,
    /// Whether the numbers bear it out.
    pub holds: bool,
}

/// A table of numbers: the first column may hold words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NumberTable {
    /// Above it.
    pub caption: String,
    /// Heads of the columns.
    pub columns: Vec<String>,
    /// Rows.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// A number.
    Number(f64),
    /// Mean and standard deviation.
    Spread([f64; 2]),
    /// A word.
    Word(String),
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<&str> for Cell {
    fn from(word: &str) -> Self {
        Self::Word(word.to_owned())
    }
}

impl From<Spread> for Cell {
    fn from(spread: Spread) -> Self {
        Self::Spread([spread.mean, spread.deviation])
    }
}

/// Mean and standard deviation of several runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Standard deviation over runs, 0 for a single one.
    pub deviation: f64,
}

impl Spread {
    /// Of these values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        Self { mean, deviation: (squares / (n - 1.0).max(1.0)).sqrt() }
    }
}

impl Record {
    /// An empty record.
    pub fn new(name: &str, title: &str, report: &str) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            report: report.to_owned(),
            seen: Vec::new(),
            claims: Vec::new(),
            settings: Vec::new(),
            seeds: String::new(),
            first_seed: 0,
            small: false,
            threads: 1,
            seconds: 0.0,
            processor_seconds: None,
            development: cfg!(debug_assertions),
            numbers: BTreeMap::new(),
            tables: Vec::new(),
            figures: Vec::new(),
        }
    }

    /// Keeps a number.
    pub fn number(&mut self, name: &str, value: f64) {
        self.numbers.insert(name.to_owned(), value);
    }

    /// Keeps a setting.
    pub fn setting(&mut self, name: &str, value: impl std::fmt::Display) {
        self.settings.push((name.to_owned(), value.to_string()));
    }

    /// Says what is seen.
    pub fn see(&mut self, text: &str) {
        self.seen.push(text.to_owned());
    }

    /// Keeps a claim.
    pub fn claim(&mut self, name: &str, holds: bool, text: &str) {
        self.claims.push(Claim { name: name.to_owned(), text: text.to_owned(), holds });
    }

    /// Keeps a table.
    pub fn table(&mut self, caption: &str, columns: &[&str], rows: impl IntoIterator<Item = Vec<Cell>>) {
        self.tables.push(NumberTable {
            caption: caption.to_owned(),
            columns: columns.iter().map(|head| (*head).to_owned()).collect(),
            rows: rows.into_iter().collect(),
        });
    }

    /// Whether a claim holds; `None` if there is none of this name.
    pub fn holds(&self, claim: &str) -> Option<bool> {
        self.claims.iter().find(|c| c.name == claim).map(|c| c.holds)
    }

    /// Replaces `{name}` (four significant digits), `{name:.2}` (this many decimals) and `{name:%}` (per cent) by
    /// numbers.
    ///
    /// # Errors
    /// If there is no number of that name.
    pub fn fill(&self, text: &str) -> Result<String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((inside, tail)) = after.split_once('}') else { bail!("an open brace in {text:?}") };
            let (name, format) = inside.split_once(':').unwrap_or((inside, ""));
            let value = self.numbers.get(name).with_context(|| format!("no number {name:?} in {}", self.name))?;
            let shown = match format.strip_prefix('.') {
                Some(digits) => format!("{value:.*}", digits.parse()?),
                None if format == "%" => format!("{:.2} %", 100.0 * value),
                None => digits(*value),
            };
            out.extend([before, &shown]);
            rest = tail;
        }
        Ok(out + rest)
    }

    /// Reads `NAME.json`.
    ///
    /// # Errors
    /// If it cannot be read or is something else.
    pub fn read(file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        serde_json::from_str(&text).with_context(|| file.display().to_string())
    }

    /// As JSON: a line for each value of an object, arrays on one line.
    ///
    /// # Errors
    /// Never for a record.
    pub fn to_json(&self) -> Result<String> {
        let mut bytes = Vec::new();
        self.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, Lines::default()))?;
        bytes.push(b'\n');
        Ok(String::from_utf8(bytes)?)
    }
}

/// Four significant digits without zeros at the end, whole numbers whole.
pub fn digits(value: f64) -> String {
    let text = significant(value);
    if text.contains('.') && !text.contains('e') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

/// Four significant digits.
pub(crate) fn significant(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e7 {
        return format!("{value}");
    }
    if !(1e-4..1e7).contains(&value.abs()) {
        return format!("{value:.2e}");
    }
    let decimals = (3 - value.abs().log10().floor() as i32).max(0) as usize;
    format!("{value:.decimals$}")
}

/// JSON has no NaN: it is written as null.
fn with_gaps<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, f64>, D::Error> {
    let numbers = BTreeMap::<String, Option<f64>>::deserialize(deserializer)?;
    Ok(numbers.into_iter().map(|(name, value)| (name, value.unwrap_or(f64::NAN))).collect())
}

/// A layout of JSON that people and diffs can read without giving every number a line.
#[derive(Default)]
struct Lines {
    depth: usize,
}

impl Lines {
    fn line(&self, writer: &mut (impl io::Write + ?Sized)) -> io::Result<()> {
        write!(writer, "\n{:1$}", "", 2 * self.depth)
    }
}

impl serde_json::ser::Formatter for Lines {
    fn begin_object<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        writer.write_all(b"{")
    }

    fn begin_object_key<W: io::Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b"," })?;
        self.line(writer)
    }

    fn begin_object_value<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn end_object<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        self.line(writer)?;
        writer.write_all(b"}")
    }

    fn begin_array_value<W: io::Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fill_the_text() {
        let mut record = Record::new("a", "b", "");
        record.number("x", 1.234_567);
        record.number("n", 200.0);
        assert_eq!(record.fill("x = {x}, {x:.1}, {x:%}; n = {n}").unwrap(), "x = 1.235, 1.2, 123.46 %; n = 200");
        assert!(record.fill("{y}").is_err() && record.fill("{x").is_err());
    }

    #[test]
    fn json_comes_back() {
        let mut record = Record::new("a", "b", "c");
        record.number("x", 0.1);
        record.claim("up", true, "it rises");
        record.table("", &["a", "b", "c"], [vec![1.5.into(), "w".into(), Spread::of([1.0, 2.0]).into()]]);
        let text = record.to_json().unwrap();
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
    }
}
