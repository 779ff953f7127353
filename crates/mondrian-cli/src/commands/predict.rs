//! `mondrian predict` and `mondrian evaluate`: a model and a table in; predictions, or their scores, out.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use serde_json::json;

use crate::args::{EvaluateArgs, PredictArgs};
use crate::failure::{Failure, Outcome};
use crate::model::{Answer, Fitted, Model, quoted};
use crate::prepare::{Besides, Prepared, PreparedRows, TargetUse, Unseen};
use crate::save::{AtomicFile, check_not_input, is_standard};
use crate::scores::{Scores, most_probable};
use crate::screen::Screen;

/// Coverages that `evaluate` reports besides the requested one.
const COVERAGES: [f64; 4] = [0.5, 0.8, 0.9, 0.95];

pub(crate) fn run(args: &PredictArgs, screen: Screen) -> Outcome<()> {
    check_coverage(args.coverage)?;
    check_not_input(&args.out, &[&args.given.model, &args.given.read.data])?;
    let fitted = Fitted::load(&args.given.model)?;
    let source = args.given.read.open()?;
    let preparation = &fitted.record.preparation;
    let missing = args.given.missing.missing.unwrap_or(preparation.missing);
    let besides = Besides { target: TargetUse::Compare, keep: args.keep.clone(), ..Besides::default() };
    let mut rows = PreparedRows::new(&source, preparation, missing, &besides)?;
    let mut lines = Lines::open(&args.out, screen)?;
    lines.classes = preparation.target.as_ref().and_then(|t| t.classes.clone()).unwrap_or_default();
    let header = fitted.model.header(&lines.classes, args.mean_only);
    lines.n_empty = header.matches(',').count();
    lines.n_kept = args.keep.len();
    let kept = args.keep.iter().map(|name| quoted(name) + ",").collect::<String>();
    lines.write(&format!("{kept}{header}"))?;
    let coverage = (!args.mean_only).then_some(args.coverage);
    let mut progress = screen.progress("predicting", source.n_bytes());
    let (mut n_rows, mut n_empty, mut unseen) = (0, 0, Unseen::default());
    let mut scores = Scores::default();
    while let Some(batch) = rows.next_batch()? {
        let answer = fitted.model.predict(batch.inputs(preparation), coverage)?;
        if rows.has_target() {
            scores.add(&answer, &batch.y, false);
        }
        lines.batch(&batch, n_rows, &answer)?;
        n_rows += batch.n_read as u64;
        n_empty += (batch.n_read - batch.rows.len()) as u64;
        unseen.append(&batch.unseen);
        progress.set(rows.position());
    }
    progress.finish();
    lines.finish()?;
    if n_empty > 0 {
        screen.message(format!("{n_empty} rows with missing cells have empty predictions"));
    }
    unseen.warn(screen);
    if scores.n() > 0 {
        screen.message(scores.line(args.coverage));
    }
    if !is_standard(&args.out) {
        screen.message(format!("{n_rows} predictions in {}", args.out.display()));
        let mut object =
            json!({ "rows": n_rows, "empty": n_empty, "unseen_categories": unseen.n_cells, "out": args.out });
        if scores.n() > 0 {
            object["scores"] = scores.figures(args.coverage, &lines_classes(&fitted));
        }
        screen.result("", &object)?;
    }
    Ok(())
}

fn lines_classes(fitted: &Fitted) -> Vec<String> {
    fitted.record.preparation.target.as_ref().and_then(|t| t.classes.clone()).unwrap_or_default()
}

fn check_coverage(coverage: f64) -> Outcome<()> {
    if coverage > 0.0 && coverage < 1.0 {
        return Ok(());
    }
    Err(Failure::input(format!("--coverage {coverage} is not between 0 and 1"), "give a share such as 0.9"))
}

