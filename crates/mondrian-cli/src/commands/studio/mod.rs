//! `mondrian studio`: the local page. Tables are read as in every command; downloads are made by the commands
//! themselves, run as separate processes, so that they are identical byte for byte.

mod model_file;

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mondrian_studio::api::{self, Choice, ColumnInfo, InputInfo, Kind, Lines, Problem, Recipe, TableInfo};
use mondrian_studio::tables::{Data, Encoder, ModelFile, Part, Table, Tables};
use mondrian_studio::{Failure as Stopped, Options};
use serde_json::{Map, Value, json};

use crate::args::StudioArgs;
use crate::commands::tour::is_held_out;
use crate::failure::{Failure, Outcome};
use crate::prepare::{
    Besides, Categories, ColumnChoice, ColumnSummary, Encoding, MOST_CLASSES, Missing, Preparation, PreparedRows,
    Rules, Scaling, Selection, Task, summarise,
};
use crate::screen::Screen;
use crate::table::{Kind as Cells, ReadOptions, Source};

const QUIET: Screen = Screen { json: false, quiet: true };
/// Bins of a column's histogram.
const BINS: usize = 24;
/// Categories of a column that the page lists.
const LISTED: usize = 12;
/// Whole numbers that may be classes.
const FEW: usize = 12;

pub(crate) fn run(args: &StudioArgs, screen: Screen) -> Outcome<()> {
    let options = Options { port: args.port, files: args.files.clone(), ..Options::default() };
    let tables = Arc::new(Files::default());
    // The studio handles the first signal itself: fits are cancelled and uploads removed.
    crate::interrupt::on_stop(|| {});
    let outcome = mondrian_studio::run(tables, &options, |address| {
        screen.message("the studio runs until Ctrl-C, on this machine only; keep the address secret");
        let _ = screen.result(address, &json!({ "address": address }));
        if !args.no_open {
            open_browser(address);
        }
    });
    outcome.map_err(|stopped| match stopped {
        Stopped::File(problem) => {
            Failure::input(problem.message, problem.hint.unwrap_or_else(|| "give another file".to_owned()))
        }
        Stopped::Server(e) if e.kind() == io::ErrorKind::AddrInUse => {
            Failure::input(format!("port {} is in use", args.port), "choose another --port, or leave it out")
        }
        Stopped::Server(e) => Failure::Other(format!("the studio cannot be served: {e}")),
    })
}

/// Opens the system's browser; failure is ignored, since the address is printed too.
fn open_browser(address: &str) {
    let (program, first) = if cfg!(target_os = "macos") {
        ("open", None)
    } else if cfg!(windows) {
        ("explorer", None)
    } else {
        ("xdg-open", None::<&str>)
    };
    let mut command = Command::new(program);
    command.args(first).arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _ = command.spawn();
}

/// Tables in files.
#[derive(Default)]
struct Files {
    stopping: Arc<AtomicBool>,
}

impl Tables for Files {
    fn open(&self, path: &Path) -> Result<Box<dyn Table>, Problem> {
        let source = Source::open(path, ReadOptions { selectable: true, ..ReadOptions::default() })
            .map_err(|e| problem(&e, &[], path))?;
        let source = Mutex::new(source);
        Ok(Box::new(File { source, path: path.to_path_buf(), stopping: Arc::clone(&self.stopping) }))
    }

    fn open_model(&self, path: &Path) -> Result<Option<ModelFile>, Problem> {
        if model_file::is_model(path) { model_file::open(path).map(Some) } else { Ok(None) }
    }

    fn tour(&self) -> (&'static str, &'static str) {
        ("tour.csv", crate::commands::tour::TABLE)
    }

    fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }
}

/// A table in a file. Reads share the file's position, so they are serialised.
struct File {
    source: Mutex<Source>,
    path: PathBuf,
    stopping: Arc<AtomicBool>,
}

impl File {
    fn problem(&self, failure: &Failure, source: &Source) -> Problem {
        let names: Vec<&str> = source.columns().iter().map(|c| c.name.as_str()).collect();
        problem(failure, &names, &self.path)
    }

