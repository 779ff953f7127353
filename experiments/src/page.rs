//! Pages: Markdown made of records.

use std::fmt::Write as _;

use anyhow::Result;

use crate::catalogue::Group;
use crate::record::{Cell, NumberTable, Record, digits, significant};

/// The page of a group, out of the records there are.
///
/// # Errors
/// If a text names a number that its record does not have.
pub fn group_page(group: &Group, records: &[Record]) -> Result<String> {
    let mut page = format!("# {}\n\n{}\n\n", group.title, group.about);
    page.push_str("Made by `experiments` from the JSON files beside it; do not edit. [All experiments](README.md).\n");
    for record in records {
        page.push_str(&section(record)?);
    }
    Ok(page)
}

fn section(record: &Record) -> Result<String> {
    let mut out = format!("\n## {}\n\n", record.title);
    if !record.report.is_empty() {
        let _ = writeln!(out, "**What the report says.** {}\n", record.report);
    }
    for figure in &record.figures {
        let _ = writeln!(out, "![{}]({}.svg)\n\n*{}*\n", record.title, figure.file, record.fill(&figure.caption)?);
    }
    out.push_str("**What we see.**");
    for text in &record.seen {
        let _ = write!(out, " {}", record.fill(text)?);
    }
    out.push_str("\n\n");
    for claim in &record.claims {
        let _ = writeln!(
            out,
            "- {}: {}",
            if claim.holds { "holds" } else { "**does not hold**" },
            record.fill(&claim.text)?
        );
    }
    out.push('\n');
    for table in &record.tables {
        out.push_str(&markdown(table));
    }
    let settings: Vec<String> = record.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let _ = writeln!(
        out,
        "Settings: {}. Seeds: {}; the first is {}.",
        settings.join("; "),
        record.seeds,
        record.first_seed
    );
    let name = &record.name;
    let small = if record.small { ", the small version" } else { "" };
    let development = if record.development { ", compiled with assertions and overflow checks" } else { "" };
    let processor = record.processor_seconds.map_or(String::new(), |s| format!(" ({s:.1} s of processor time)"));
    let _ = writeln!(
        out,
        "Took {:.1} s{processor} on {} threads of a shared machine{small}{development}; numbers: [{name}.json]({name}.json); again: \
         `experiments {name}`.",
        record.seconds, record.threads
    );
    Ok(out)
}

fn markdown(table: &NumberTable) -> String {
    let mut out = String::new();
    if !table.caption.is_empty() {
        let _ = writeln!(out, "{}:\n", table.caption);
    }
    let _ = writeln!(out, "| {} |\n|{}", table.columns.join(" | "), " ---: |".repeat(table.columns.len()));
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(cell).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out + "\n"
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Number(value) => digits(*value),
        Cell::Spread([mean, deviation]) => {
            // As many decimals for the deviation as for the mean.
            let text = significant(*mean);
            let decimals = text.split_once('.').map_or(0, |(_, after)| after.len());
            if text.contains('e') {
                format!("{text} ± {deviation:.1e}")
            } else {
                format!("{text} ± {deviation:.decimals$}")
            }
        }
        Cell::Word(word) => word.clone(),
    }
}

const INDEX_HEAD: &str = "\
# The report's experiments, repeated

Each figure of the report again, from real data, with what it claims and what we see; and some that the report does not have. Pages \
and figures take every number from the JSON that a run wrote. Tests run small versions and assert the claims.

## How to run them

```sh
cargo run --release -p mondrian-experiments -- all --data DIR   # figures, numbers and these pages
cargo run --release -p mondrian-experiments -- list             # names of the experiments
cargo run --release -p mondrian-experiments -- digits online    # some of them
cargo run --release -p mondrian-experiments -- draw             # figures and pages again from the kept JSON
```

- `--data DIR`: the folder with the tables (`ccpp.csv.gz` and others: a row of names, then numbers, the response last); else \
`MONDRIAN_DATA`, else `../shared/data`. Experiments on made-up data need none.
- `--out DIR`: where everything is written, else `docs/experiments`.
- `--seed N`: added to every seed, 0 if left out: other trees, other splits.
- `--threads N`: one per core if left out. No number depends on it, except times.
- `--small`: versions of seconds, those of the tests.

It ends with 0 when all is written, 2 when the arguments or the data folder are at fault (before anything has run), 1 when the work \
fails. A claim that does not hold is no failure: the page says so.

## What they show

| experiment | claims that hold | seconds | processor seconds |
| --- | --- | ---: | ---: |
";

/// The page that lists all: what holds, what does not, and the times.
///
/// # Errors
/// As for [`group_page`].
pub fn index_page(groups: &[(&Group, Vec<Record>)]) -> Result<String> {
    let mut page = String::from(INDEX_HEAD);
    let (mut total, mut processor) = (0.0, 0.0);
    let untold = groups.iter().flat_map(|(_, records)| records).any(|record| record.processor_seconds.is_none());
    for (group, records) in groups {
        for record in records {
            let (holds, all) = (record.claims.iter().filter(|c| c.holds).count(), record.claims.len());
            let anchor: String = record
                .title
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '-')
                .map(|c| if c == ' ' { '-' } else { c })
                .collect();
            let _ = writeln!(
                page,
                "| [{}]({}.md#{anchor}) | {holds} of {all} | {:.1} | {} |",
                record.title,
                group.name,
                record.seconds,
                record.processor_seconds.map_or("–".to_owned(), |s| format!("{s:.1}"))
            );
            total += record.seconds;
            processor += record.processor_seconds.unwrap_or(0.0);
        }
    }
    let _ = writeln!(
        page,
        "\nAll together {:.1} minutes by the clock, {}{:.1} minutes of processor time, on a machine shared with other work.\n",
        total / 60.0,
        if untold { "more than " } else { "" },
        processor / 60.0
    );
    let failed: Vec<String> = groups
        .iter()
        .flat_map(|(_, records)| records)
        .flat_map(|r| {
            r.claims
                .iter()
                .filter(|c| !c.holds)
                .map(move |c| r.fill(&c.text).map(|t| format!("- {}: does not hold: {t}", r.title)))
        })
        .collect::<Result<_>>()?;
    if !failed.is_empty() {
        let _ = writeln!(page, "## What came out differently\n\n{}", failed.join("\n"));
    }
    Ok(page)
}