/// Compares predictions with the targets of a table.
pub(crate) fn evaluate(args: &EvaluateArgs, screen: Screen) -> Outcome<()> {
    check_coverage(args.coverage)?;
    let fitted = Fitted::load(&args.given.model)?;
    let source = args.given.read.open()?;
    let preparation = &fitted.record.preparation;
    let density = matches!(fitted.model, Model::Density(_));
    if let (false, Some(target)) = (density, &preparation.target) {
        source.find(&target.name)?;
    }
    let missing = args.given.missing.missing.unwrap_or(preparation.missing);
    let target = if density { TargetUse::None } else { TargetUse::Compare };
    let mut rows = PreparedRows::new(&source, preparation, missing, &Besides { target, ..Besides::default() })?;
    let mut coverages: Vec<f64> = COVERAGES.into_iter().chain([args.coverage]).collect();
    coverages.sort_unstable_by(f64::total_cmp);
    coverages.dedup();
    let mut scores = vec![Scores::default(); coverages.len()];
    let (mut n_dropped, mut unseen) = (0, Unseen::default());
    let mut progress = screen.progress("evaluating", source.n_bytes());
    while let Some(batch) = rows.next_batch()? {
        let answers = fitted.model.predict_at(batch.inputs(preparation), &coverages)?;
        for (scores, answer) in scores.iter_mut().zip(&answers) {
            scores.add(answer, &batch.y, density);
        }
        n_dropped += (batch.n_read - batch.rows.len()) as u64;
        unseen.append(&batch.unseen);
        progress.set(rows.position());
    }
    progress.finish();
    let requested = coverages.iter().position(|c| *c == args.coverage).unwrap_or(0);
    if scores[requested].n() == 0 {
        return Err(Failure::input(
            format!("{}: no row has a target known to the model", source.place()),
            "give a table with the target's column filled in",
        ));
    }
    let classes = lines_classes(&fitted);
    let mut object = scores[requested].figures(args.coverage, &classes);
    let mut text = scores[requested].line(args.coverage);
    if scores[requested].coverage().is_some() {
        let shares: Vec<(f64, f64)> =
            coverages.iter().zip(&scores).filter_map(|(c, s)| Some((*c, s.coverage()?))).collect();
        let _ = write!(text, "\n  intervals of  cover");
        for (nominal, held) in &shares {
            let _ = write!(text, "\n  {:>10.1} % {:>5.1} %", 100.0 * nominal, 100.0 * held);
        }
        object["coverages"] = json!(shares.iter().map(|(c, s)| json!({"interval": c, "held": s})).collect::<Vec<_>>());
    }
    object["dropped"] = json!(n_dropped);
    object["unseen_categories"] = json!(unseen.n_cells);
    if n_dropped > 0 {
        screen.message(format!("{n_dropped} rows with missing cells were skipped"));
    }
    unseen.warn(screen);
    screen.result(&text, &object)
}

/// A writer of lines of predictions.
struct Lines {
    out: AtomicFile,
    classes: Vec<String>,
    /// Commas of a line without a prediction.
    n_empty: usize,
    n_kept: usize,
}

impl Lines {
    fn open(path: &Path, screen: Screen) -> Outcome<Self> {
        if is_standard(path) && screen.json {
            return Err(Failure::input(
                "--json and predictions cannot both go to standard output",
                "give --out a file name",
            ));
        }
        Ok(Self { out: AtomicFile::create(path)?, classes: Vec::new(), n_empty: 0, n_kept: 0 })
    }

    fn write(&mut self, line: &str) -> Outcome<()> {
        writeln!(self.out, "{line}").map_err(|e| self.out.failure(&e))
    }

    /// One line per row of the file, empty cells for dropped rows, so that lines correspond to rows.
    fn batch(&mut self, batch: &Prepared, before: u64, answer: &Answer) -> Outcome<()> {
        let mut used = batch.rows.iter().enumerate().peekable();
        for row in 0..batch.n_read {
            let mut line: String = batch.kept[row * self.n_kept..][..self.n_kept]
                .iter()
                .map(|cell| quoted(cell.as_deref().unwrap_or_default()) + ",")
                .collect();
            match used.next_if(|(_, number)| **number == before + row as u64 + 1) {
                None => line.push_str(&",".repeat(self.n_empty)),
                Some((i, _)) => line.push_str(&prediction_line(answer, i, &self.classes, self.n_empty > 0)),
            }
            self.write(&line)?;
        }
        Ok(())
    }

    fn finish(self) -> Outcome<()> {
        self.out.commit().map(drop)
    }
}

/// The cells of one prediction; all probabilities of a class if wanted.
pub(crate) fn prediction_line(answer: &Answer, i: usize, classes: &[String], all: bool) -> String {
    match answer {
        Answer::Mean(mean) => mean[i].to_string(),
        Answer::Regression { mean, std, lower, upper } => {
            format!("{},{},{},{}", mean[i], std[i], lower[i], upper[i])
        }
        Answer::Classes(probabilities) => {
            let row = &probabilities[i * classes.len()..][..classes.len()];
            let name = quoted(&classes[most_probable(row)]);
            if !all {
                return name;
            }
            std::iter::once(name).chain(row.iter().map(f64::to_string)).collect::<Vec<_>>().join(",")
        }
    }
}
