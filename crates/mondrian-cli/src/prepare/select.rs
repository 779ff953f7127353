//! Selection of the input columns and the target, and the type of each.

use crate::failure::{Failure, Outcome};
use crate::table::{Kind, Source, Wanted};

use super::Task;

/// The user's options for columns.
#[derive(Debug, Clone, Default)]
pub(crate) struct ColumnChoice {
    pub(crate) target: Option<String>,
    /// Use only these as inputs.
    pub(crate) columns: Vec<String>,
    /// Do not use these as inputs.
    pub(crate) exclude: Vec<String>,
    /// Treat these as categories, whatever they contain.
    pub(crate) categorical: Vec<String>,
    pub(crate) task: Option<Task>,
}

/// A checked choice of columns.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    pub(crate) inputs: Vec<(String, Wanted)>,
    pub(crate) target: Option<(String, Wanted, Task)>,
}

impl Selection {
    /// Checks a choice against a file.
    pub(crate) fn new(source: &Source, choice: &ColumnChoice) -> Outcome<Self> {
        let categorical = indices(source, &choice.categorical)?;
        let exclude = indices(source, &choice.exclude)?;
        let target = choice.target.as_deref().map(|name| source.find(name)).transpose()?;
        let candidates = if choice.columns.is_empty() {
            (0..source.columns().len()).collect()
        } else {
            indices(source, &choice.columns)?
        };
        let wanted = |column: usize| {
            let kind = if categorical.contains(&column) { Kind::Text } else { source.columns()[column].kind };
            Wanted { column, kind }
        };
        let named = |column: usize| source.columns()[column].name.clone();
        let inputs: Vec<_> = candidates
            .into_iter()
            .filter(|column| Some(*column) != target && !exclude.contains(column))
            .map(|column| (named(column), wanted(column)))
            .collect();
        let unreadable = inputs.iter().map(|(name, wanted)| (name, wanted.kind)).find_map(|(name, kind)| match kind {
            Kind::Unreadable(what) => Some((name, what)),
            _ => None,
        });
        if let Some((name, what)) = unreadable {
            return Err(Failure::input(
                format!("{}: column {name:?} contains {what}, which cannot be read", source.place()),
                format!("leave it out with --exclude {name:?}, or turn it into numbers or texts first"),
            ));
        }
        if inputs.is_empty() {
            return Err(Failure::input(
                format!("{}: no input columns are left", source.place()),
                "check --columns, --exclude and --target",
            ));
        }
        let target = target.map(|column| {
            let wanted = wanted(column);
            let task = choice.task.unwrap_or(match wanted.kind {
                Kind::Text | Kind::Unreadable(_) => Task::Classification,
                Kind::Number | Kind::Date => Task::Regression,
            });
            (named(column), wanted, task)
        });
        if let Some((name, Wanted { kind: Kind::Text, .. }, Task::Regression)) = &target {
            return Err(Failure::input(
                format!("{}: the target {name:?} contains text, which regression cannot predict", source.place()),
                "use --task classification or another --target",
            ));
        }
        Ok(Self { inputs, target })
    }

    /// The columns to read: the inputs, then the target.
    pub(crate) fn wanted(&self) -> Vec<Wanted> {
        self.inputs.iter().map(|(_, w)| *w).chain(self.target.iter().map(|(_, w, _)| *w)).collect()
    }

    /// The names that go with [`Selection::wanted`].
    pub(crate) fn names(&self) -> Vec<&str> {
        self.inputs.iter().map(|(n, _)| n.as_str()).chain(self.target.iter().map(|(n, _, _)| n.as_str())).collect()
    }
}

fn indices(source: &Source, names: &[String]) -> Outcome<Vec<usize>> {
    names.iter().map(|name| source.find(name)).collect()
}
