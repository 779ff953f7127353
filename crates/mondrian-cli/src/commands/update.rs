//! `mondrian update`, `mondrian forget` and `mondrian merge`: learning, forgetting and merging of saved forests.

use std::path::Path;

use serde_json::json;

use crate::args::{ForgetArgs, MergeArgs, ModelAndTable, UpdateArgs};
use crate::failure::{Failure, Outcome};
use crate::lock::ModelLock;
use crate::model::{Fitted, Model};
use crate::prepare::{Besides, Fed, Prepared, PreparedRows, TargetUse};
use crate::save::{check_not_input, check_place};
use crate::screen::Screen;

/// Learns the rows of a table into a saved forest.
pub(crate) fn update(args: &UpdateArgs, screen: Screen) -> Outcome<()> {
    let besides = Besides { new_classes: args.new_classes, ..Besides::learning() };
    let with = ("learn more rows", Model::learn);
    let (mut fitted, fed, lock) = change(&args.given, args.out.as_deref(), &besides, screen, with)?;
    fitted.count(fed.n_rows);
    let n_new = add_classes(&mut fitted, fed.classes.as_deref());
    let (total, out) = (fitted.record.preparation.n_rows, lock.path().to_path_buf());
    fitted.save(&out)?;
    fed.warn(screen);
    if n_new > 0 {
        screen.message(format!("{n_new} new classes"));
    }
    screen.message(format!("learned {} rows, {total} in all; wrote {}", fed.n_rows, out.display()));
    let mut object =
        json!({ "learned": fed.n_rows, "rows": total, "unseen_categories": fed.unseen.n_cells, "out": out });
    object["dropped"] = json!(fed.n_dropped);
    object["new_classes"] = json!(n_new);
    screen.result("", &object)
}

/// Forgets the rows of a table in a saved forest.
pub(crate) fn forget(args: &ForgetArgs, screen: Screen) -> Outcome<()> {
    let besides = Besides { target: TargetUse::Learn, ..Besides::default() };
    let with = ("forget rows", Model::forget);
    let (mut fitted, fed, lock) = change(&args.given, args.out.as_deref(), &besides, screen, with)?;
    let left = fitted.record.preparation.n_rows.saturating_sub(fed.n_rows);
    fitted.record.preparation.n_rows = left;
    let out = lock.path().to_path_buf();
    fitted.save(&out)?;
    screen.message(format!("forgot {} rows, {left} are left; wrote {}", fed.n_rows, out.display()));
    screen.result("", &json!({ "forgotten": fed.n_rows, "rows": left, "out": out }))
}

/// Loads a model, applies a method to all rows of a table, and returns it with the lock of its file.
fn change(
    given: &ModelAndTable,
    out: Option<&Path>,
    besides: &Besides,
    screen: Screen,
    (what, mut with): (&str, impl FnMut(&mut Model, mondrian::Points<'_>, &Prepared) -> Outcome<()>),
) -> Outcome<(Fitted, Fed, ModelLock)> {
    let out = out.unwrap_or(&given.model);
    check_place(out)?;
    check_not_input(out, &[&given.read.data])?;
    // Before the model is read: otherwise rows learned by another process meanwhile would be lost.
    let lock = ModelLock::take(out)?;
    let Fitted { mut model, record } = Fitted::load(&given.model)?;
    // Before the table is read: a model that cannot learn is the error to report, not a missing cell.
    model.check_online_for(what)?;
    let source = given.read.open()?;
    let missing = given.missing.missing.unwrap_or(record.preparation.missing);
    let rows = PreparedRows::new(&source, &record.preparation, missing, besides)?;
    let fed = rows.feed(screen, |points, rows| with(&mut model, points, rows))?;
    Ok((Fitted { model, record }, fed, lock))
}

/// Reports the new classes and returns their number.
pub(crate) fn add_classes(fitted: &mut Fitted, classes: Option<&[String]>) -> usize {
    let known = fitted.record.preparation.target.as_mut().and_then(|target| target.classes.as_mut());
    let (Some(known), Some(classes)) = (known, classes) else { return 0 };
    let new = classes.get(known.len()..).unwrap_or_default();
    known.extend_from_slice(new);
    new.len()
}

/// Merges several forests, or several summaries.
pub(crate) fn merge(args: &MergeArgs, screen: Screen) -> Outcome<()> {
    check_place(&args.out)?;
    check_not_input(&args.out, &args.files.iter().map(std::path::PathBuf::as_path).collect::<Vec<_>>())?;
    let _lock = ModelLock::take(&args.out)?;
    if super::summarize::is_summary(&args.files[0])? {
        return super::summarize::merge(args, screen);
    }
    if args.finish || args.files.len() < 2 {
        let hint = "give two models or more, or summaries with --finish";
        return Err(Failure::input("--finish is for summaries; merging models needs at least two", hint));
    }
    let mut first = Fitted::load(&args.files[0])?;
    for path in &args.files[1..] {
        let other = Fitted::load(path)?;
        let mut theirs = other.record.preparation.clone();
        theirs.n_rows = first.record.preparation.n_rows;
        if theirs != first.record.preparation {
            return Err(Failure::input(
                format!("{} and {} prepare rows differently", args.files[0].display(), path.display()),
                "fit the second with --like the first",
            ));
        }
        first.model.merge(&other.model)?;
        first.count(other.record.preparation.n_rows);
    }
    let total = first.record.preparation.n_rows;
    first.save(&args.out)?;
    screen.message(format!("{total} rows in all; wrote {}", args.out.display()));
    screen.result("", &json!({ "rows": total, "out": args.out }))
}
