//! The kinds of chart and table of a report, drawn by `report.js`.

use serde::Serialize;
use serde_json::Value;

/// One chart or table.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum Block {
    /// Curves over one axis.
    Curve {
        #[serde(skip_serializing_if = "Option::is_none")]
        heading: Option<String>,
        x_label: String,
        y_label: String,
        /// Name of the horizontal value in the hover box.
        x_short: String,
        log_x: bool,
        /// Piecewise constant, like paths; else straight lines.
        steps: bool,
        /// Without the buttons for logarithmic scales and zooming.
        plain: bool,
        series: Vec<Series>,
        marks: Vec<Mark>,
    },
    /// A tree in two dimensions with a lifetime slider.
    Partition {
        x: Axis,
        y: Axis,
        /// The name of the points' values.
        value: String,
        /// (time, axis, location, below, above); −1 ends.
        nodes: Vec<(f64, u8, f64, i64, i64)>,
        points: Vec<[f64; 3]>,
        #[serde(skip_serializing_if = "Option::is_none")]
        classes: Option<Vec<String>>,
        lifetime: f64,
        max_lifetime: f64,
    },
    /// Truth, prediction, lower and upper end.
    Intervals { rows: Vec<[f64; 4]>, coverage: f64 },
    /// Unordered points, such as residuals; optionally with a line at zero.
    Scatter { x_label: String, y_label: String, rows: Vec<[f64; 2]>, zero: bool },
    /// Rows by class and predicted class.
    Confusion { classes: Vec<String>, counts: Vec<Vec<u64>> },
    /// Named bars.
    Bars { names: Vec<String>, values: Vec<f64>, threshold: f64 },
    /// The data's columns.
    Columns { columns: Vec<Column> },
    /// Any table; numbers and texts.
    Table {
        #[serde(skip_serializing_if = "Option::is_none")]
        heading: Option<String>,
        head: Vec<String>,
        rows: Vec<Vec<Value>>,
        /// The row to highlight.
        #[serde(skip_serializing_if = "Option::is_none")]
        best: Option<usize>,
    },
    /// Drawings side by side.
    Figures { figures: Vec<Figure> },
    /// Commands that reproduce this report, and its settings.
    Repeat { commands: Vec<String>, items: Vec<(String, Value)> },
}

/// One curve.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) x: Vec<f64>,
    pub(crate) y: Vec<f64>,
    pub(crate) dots: bool,
    /// A thin dashed line for reference.
    pub(crate) muted: bool,
}

impl Series {
    pub(crate) fn new(name: &str, x: Vec<f64>, y: Vec<f64>) -> Self {
        Self { name: name.to_owned(), x, y, dots: false, muted: false }
    }
}

/// A marked position on the horizontal axis.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Mark {
    pub(crate) x: f64,
    pub(crate) label: String,
    pub(crate) minor: bool,
}

/// One side of a partition: its range in the model's scale, and in the file's units if they differ.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Axis {
    pub(crate) name: String,
    pub(crate) min: f64,
    pub(crate) max: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) high: Option<f64>,
}

/// One column of the data.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) min: f64,
    pub(crate) mean: f64,
    pub(crate) max: f64,
    pub(crate) missing: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) levels: Option<String>,
    pub(crate) histogram: Vec<u64>,
}

/// A drawing.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figure {
    pub(crate) svg: String,
    pub(crate) caption: String,
}
