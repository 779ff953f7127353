//! A model file for the studio: the model, its inputs with their ranges, the rows that it contains, and the preparation
//! of rows of a table.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use mondrian::internals::laplace::LaplaceSolution;
use mondrian::internals::model_file::Archive;
use mondrian::internals::tree::Domain;
use mondrian::process::{BuiltInMeasure, Measure};
use mondrian_studio::api::{FileInfo, InputInfo, Kind, Problem};
use mondrian_studio::tables::{Data, ModelFile, Part, SavedModel};
use serde_json::Value;

use super::{Prepares, in_page, problem};
use crate::args::ModelKind;
use crate::commands::describe::short;
use crate::failure::{Failure, Outcome};
use crate::model::{Facts, Fitted, Model, read_file};
use crate::prepare::{Besides, Encoding, Preparation, PreparedRows, TargetUse};
use crate::table::{ReadOptions, Source};

/// Facts that the page lists at most.
const LISTED: usize = 8;
/// The assumed range of an input, in standard deviations about its mean, if only those are known.
const USUAL: f64 = 2.0;

/// Lower ends, upper ends and middles of the model's inputs.
type Ranges = (Vec<f64>, Vec<f64>, Vec<f64>);

/// Whether a file begins as a model file does: the length of its header, and the header's brace. No text has so short a
/// number in its first eight bytes.
pub(super) fn is_model(path: &Path) -> bool {
    let mut first = [0; 9];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut first));
    let length = u64::from_le_bytes(first[..8].try_into().unwrap_or_default());
    read.is_ok() && first[8] == b'{' && length < 1 << 40
}

/// Opens a model file.
pub(super) fn open(path: &Path) -> Result<ModelFile, Problem> {
    opened(path).map_err(|failure| problem(&failure, &[], path))
}

fn opened(path: &Path) -> Outcome<ModelFile> {
    let Fitted { model, record } = Fitted::load(path)?;
    let preparation = record.preparation;
    let features = preparation.features();
    let Facts(facts) = model.facts(&features);
    let info = FileInfo {
        name: path.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned()),
        kind: kind(model.kind()),
        target: preparation.target.as_ref().map(|target| target.name.clone()),
        rows: preparation.n_rows,
        fitted_on: record.data,
        facts: facts.iter().filter_map(|(name, value)| fact(name, value)).take(LISTED).collect(),
    };
    let is_density = matches!(model, Model::Density(_));
    let train = held_rows(&model);
    let (lower, upper, middle) = ranges(&model, &preparation, &train, path)?;
    let data = Data {
        axes: (0..features.len()).filter(|&d| !preparation.is_code()[d]).collect(),
        features,
        inputs: inputs(&preparation, &lower, &upper, &middle),
        target: preparation.target.as_ref().map(|target| target.name.clone()),
        task: preparation.task().filter(|_| !is_density).map(in_page),
        classes: preparation.target.as_ref().and_then(|target| target.classes.clone()),
        lower,
        upper,
        train,
        held_out: Part::default(),
        middle,
        encoder: Arc::new(Prepares(preparation.clone())),
    };
    let rows = Box::new(move |table: &Path| {
        judging_rows(&preparation, is_density, table).map_err(|failure| problem(&failure, &[], table))
    });
    Ok(ModelFile { info, seed: record.seed, model: saved(model), data, rows })
}

fn kind(kind: ModelKind) -> Kind {
    match kind {
        ModelKind::Laplace => Kind::Laplace,
        ModelKind::Forest => Kind::Forest,
        ModelKind::Kernel => Kind::Kernel,
        ModelKind::Grid => Kind::Grid,
        ModelKind::Density => Kind::Density,
    }
}

/// A fact for the page; lists are shown in separate sections.
fn fact(name: &str, value: &Value) -> Option<(String, String)> {
    let text = match value {
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), short),
        Value::String(text) => text.clone(),
        Value::Bool(flag) => flag.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    Some((name.replace('_', " "), text))
}

