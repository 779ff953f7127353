//! `mondrian tour`: the whole idea on data embedded in the program, in under a minute.

mod density;
mod forest;
mod grid;
mod kernel;
mod laplace;
mod process;

use std::path::Path;
use std::time::Instant;

use mondrian::Points;
use mondrian::process::NodeKey;
use serde_json::{Value, json};

use crate::args::TourArgs;
use crate::failure::{Failure, Outcome};
use crate::prepare::{
    Besides, Categories, ColumnChoice, MOST_CLASSES, Missing, Preparation, PreparedRows, Rules, Scaling, Selection,
    TableSummary, summarise,
};
use crate::report::parts::{data_section, repeat_section};
use crate::report::{Block, Report, Section};
use crate::screen::Screen;
use crate::table::Source;

/// 640 generated rows: `height` over a map (`east`, `north`) with a cliff, and a `coin` without information.
pub(crate) const TABLE: &str = include_str!("tour.csv");
/// The share of rows held out.
const HELD_OUT: f64 = 0.25;

/// The embedded data, prepared and split.
pub(crate) struct Data {
    pub(crate) preparation: Preparation,
    pub(crate) summary: TableSummary,
    pub(crate) train: Part,
    pub(crate) held_out: Part,
    format: String,
}

/// Some of the rows.
#[derive(Default)]
pub(crate) struct Part {
    pub(crate) x: Vec<f64>,
    pub(crate) y: Vec<f64>,
    pub(crate) n_columns: usize,
}

impl Part {
    pub(crate) fn points(&self) -> Outcome<Points<'_>> {
        Ok(Points::row_major(&self.x, self.n_columns)?)
    }
}

/// The results of the tour so far.
pub(crate) struct Tour {
    pub(crate) report: Report,
    /// Lines of the summary.
    pub(crate) said: Vec<String>,
    /// Model, held-out error and a remark, for the comparison.
    pub(crate) compared: Vec<(String, f64, String)>,
    pub(crate) figures: serde_json::Map<String, Value>,
    pub(crate) seed: u64,
    pub(crate) screen: Screen,
}

impl Tour {
    /// Adds a line of the summary and prints it.
    pub(crate) fn message(&mut self, title: &str, line: impl AsRef<str>) {
        let line = format!("{title:<22} {}", line.as_ref());
        self.screen.message(&line);
        self.said.push(line);
    }
}

pub(crate) fn run(args: &TourArgs, screen: Screen) -> Outcome<()> {
    let started = Instant::now();
    prepare_folder(&args.out)?;
    let data = Data::load(args.seed)?;
    let report = Report {
        title: "A tour of the Mondrian process".to_owned(),
        kicker: format!("mondrian tour · seed {}", args.seed),
        lead: "A random partition that refines with time, and what machine learning makes of it: forests, densities, \
               kernels and grids whose lifetime is tuned over its whole range by one fit."
            .to_owned(),
        headline: Vec::new(),
        sections: Vec::new(),
    };
    let (said, compared, figures) = (Vec::new(), Vec::new(), serde_json::Map::new());
    let mut tour = Tour { report, said, compared, figures, seed: args.seed, screen };
    process::chapter(&mut tour)?;
    forest::chapter(&mut tour, &data)?;
    density::chapter(&mut tour, &data)?;
    kernel::chapter(&mut tour, &data)?;
    grid::chapter(&mut tour, &data)?;
    laplace::chapter(&mut tour, &data)?;
    compare(&mut tour, &data);
    finish(&mut tour, &data);
    let path = args.out.join("report.html");
    crate::save::write_file(&path, tour.report.to_html()?.as_bytes())?;
    screen.message(format!("{:.1} s in all", started.elapsed().as_secs_f64()));
    if cfg!(feature = "studio") {
        screen.message("to drag the lifetime yourself, on this data or your own, open the studio: mondrian studio");
    }
    let shown = path.display().to_string();
    let object = json!({ "report": shown, "seed": args.seed, "figures": tour.figures });
    screen.result(&shown, &object)
}

fn prepare_folder(folder: &Path) -> Outcome<()> {
    if folder.exists() && !folder.is_dir() {
        return Err(Failure::input(format!("{} is a file", folder.display()), "give a folder with --out"));
    }
    std::fs::create_dir_all(folder).map_err(|e| Failure::writing(folder, &e))
}

impl Data {
    fn load(seed: u64) -> Outcome<Self> {
        let source = Source::embedded("the embedded table", TABLE)?;
        let choice = ColumnChoice { target: Some("height".to_owned()), ..ColumnChoice::default() };
        let selection = Selection::new(&source, &choice)?;
        let screen = Screen { json: false, quiet: true };
        let summary = summarise(&source, &selection, Missing::Refuse, MOST_CLASSES, screen)?;
        let categories = Categories::Indicators;
        let rules = Rules { missing: Missing::Refuse, scaling: Scaling::Standard, categories };
        let preparation = Preparation::new(&selection, &summary, rules)?;
        let rows = PreparedRows::new(&source, &preparation, Missing::Refuse, &Besides::learning())?.all()?;
        let n_columns = preparation.n_features();
        let empty = || Part { n_columns, ..Part::default() };
        let (mut train, mut held_out) = (empty(), empty());
        for (i, row) in rows.x.chunks(n_columns).enumerate() {
            let part = if is_held_out(seed, rows.rows[i]) { &mut held_out } else { &mut train };
            part.x.extend_from_slice(row);
            part.y.push(rows.y[i]);
        }
        Ok(Self { preparation, summary, train, held_out, format: source.describe() })
    }
}

/// Whether a row is held out depends on its number and the seed alone.
pub(crate) fn is_held_out(seed: u64, row: u64) -> bool {
    NodeKey::root(seed, row).fork(8).draw(0).uniform() < HELD_OUT
}

/// All models on the same held-out rows.
fn compare(tour: &mut Tour, data: &Data) {
    let best = (0..tour.compared.len()).min_by(|&a, &b| tour.compared[a].1.total_cmp(&tour.compared[b].1));
    let rows = tour.compared.iter().map(|(name, error, note)| vec![json!(name), json!(error), json!(note)]).collect();
    let head = ["model", "RMSE held out", ""].map(str::to_owned).to_vec();
    tour.report.sections.push(Section {
        title: "Side by side".to_owned(),
        text: vec![format!("The same {} held-out rows for all. The noise alone is about 0.35.", data.held_out.y.len())],
        blocks: vec![Block::Table { heading: None, head, rows, best }],
    });
    if let Some(best) = best {
        let (name, error, _) = tour.compared[best].clone();
        tour.message("side by side", format!("{name} predicts best: RMSE {error:.3} on held-out rows"));
        tour.report.headline("Best on held-out rows", format!("{error:.3}"), format!("RMSE, {name}"));
    }
}

fn finish(tour: &mut Tour, data: &Data) {
    let section = data_section("The embedded table", &data.format, &data.summary, &data.preparation);
    tour.report.sections.push(section);
    let items = vec![
        ("seed".to_owned(), json!(tour.seed)),
        ("rows".to_owned(), json!(format!("{} to learn from, {} held out", data.train.y.len(), data.held_out.y.len()))),
        ("scaling of inputs".to_owned(), json!("standard")),
    ];
    let command = format!("mondrian tour --seed {}", tour.seed);
    tour.report.sections.push(repeat_section(vec![command], items));
    tour.report.headline("Rows", data.summary.n_used.to_string(), format!("{} held out", data.held_out.y.len()));
}
