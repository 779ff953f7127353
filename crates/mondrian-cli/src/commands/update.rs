//! `mondrian update` and `mondrian merge`: forests that learn more.

use serde_json::json;

use super::fit::learn_all;
use crate::args::{MergeArgs, UpdateArgs};
use crate::failure::{Failure, Outcome};
use crate::model::Fitted;
use crate::save::check_place;
use crate::screen::Screen;

/// Learns the rows of a table into a saved forest.
pub(crate) fn update(args: &UpdateArgs, screen: Screen) -> Outcome<()> {
    let out = args.out.as_ref().unwrap_or(&args.given.model);
    check_place(out)?;
    let Fitted { mut model, mut record } = Fitted::load(&args.given.model)?;
    let source = args.given.read.open()?;
    let missing = args.given.missing.missing.unwrap_or(record.preparation.missing);
    let n_rows = learn_all(&source, &record.preparation, missing, screen, |points, rows| model.learn(points, rows))?;
    record.preparation.n_rows += n_rows;
    let total = record.preparation.n_rows;
    Fitted { model, record }.save(out)?;
    screen.say(format!("learned {n_rows} rows, {total} in all; wrote {}", out.display()));
    screen.result("", &json!({ "learned": n_rows, "rows": total, "out": out }))
}

/// The forest of all rows of two.
pub(crate) fn merge(args: &MergeArgs, screen: Screen) -> Outcome<()> {
    check_place(&args.out)?;
    let mut first = Fitted::load(&args.first)?;
    let second = Fitted::load(&args.second)?;
    let mut theirs = second.record.preparation.clone();
    theirs.n_rows = first.record.preparation.n_rows;
    if theirs != first.record.preparation {
        return Err(Failure::input(
            format!("{} and {} prepare rows differently", args.first.display(), args.second.display()),
            "fit the second with --like the first",
        ));
    }
    first.model.merge(&second.model)?;
    first.record.preparation.n_rows += second.record.preparation.n_rows;
    let total = first.record.preparation.n_rows;
    first.save(&args.out)?;
    screen.say(format!("{total} rows in all; wrote {}", args.out.display()));
    screen.result("", &json!({ "rows": total, "out": args.out }))
}