fn saved(model: Model) -> SavedModel {
    match model {
        Model::Laplace(model) => SavedModel::Laplace(model),
        Model::LaplaceClasses(model) => SavedModel::LaplaceClasses(model),
        Model::Axes(model) => SavedModel::Axes(Box::new(model)),
        Model::Forest(model) => SavedModel::Forest(Box::new(model)),
        Model::Classifier(model) => SavedModel::Classifier(Box::new(model)),
        Model::Grid(model) => SavedModel::Grid(Box::new(model)),
        Model::Kernel(model) => SavedModel::Kernel(model),
        Model::Density(model) => SavedModel::Density(model),
    }
}

/// The rows that a model contains, in its scale; models with trees contain theirs, of the kernels only the report's
/// does.
fn held_rows(model: &Model) -> Part {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    let mut add = |measure: &BuiltInMeasure, coordinates: &[f64]| {
        x.extend(coordinates.iter().enumerate().map(|(d, u)| measure.place(d, *u)));
    };
    match model {
        Model::Forest(forest) => {
            for (coordinates, targets, _) in forest.rows() {
                add(forest.forest().measure(), coordinates);
                y.push(targets[0]);
            }
        }
        Model::Classifier(forest) => {
            let (coordinates, classes) = forest.rows();
            coordinates.chunks(forest.forest().n_dims()).for_each(|point| add(forest.forest().measure(), point));
            y.extend(classes.into_iter().map(f64::from));
        }
        Model::Density(density) => {
            let store = density.forest().store();
            store.points().for_each(|point| add(density.forest().measure(), store.point(point)));
        }
        Model::Laplace(_) | Model::LaplaceClasses(_) | Model::Axes(_) | Model::Grid(_) | Model::Kernel(_) => {}
    }
    let n_dims = match model {
        Model::Forest(forest) => forest.forest().n_dims(),
        Model::Classifier(forest) => forest.forest().n_dims(),
        Model::Density(density) => density.forest().n_dims(),
        _ => 1,
    };
    let n_rows = x.len() as u64 / n_dims as u64;
    Part { x, y, rows: (1..=n_rows).collect() }
}

/// The ranges of the inputs, in the model's scale: the box of trees, the ranks of the tuned kernel, the rows of the
/// report's kernel; otherwise those of the preparation.
fn ranges(model: &Model, preparation: &Preparation, train: &Part, path: &Path) -> Outcome<Ranges> {
    let of_trees = |domain: &Domain, measure: &BuiltInMeasure| -> Ranges {
        let bounds = domain.first_box();
        let place = |side: &[f64]| -> Vec<f64> { side.iter().enumerate().map(|(d, u)| measure.place(d, *u)).collect() };
        let (lower, upper) = (place(bounds.lower()), place(bounds.upper()));
        let middle = if train.rows.is_empty() {
            lower.iter().zip(&upper).map(|(l, u)| f64::midpoint(*l, *u)).collect()
        } else {
            Data::medians(&train.x, lower.len())
        };
        (lower, upper, middle)
    };
    Ok(match model {
        Model::Forest(model) => of_trees(model.forest().domain(), model.forest().measure()),
        Model::Classifier(model) => of_trees(model.forest().domain(), model.forest().measure()),
        Model::Density(model) => of_trees(model.forest().domain(), model.forest().measure()),
        Model::Kernel(model) => of_trees(model.features().forest().domain(), model.features().forest().measure()),
        Model::Axes(model) => match model.solution() {
            LaplaceSolution::Exact(exact) => {
                let points = exact.points();
                let columns = (0..points.n_columns()).map(|d| spread(points.column(d).collect()));
                unzipped(columns)
            }
            LaplaceSolution::Features(_) => usual(preparation),
        },
        Model::Laplace(_) | Model::LaplaceClasses(_) => {
            let archive = Archive::from_bytes(&read_file(path)?)?;
            of_kernel(&archive.params("columns").unwrap_or_default(), preparation)
        }
        Model::Grid(_) => usual(preparation),
    })
}

