//! `mondrian predict`: a model and a table in, one line of prediction a row out.

use std::io::Write;
use std::path::Path;

use serde_json::json;

use crate::args::PredictArgs;
use crate::failure::{Failure, Outcome};
use crate::model::{Answer, Fitted, quoted};
use crate::prepare::{Prepared, PreparedRows};
use crate::save::AtomicFile;
use crate::screen::Screen;

pub(crate) fn run(args: &PredictArgs, screen: Screen) -> Outcome<()> {
    if !(args.coverage > 0.0 && args.coverage < 1.0) {
        return Err(Failure::input(format!("--coverage {} is no share", args.coverage), "give one such as 0.9"));
    }
    let fitted = Fitted::load(&args.given.model)?;
    let source = args.given.read.open()?;
    let preparation = &fitted.record.preparation;
    let missing = args.given.missing.missing.unwrap_or(preparation.missing);
    let mut rows = PreparedRows::new(&source, preparation, missing, false)?;
    let mut out = Sink::open(&args.out, screen)?;
    let classes = preparation.target.as_ref().and_then(|t| t.classes.as_deref()).unwrap_or_default();
    let header = fitted.model.header(classes, args.mean_only);
    let coverage = (!args.mean_only).then_some(args.coverage);
    out.line(&header)?;
    let mut progress = screen.progress("predicting", source.n_bytes());
    let (mut n_rows, mut n_empty, mut n_unseen) = (0, 0, 0);
    while let Some(batch) = rows.next_batch()? {
        let answer = fitted.model.predict(batch.points(preparation)?, coverage)?;
        write_batch(&mut out, &header, &batch, n_rows, &answer, classes)?;
        n_rows += batch.n_read as u64;
        n_empty += (batch.n_read - batch.rows.len()) as u64;
        n_unseen += batch.n_unseen;
        progress.set(rows.position());
    }
    progress.finish();
    out.finish()?;
    if n_empty > 0 {
        screen.say(format!("{n_empty} rows with missing cells have empty predictions"));
    }
    if n_unseen > 0 {
        screen.say(format!("{n_unseen} cells have a category the model has never seen"));
    }
    if !is_stdout(&args.out) {
        screen.say(format!("{n_rows} predictions in {}", args.out.display()));
        let object = json!({ "rows": n_rows, "empty": n_empty, "unseen_categories": n_unseen, "out": args.out });
        screen.result("", &object)?;
    }
    Ok(())
}

fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// One line per row of the file, empty cells for dropped rows, so that lines and rows go together.
fn write_batch(
    out: &mut Sink,
    header: &str,
    batch: &Prepared,
    before: u64,
    answer: &Answer,
    classes: &[String],
) -> Outcome<()> {
    let commas = header.matches(',').count();
    let mut kept = batch.rows.iter().enumerate().peekable();
    for row in 1..=batch.n_read as u64 {
        match kept.next_if(|(_, number)| **number == before + row) {
            None => out.line(&",".repeat(commas))?,
            Some((i, _)) => match answer {
                Answer::Mean(mean) => out.line(&mean[i].to_string())?,
                Answer::Classes(probabilities) => {
                    let row = &probabilities[i * classes.len()..][..classes.len()];
                    out.line(&class_line(row, classes, commas > 0))?;
                }
                Answer::Regression { mean, std, lower, upper } => {
                    out.line(&format!("{},{},{},{}", mean[i], std[i], lower[i], upper[i]))?;
                }
            },
        }
    }
    Ok(())
}

/// The most probable class (the first of equals), and all probabilities if wanted.
fn class_line(probabilities: &[f64], classes: &[String], all: bool) -> String {
    let mut best = 0;
    for (i, p) in probabilities.iter().enumerate() {
        if *p > probabilities[best] {
            best = i;
        }
    }
    let name = quoted(&classes[best]);
    if !all {
        return name;
    }
    let numbers = probabilities.iter().map(f64::to_string);
    std::iter::once(name).chain(numbers).collect::<Vec<_>>().join(",")
}

/// Where predictions go: a file that appears whole, or standard output.
enum Sink {
    File(AtomicFile),
    Standard(std::io::BufWriter<std::io::Stdout>),
}

impl Sink {
    fn open(path: &Path, screen: Screen) -> Outcome<Self> {
        if !is_stdout(path) {
            return AtomicFile::create(path).map(Self::File);
        }
        if screen.json {
            return Err(Failure::input(
                "--json and predictions cannot both go to standard output",
                "give --out a file name",
            ));
        }
        Ok(Self::Standard(std::io::BufWriter::new(std::io::stdout())))
    }

    fn line(&mut self, line: &str) -> Outcome<()> {
        match self {
            Self::File(file) => writeln!(file, "{line}").map_err(|e| file.failure(&e)),
            Self::Standard(out) => writeln!(out, "{line}").map_err(|e| Failure::stdout(&e)),
        }
    }

    fn finish(self) -> Outcome<()> {
        match self {
            Self::File(file) => file.commit(),
            Self::Standard(mut out) => out.flush().map_err(|e| Failure::stdout(&e)),
        }
    }
}
