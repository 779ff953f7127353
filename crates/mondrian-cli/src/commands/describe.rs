//! `mondrian describe`: the interpretation of a table, before a model is fitted to it.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::args::DescribeArgs;
use crate::failure::Outcome;
use crate::prepare::{ColumnChoice, ColumnSummary, MOST_CLASSES, MOST_LEVELS, Missing, Selection, summarise};
use crate::screen::Screen;
use crate::table::{Kind, date};

pub(crate) fn run(args: &DescribeArgs, screen: Screen) -> Outcome<()> {
    let source = args.read.open()?;
    let unreadable: Vec<(&str, &'static str)> = source
        .columns()
        .iter()
        .filter_map(|column| match column.kind {
            Kind::Unreadable(what) => Some((column.name.as_str(), what)),
            _ => None,
        })
        .collect();
    let exclude = unreadable.iter().map(|(name, _)| (*name).to_owned()).collect();
    let selection = Selection::new(&source, &ColumnChoice { exclude, ..ColumnChoice::default() })?;
    // Means are over the cells that are not missing; missing cells are reported, not refused.
    let summary = summarise(&source, &selection, Missing::Mean, MOST_CLASSES, screen)?;
    let width = summary.columns.iter().map(|c| c.name.chars().count()).max().unwrap_or(0).clamp(6, 40);
    let mut text = format!("{}: {}, {} rows\n", source.place(), source.describe(), summary.n_rows);
    let _ = writeln!(
        text,
        "  {:<width$}  {:>12} {:>12} {:>12} {:>12} {:>8}",
        "column", "least", "mean", "greatest", "deviation", "missing"
    );
    let mut columns = Vec::new();
    for (column, (_, wanted)) in summary.columns.iter().zip(&selection.inputs) {
        text.push_str(&line(column, wanted.kind, width));
        columns.push(object(column, wanted.kind));
    }
    for (name, what) in unreadable {
        let _ = writeln!(text, "  {name:<width$}  {what}, which cannot be read");
        columns.push(json!({ "name": name, "kind": "unreadable", "holds": what }));
    }
    let object =
        json!({ "place": source.place(), "format": source.describe(), "rows": summary.n_rows, "columns": columns });
    screen.result(text.trim_end(), &object)
}

fn line(column: &ColumnSummary, kind: Kind, width: usize) -> String {
    let name = &column.name;
    match kind {
        Kind::Date => format!(
            "  {name:<width$}  {:<51} {:>8}\n",
            if column.count == 0 {
                "no date".to_owned()
            } else {
                format!("dates from {} to {}", date::iso(column.min), date::iso(column.max))
            },
            column.missing
        ),
        Kind::Number if column.count == 0 => format!("  {name:<width$}  {:<51} {:>8}\n", "no value", column.missing),
        Kind::Number => format!(
            "  {name:<width$}  {:>12} {:>12} {:>12} {:>12} {:>8}\n",
            short(column.min),
            short(column.mean),
            short(column.max),
            short(column.deviation),
            column.missing
        ),
        Kind::Text | Kind::Unreadable(_) => {
            let levels = crate::table::listed(column.levels.keys().map(String::as_str));
            format!(
                "  {name:<width$}  {:<51} {:>8}\n",
                format!(
                    "{} {}: {levels}",
                    count(column),
                    if column.levels.len() > MOST_LEVELS { "texts" } else { "categories" }
                ),
                column.missing
            )
        }
    }
}

fn object(column: &ColumnSummary, kind: Kind) -> Value {
    match kind {
        Kind::Number | Kind::Date if column.count == 0 => json!({
            "name": column.name, "kind": if kind == Kind::Date { "date" } else { "number" }, "missing": column.missing,
            "min": null, "mean": null, "max": null, "deviation": null,
        }),
        Kind::Number => json!({
            "name": column.name, "kind": "number", "missing": column.missing, "min": column.min, "mean": column.mean,
            "max": column.max, "deviation": column.deviation,
        }),
        Kind::Date => json!({
            "name": column.name, "kind": "date", "origin": "1970-01-01", "missing": column.missing, "min": column.min,
            "mean": column.mean, "max": column.max, "deviation": column.deviation,
        }),
        Kind::Text | Kind::Unreadable(_) if column.levels.len() > MOST_LEVELS => json!({
            "name": column.name, "kind": "text", "missing": column.missing, "n_levels": column.levels.len(),
            "more_levels": column.more_levels,
        }),
        Kind::Text | Kind::Unreadable(_) => json!({
            "name": column.name, "kind": "category", "missing": column.missing, "levels": column.levels,
        }),
    }
}

/// The number of different texts, up to the limit of counting.
fn count(column: &ColumnSummary) -> String {
    if column.more_levels { format!("more than {MOST_CLASSES}") } else { column.levels.len().to_string() }
}

/// Six significant digits.
pub(crate) fn short(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return x.to_string();
    }
    let magnitude = x.abs().log10().floor() as i32;
    if (-4..9).contains(&magnitude) {
        let decimals = (5 - magnitude).max(0) as usize;
        let text = format!("{x:.decimals$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    } else {
        format!("{x:.4e}")
    }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn six_digits() {
        let found = [0.0, 1.0, 0.1 + 0.2, 123_456.7, -19.651_231, 1.5e-7, 2e12].map(short);
        assert_eq!(found, ["0", "1", "0.3", "123457", "-19.6512", "1.5000e-7", "2.0000e12"]);
    }
}