fn unzipped(ranges: impl Iterator<Item = (f64, f64, f64)>) -> Ranges {
    let mut all = Ranges::default();
    for (lower, upper, middle) in ranges {
        all.0.push(lower);
        all.1.push(upper);
        all.2.push(middle);
    }
    all
}

/// Smallest, largest and median.
fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_unstable_by(f64::total_cmp);
    let at = |i: usize| values.get(i).copied().unwrap_or(0.0);
    (at(0), at(values.len().saturating_sub(1)), at(values.len() / 2))
}

/// The tuned kernel keeps the ranks of every input, or its centre and mean absolute deviation.
fn of_kernel(columns: &Value, preparation: &Preparation) -> Ranges {
    let (mut lower, mut upper, mut middle) = usual(preparation);
    for column in columns["axes"].as_array().into_iter().flatten() {
        let Some(d) = column["input"].as_u64().map(|d| d as usize).filter(|d| *d < lower.len()) else { continue };
        let (knots, linear) = (&column["map"]["knots"]["values"], &column["map"]["linear"]);
        let knots: Vec<f64> = knots.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
        if knots.len() > 1 {
            (lower[d], upper[d], middle[d]) = spread(knots);
        } else if let (Some(centre), Some(unit)) = (linear["centre"].as_f64(), linear["unit"].as_f64()) {
            (lower[d], upper[d], middle[d]) = (centre - USUAL * unit, centre + USUAL * unit, centre);
        }
    }
    (lower, upper, middle)
}

/// The ranges from the preparation of rows alone.
fn usual(preparation: &Preparation) -> Ranges {
    let of_input = |input: &crate::prepare::Input| match &input.encoding {
        Encoding::Number { fill, map } => {
            let middle = fill.map_or(0.0, |fill| map.apply(fill));
            vec![(middle - USUAL, middle + USUAL, middle)]
        }
        Encoding::Category { levels } => levels.iter().map(|_| (0.0, 1.0, 0.0)).collect(),
        Encoding::Level { levels } => vec![(0.0, levels.len().saturating_sub(1) as f64, 0.0)],
    };
    unzipped(preparation.inputs.iter().flat_map(of_input))
}

/// The columns of inputs, for the editor of a row.
fn inputs(preparation: &Preparation, lower: &[f64], upper: &[f64], middle: &[f64]) -> Vec<InputInfo> {
    let mut at = 0;
    let of_input = |input: &crate::prepare::Input| {
        let d = at;
        at += input.width();
        let (name, levels) = (input.name.clone(), None);
        match &input.encoding {
            Encoding::Number { map, .. } => {
                let (min, max, median) = (map.undo(lower[d]), map.undo(upper[d]), map.undo(middle[d]));
                InputInfo { name, min, max, median, levels }
            }
            Encoding::Category { levels } | Encoding::Level { levels } => {
                InputInfo { name, min: 0.0, max: 0.0, median: 0.0, levels: Some(levels.clone()) }
            }
        }
    };
    preparation.inputs.iter().map(of_input).collect()
}

/// All rows of a table whose target is known to the model.
fn judging_rows(preparation: &Preparation, is_density: bool, table: &Path) -> Outcome<Part> {
    let source = Source::open(table, ReadOptions { selectable: true, ..ReadOptions::default() })?;
    if let (false, Some(target)) = (is_density, &preparation.target) {
        source.find(&target.name)?;
    }
    let target = if is_density { TargetUse::None } else { TargetUse::Compare };
    let besides = Besides { target, ..Besides::default() };
    let rows = PreparedRows::new(&source, preparation, preparation.missing, &besides)?.all()?;
    let mut part = Part::default();
    for (i, x) in rows.x.chunks(preparation.n_features()).enumerate() {
        let y = rows.y.get(i).copied();
        if is_density || y.is_some_and(|y| !y.is_nan()) {
            part.x.extend_from_slice(x);
            part.y.extend(y.filter(|_| !is_density));
            part.rows.push(rows.rows[i]);
        }
    }
    if part.rows.is_empty() {
        let what = format!("{}: no row has a target known to the model", source.place());
        return Err(Failure::input(what, "give a table with the target's column filled in"));
    }
    Ok(part)
}
