//! A table to learn from: opened, summarized in one pass, ready to be read by a model.

use crate::args::{DataArgs, LifetimeArg, ModelArgs, ModelKind};
use crate::failure::{Failure, Outcome};
use crate::prepare::{
    Besides, Categories, MOST_CLASSES, MOST_CODES, Missing, Preparation, PreparedRows, Selection, TableSummary, Task,
    summarise,
};
use crate::screen::Screen;
use crate::stages::Stage;
use crate::table::{Kind, Source, listed};

/// Number of distinct whole numbers below which a numeric target may be meant as classes.
const FEW: usize = 12;

/// A summarized table, ready to be learned by a model of this kind.
pub(crate) struct Opened {
    pub(crate) kind: ModelKind,
    pub(crate) source: Source,
    pub(crate) summary: TableSummary,
    pub(crate) preparation: Preparation,
}

/// The training data of a model.
#[derive(Clone, Copy)]
pub(crate) struct Training<'a> {
    pub(crate) source: &'a Source,
    pub(crate) summary: &'a TableSummary,
    pub(crate) preparation: &'a Preparation,
    pub(crate) missing: Missing,
}

impl<'a> Training<'a> {
    /// The rows from the first on, prepared.
    pub(crate) fn rows(&self) -> Outcome<PreparedRows<'a>> {
        PreparedRows::new(self.source, self.preparation, self.missing, &Besides::learning())
    }
}

impl Opened {
    /// Opens a table and summarizes it in one pass.
    pub(crate) fn new(args: &DataArgs, model: Option<ModelKind>, params: &ModelArgs, screen: Screen) -> Outcome<Self> {
        let source = args.open()?;
        let selection = Selection::new(&source, &args.choice())?;
        let kind = kind_for(model, params, &source, &selection)?;
        params.check_rows_held(kind)?;
        let rules = args.rules(kind, params)?;
        let stage = Stage::new("looking");
        let most_levels = if rules.categories == Categories::Codes { MOST_CODES } else { MOST_CLASSES };
        let summary = summarise(&source, &selection, rules.missing, most_levels, screen)?;
        summary.check(source.place(), &selection, rules)?;
        let preparation = Preparation::new(&selection, &summary, rules)?;
        drop(stage);
        screen.message(format!(
            "{}: {}; {} of {} rows, {} inputs{}",
            source.place(),
            source.describe(),
            summary.n_used,
            summary.n_rows,
            preparation.n_features(),
            preparation.target.as_ref().map_or(String::new(), |t| format!(", target {}", t.name)),
        ));
        say_dates(&summary, screen);
        hint_at_classes(&selection, &summary, args, screen);
        Ok(Self { kind, source, summary, preparation })
    }

    /// The training data of models.
    pub(crate) fn training(&self) -> Training<'_> {
        let (preparation, missing) = (&self.preparation, self.preparation.missing);
        Training { source: &self.source, summary: &self.summary, preparation, missing }
    }
}

/// The requested kind, or the default, which needs a target: the tuned kernel, but a forest with a number of rows
/// to hold, or for
/// classes with options that only a forest of classes has.
fn kind_for(
    requested: Option<ModelKind>,
    params: &ModelArgs,
    source: &Source,
    selection: &Selection,
) -> Outcome<ModelKind> {
    let is_window = params.window.is_some() || params.max_rows.is_some();
    let is_forest = params.trees.is_some() || params.gamma.is_some() || params.lifetime != LifetimeArg::Auto;
    match (requested, &selection.target) {
        (Some(ModelKind::Density), _) => Ok(ModelKind::Density),
        (_, None) => Err(Failure::input(
            "--target is missing",
            format!("name the column to predict, one of {}", listed(source.columns().iter().map(|c| c.name.as_str()))),
        )),
        (Some(requested), Some(_)) => Ok(requested),
        (None, Some(_)) if is_window => Ok(ModelKind::Forest),
        (None, Some((.., Task::Classification))) if is_forest => Ok(ModelKind::Forest),
        (None, Some(_)) => Ok(ModelKind::Laplace),
    }
}

/// Prints a note about dates, which are converted to numbers.
fn say_dates(summary: &TableSummary, screen: Screen) {
    let dates: Vec<&str> = summary.columns.iter().filter(|c| c.date).map(|c| c.name.as_str()).collect();
    if !dates.is_empty() {
        screen.message(format!("dates are converted to days since 1970-01-01: {}", listed(dates.into_iter())));
    }
}

/// A target of a few whole numbers may be classes: print a note about the option. A target with a single value leaves
/// nothing to predict.
fn hint_at_classes(selection: &Selection, summary: &TableSummary, args: &DataArgs, screen: Screen) {
    let Some((name, wanted, Task::Regression)) = &selection.target else { return };
    let column = &summary.columns[selection.inputs.len()];
    if wanted.kind == Kind::Number && column.min == column.max {
        screen.message(format!("the target {name} has only one value, {}", column.min));
        return;
    }
    if args.task.is_some() || wanted.kind != Kind::Number || column.sample.iter().any(|x| x.fract() != 0.0) {
        return;
    }
    let mut values = column.sample.clone();
    values.sort_unstable_by(f64::total_cmp);
    values.dedup();
    if values.len() <= FEW {
        screen.message(format!(
            "the target {name} has only {} whole numbers; if they are classes, use --task classification",
            values.len()
        ));
    }
}