    /// The folder and the name that a command is given.
    fn place(&self) -> (PathBuf, String) {
        let folder = self.path.parent().filter(|_| self.path.is_absolute()).map_or(PathBuf::new(), Path::to_path_buf);
        let name = if folder.as_os_str().is_empty() { Some(self.path.as_os_str()) } else { self.path.file_name() };
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        (folder, name.map_or(String::new(), |n| n.to_string_lossy().into_owned()))
    }

    /// Runs this program on the table and reads its output.
    fn run(&self, arguments: &[String]) -> Result<Vec<u8>, Problem> {
        let failed = |e: io::Error| Problem::new(format!("the command cannot be run: {e}"));
        let out = tempfile::NamedTempFile::new().map_err(failed)?;
        let program = std::env::current_exe().map_err(failed)?;
        let mut child = Command::new(program)
            .current_dir(self.place().0)
            .args(arguments)
            .arg("--quiet")
            .arg("--out")
            .arg(out.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let status = loop {
            if self.stopping.load(Ordering::SeqCst) {
                let _ = child.kill();
            }
            match child.try_wait().map_err(failed)? {
                Some(status) => break status,
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        if status.success() {
            return std::fs::read(out.path()).map_err(failed);
        }
        let mut output = String::new();
        if let Some(mut stderr) = child.stderr.take() {
            let _ = io::Read::read_to_string(&mut stderr, &mut output);
        }
        let line = output.lines().last().unwrap_or("it was ended").trim_start_matches("error: ");
        Err(Problem::new(format!("the command failed: {line}")))
    }
}

impl Table for File {
    fn describe(&self) -> Result<TableInfo, Problem> {
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        let mut columns: Vec<ColumnInfo> = source
            .columns()
            .iter()
            .map(|c| ColumnInfo { name: c.name.clone(), is_category: c.kind == Cells::Text, ..ColumnInfo::default() })
            .collect();
        // A column that cannot be read is reported and excluded, and the rest is read again.
        let mut exclude: Vec<String> = Vec::new();
        let summary = loop {
            let choice = ColumnChoice { exclude: exclude.clone(), ..ColumnChoice::default() };
            let found = Selection::new(&source, &choice)
                .and_then(|selection| summarise(&source, &selection, Missing::Mean, MOST_CLASSES, QUIET));
            let failure = match found {
                Ok(summary) => break summary,
                Err(failure) => failure,
            };
            let found = self.problem(&failure, &source);
            let column = found.column.clone().and_then(|name| columns.iter_mut().find(|c| c.name == name));
            match column.filter(|c| c.problem.is_none()) {
                Some(column) if exclude.len() + 1 < source.columns().len() => {
                    exclude.push(column.name.clone());
                    column.problem = Some(found);
                }
                _ => return Err(found),
            }
        };
        for found in &summary.columns {
            if let Some(column) = columns.iter_mut().find(|c| c.name == found.name) {
                fill(column, found);
            }
        }
        let (_, name) = self.place();
        Ok(TableInfo { name, format: source.describe(), rows: summary.n_rows, columns })
    }

    fn prepare(&self, choice: &Choice) -> Result<Data, Problem> {
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        prepared(&source, choice).map_err(|failure| self.problem(&failure, &source))
    }

    fn model_file(&self, choice: &Choice, recipe: &Recipe) -> Result<Vec<u8>, Problem> {
        self.run(&self.arguments("fit", choice, recipe))
    }

    fn report(&self, choice: &Choice, recipe: &Recipe) -> Result<Vec<u8>, Problem> {
        if recipe.kind == Kind::Grid {
            return Err(Problem::with_hint("a grid has no path and so no report", "choose another model"));
        }
        self.run(&self.arguments("path", choice, &Recipe { lifetime: None, lifetimes: None, ..recipe.clone() }))
    }

    fn lines(&self, choice: &Choice, recipe: &Recipe) -> Lines {
        let mut arguments = vec!["mondrian".to_owned()];
        arguments.extend(self.arguments("fit", choice, recipe));
        arguments.push("--out=model.mondrian".to_owned());
        let command = arguments.iter().map(|argument| quoted(argument)).collect::<Vec<_>>().join(" ");
        Lines { python: self.python(choice, recipe, &arguments), command }
    }
}

impl File {
    /// The estimator itself if the program does not prepare the table: the tuned kernel on numbers without missing
    /// cells. Other models need the preparation of the command.
    fn python(&self, choice: &Choice, recipe: &Recipe, arguments: &[String]) -> String {
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        let columns = || source.columns().iter().filter(|c| !choice.exclude.contains(&c.name));
        let plain = columns().all(|c| c.kind == Cells::Number) && choice.categorical.is_empty();
        let name = self.place().1;
        let is_csv = Path::new(&name).extension().is_some_and(|e| e.eq_ignore_ascii_case("csv"));
        let regression = choice.task != Some(api::Task::Classification);
        if let (Kind::Laplace, true, Some(target)) =
            (recipe.kind, plain && is_csv && regression && choice.missing == api::Missing::Refuse, &choice.target)
        {
            let inputs: Vec<&str> = columns().map(|c| c.name.as_str()).filter(|name| name != target).collect();
            if recipe.lifetimes.is_none() {
                return format!(
                    "import mondrian\nimport pandas\n\ntable = pandas.read_csv({name:?})\nmodel = mondrian.LaplaceKernelRidge(random_state={})\nmodel.fit(table[{inputs:?}], table[{target:?}])",
                    recipe.seed
                );
            }
        }
        let arguments: Vec<String> = arguments.iter().map(|argument| format!("{argument:?}")).collect();
        format!(
            "import subprocess\nimport mondrian\n\nsubprocess.run([{}], check=True)\nmodel = mondrian.load(\"model.mondrian\")",
            arguments.join(", ")
        )
    }

    /// The command's arguments, without its output.
    fn arguments(&self, command: &str, choice: &Choice, recipe: &Recipe) -> Vec<String> {
        let mut arguments = vec![command.to_owned(), self.place().1];
        let density = recipe.kind == Kind::Density;
        arguments.push(format!("--model={}", recipe.kind.name()));
        let mut exclude = choice.exclude.clone();
        match &choice.target {
            // A density has no target; the target column is not an input of the other models.
            Some(target) if density => exclude.push(target.clone()),
            Some(target) => arguments.push(format!("--target={target}")),
            None => {}
        }
        if let (Some(task), false) = (choice.task, density) {
            let name = if task == api::Task::Regression { "regression" } else { "classification" };
            arguments.push(format!("--task={name}"));
        }
        match choice.missing {
            api::Missing::Refuse => {}
            api::Missing::Drop => arguments.push("--missing=drop".to_owned()),
            api::Missing::Mean => arguments.push("--missing=mean".to_owned()),
        }
        if !exclude.is_empty() {
            arguments.push(format!("--exclude={}", exclude.join(",")));
        }
        if !choice.categorical.is_empty() {
            arguments.push(format!("--categorical={}", choice.categorical.join(",")));
        }
        if let Some(lifetimes) = &recipe.lifetimes {
            let numbers: Vec<String> = lifetimes.iter().map(f64::to_string).collect();
            arguments.push(format!("--lifetimes={}", numbers.join(",")));
        } else if let Some(lifetime) = recipe.lifetime {
            arguments.push(format!("--lifetime={lifetime}"));
        }
        if let Some(trees) = recipe.trees {
            arguments.push(format!("--trees={trees}"));
        }
        if recipe.seed != 0 {
            arguments.push(format!("--seed={}", recipe.seed));
        }
        arguments
    }
}

/// An argument, quoted for a shell.
fn quoted(argument: &str) -> String {
    let plain = !argument.is_empty() && argument.chars().all(|c| c.is_alphanumeric() || "-_./=,:+@%".contains(c));
    if plain { argument.to_owned() } else { format!("'{}'", argument.replace('\'', "'\\''")) }
}

fn fill(column: &mut ColumnInfo, found: &ColumnSummary) {
    column.missing = found.missing;
    if column.is_category {
        column.n_levels = found.levels.len();
        let mut levels: Vec<(String, u64)> = found.levels.iter().map(|(l, n)| (l.clone(), *n)).collect();
        levels.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        levels.truncate(LISTED);
        column.histogram = levels.iter().map(|(_, n)| *n).collect();
        column.levels = levels;
        return;
    }
    (column.min, column.max, column.mean, column.deviation) = (found.min, found.max, found.mean, found.deviation);
    column.histogram = found.histogram(BINS);
    let mut values = found.sample.clone();
    values.sort_unstable_by(f64::total_cmp);
    values.dedup();
    let whole = values.iter().all(|x| x.fract() == 0.0);
    column.few_values = (whole && values.len() <= FEW).then_some(values.len());
    if found.count == 0 {
        column.problem = Some(Problem {
            message: format!("column {:?} has no values", found.name),
            hint: Some("leave it out".to_owned()),
            column: Some(found.name.clone()),
        });
    }
}

fn prepared(source: &Source, choice: &Choice) -> Outcome<Data> {
    let missing = match choice.missing {
        api::Missing::Refuse => Missing::Refuse,
        api::Missing::Drop => Missing::Drop,
        api::Missing::Mean => Missing::Mean,
    };
    let columns = ColumnChoice {
        target: choice.target.clone(),
        exclude: choice.exclude.clone(),
        categorical: choice.categorical.clone(),
        task: choice.task.map(|task| match task {
            api::Task::Regression => Task::Regression,
            api::Task::Classification => Task::Classification,
        }),
        ..ColumnChoice::default()
    };
    let selection = Selection::new(source, &columns)?;
    let summary = summarise(source, &selection, missing, MOST_CLASSES, QUIET)?;
    let rules = Rules { missing, scaling: Scaling::Standard, categories: Categories::Indicators };
    summary.check(source.place(), &selection, rules)?;
    let preparation = Preparation::new(&selection, &summary, rules)?;
    // Read once and split once: two copies at a time.
    let bytes = 16.0 * summary.n_used as f64 * preparation.n_features() as f64;
    if mondrian::internals::memory::max_memory().is_some_and(|most| bytes > most as f64) {
        let what = format!("the table needs {:.1} GB of memory, more than the limit", bytes / 1e9);
        return Err(Failure::input(what, "leave columns out, or start the studio with a larger --max-memory"));
    }
    let rows = PreparedRows::new(source, &preparation, missing, &Besides::learning())?.all()?;
    let width = preparation.n_features();
    let (mut train, mut held_out) = (Part::default(), Part::default());
    for (i, row) in rows.x.chunks(width).enumerate() {
        let part = if is_held_out(0, rows.rows[i]) { &mut held_out } else { &mut train };
        part.x.extend_from_slice(row);
        part.y.extend(rows.y.get(i));
        part.rows.push(rows.rows[i]);
    }
    let (lower, upper) = preparation.bounds(&summary);
    let inputs = preparation.inputs.iter().zip(&summary.columns).map(|(input, column)| input_info(input, column));
    Ok(Data {
        axes: (0..width).collect(),
        features: preparation.features(),
        inputs: inputs.collect(),
        target: preparation.target.as_ref().map(|t| t.name.clone()),
        task: preparation.task().map(in_page),
        classes: preparation.target.as_ref().and_then(|t| t.classes.clone()),
        lower,
        upper,
        middle: Data::medians(&train.x, width),
        train,
        held_out,
        encoder: Arc::new(Prepares(preparation)),
    })
}

/// A task as the page names it.
fn in_page(task: Task) -> api::Task {
    match task {
        Task::Regression => api::Task::Regression,
        Task::Classification => api::Task::Classification,
    }
}

fn input_info(input: &crate::prepare::Input, column: &ColumnSummary) -> InputInfo {
    let levels = match &input.encoding {
        Encoding::Category { levels } | Encoding::Level { levels } => Some(levels.clone()),
        Encoding::Number { .. } => None,
    };
    let mut sample = column.sample.clone();
    sample.sort_unstable_by(f64::total_cmp);
    let median = sample.get(sample.len() / 2).copied().unwrap_or(0.0);
    InputInfo { name: input.name.clone(), min: column.min, max: column.max, median, levels }
}

/// Single rows, prepared as the table's.
struct Prepares(Preparation);

impl Encoder for Prepares {
    fn encode(&self, cells: &Map<String, Value>) -> Result<Vec<f64>, Problem> {
        let mut row = Vec::with_capacity(self.0.n_features());
        for input in &self.0.inputs {
            let cell = cells.get(&input.name).unwrap_or(&Value::Null);
            match &input.encoding {
                Encoding::Number { map, fill } => {
                    let number = cell.as_f64().filter(|x| x.is_finite()).or(*fill).ok_or_else(|| Problem {
                        message: format!("column {:?} needs a number", input.name),
                        hint: None,
                        column: Some(input.name.clone()),
                    })?;
                    row.push(map.apply(number));
                }
                Encoding::Level { levels } => {
                    let code = |text: &str| levels.iter().position(|level| level == text).unwrap_or(levels.len());
                    row.push(cell.as_str().map_or(f64::NAN, |text| code(text) as f64));
                }
                Encoding::Category { levels } => {
                    let text = cell.as_str();
                    row.extend(levels.iter().map(|level| f64::from(u8::from(Some(level.as_str()) == text))));
                }
            }
        }
        Ok(row)
    }

    fn cells(&self, x: &[f64]) -> Vec<f64> {
        let mut cells = Vec::with_capacity(x.len() / self.0.n_features().max(1) * self.0.inputs.len());
        for row in x.chunks_exact(self.0.n_features()) {
            let mut rest = row;
            for input in &self.0.inputs {
                let (own, others) = rest.split_at(input.width());
                rest = others;
                cells.push(match &input.encoding {
                    Encoding::Number { map, .. } => map.undo(own[0]),
                    Encoding::Level { .. } => own[0],
                    Encoding::Category { levels } => {
                        own.iter().position(|indicator| *indicator == 1.0).unwrap_or(levels.len()) as f64
                    }
                });
            }
        }
        cells
    }

    fn codes(&self) -> Vec<bool> {
        self.0.inputs.iter().map(|input| !matches!(input.encoding, Encoding::Number { .. })).collect()
    }

    fn in_units(&self, feature: usize, scaled: f64) -> Option<f64> {
        self.0.in_units(feature, scaled)
    }
}

/// A failure for the page: its column found, its hint in terms of the page.
fn problem(failure: &Failure, columns: &[&str], path: &Path) -> Problem {
    let (message, hint) = match failure {
        Failure::Input { what, hint } => (what.clone(), Some(hint.as_str())),
        other => (other.to_string(), None),
    };
    let column = columns
        .iter()
        .find(|name| [format!("column {name:?}"), format!("target {name:?}")].iter().any(|n| message.contains(n)))
        .map(|name| (*name).to_owned());
    // The page shows the name of a table, not its path on the server.
    let folder = path.parent().map_or(String::new(), |f| format!("{}/", f.display()));
    let message = if path.is_absolute() { message.replace(&folder, "") } else { message };
    let hint = match hint {
        Some(h) if h.contains("--missing") => Some("choose to drop rows with missing cells or to fill them in"),
        Some(h) if h.contains("--exclude") => Some("correct it, exclude the column, or treat it as categories"),
        Some(h) if h.contains("--task") => Some("declare the target a class, or choose another"),
        Some(h) if h.contains("--delimiter") => Some("correct that line"),
        Some(h) if h.contains("--") => None,
        other => other,
    };
    Problem { message, hint: hint.map(str::to_owned), column }
}
