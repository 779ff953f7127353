//! Accuracy of predictions, accumulated row by row: errors, the coverage of intervals, log loss.

use serde_json::{Map, Value, json};

use crate::commands::describe::short;
use crate::model::{Answer, number};

/// Sums over rows whose target is known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scores {
    n: u64,
    /// Rows whose target is missing or a class that is unknown to the model.
    n_unknown: u64,
    // Targets: Welford's mean and squares.
    mean: f64,
    squares: f64,
    // Numbers.
    squared_error: f64,
    absolute_error: f64,
    held: u64,
    width: f64,
    has_intervals: bool,
    // Classes.
    is_classes: bool,
    right: u64,
    log_loss: f64,
    brier: f64,
    /// Row: truth, column: prediction.
    confusion: Vec<Vec<u64>>,
    // Densities.
    is_density: bool,
    log_density: f64,
    outside: u64,
}

impl Scores {
    /// Adds predictions and targets; with `density` the means are log densities and there are no targets.
    pub(crate) fn add(&mut self, answer: &Answer, targets: &[f64], density: bool) {
        if density {
            if let Answer::Mean(values) = answer {
                self.is_density = true;
                values.iter().for_each(|&value| self.add_density(value));
            }
            return;
        }
        for (i, &y) in targets.iter().enumerate() {
            if !y.is_finite() {
                self.n_unknown += 1;
                continue;
            }
            self.n += 1;
            match answer {
                Answer::Mean(mean) => self.add_number(y, mean[i], None),
                Answer::Regression { mean, lower, upper, .. } => {
                    self.add_number(y, mean[i], Some((lower[i], upper[i])));
                }
                Answer::Classes(probabilities) => {
                    let n_classes = probabilities.len() / targets.len();
                    self.add_class(y as usize, &probabilities[i * n_classes..][..n_classes]);
                }
            }
        }
    }

    fn add_density(&mut self, log_density: f64) {
        self.n += 1;
        if log_density.is_finite() {
            self.log_density += log_density;
        } else {
            self.outside += 1;
        }
    }

    fn add_number(&mut self, y: f64, mean: f64, interval: Option<(f64, f64)>) {
        let delta = y - self.mean;
        self.mean += delta / self.n as f64;
        self.squares += delta * (y - self.mean);
        self.squared_error += (y - mean) * (y - mean);
        self.absolute_error += (y - mean).abs();
        if let Some((lower, upper)) = interval {
            self.has_intervals = true;
            self.held += u64::from(lower <= y && y <= upper);
            self.width += upper - lower;
        }
    }

    fn add_class(&mut self, truth: usize, probabilities: &[f64]) {
        self.is_classes = true;
        let n_classes = probabilities.len().max(truth + 1);
        self.confusion.resize(n_classes.max(self.confusion.len()), Vec::new());
        for row in &mut self.confusion {
            row.resize(n_classes.max(row.len()), 0);
        }
        let predicted = most_probable(probabilities);
        self.confusion[truth][predicted] += 1;
        self.right += u64::from(truth == predicted);
        // As usual, a probability of 0 is replaced by the smallest positive number.
        self.log_loss -= probabilities.get(truth).copied().unwrap_or(0.0).max(f64::MIN_POSITIVE).ln();
        self.brier += probabilities
            .iter()
            .enumerate()
            .map(|(class, p)| (p - f64::from(u8::from(class == truth))).powi(2))
            .sum::<f64>();
    }

    /// The number of rows.
    pub(crate) fn n(&self) -> u64 {
        self.n
    }

    fn mean_of(&self, sum: f64) -> f64 {
        sum / self.n.max(1) as f64
    }

    /// Root mean squared error.
    pub(crate) fn rmse(&self) -> f64 {
        self.mean_of(self.squared_error).sqrt()
    }

    /// Mean absolute error.
    pub(crate) fn mae(&self) -> f64 {
        self.mean_of(self.absolute_error)
    }

    /// Root mean squared error of predicting the mean of these targets.
    pub(crate) fn baseline(&self) -> f64 {
        self.mean_of(self.squares).sqrt()
    }

    /// The share of the targets' variance that predictions explain; none if they do not vary.
    pub(crate) fn r2(&self) -> Option<f64> {
        (self.squares > 0.0).then(|| 1.0 - self.squared_error / self.squares)
    }

    /// The share of targets inside their intervals.
    pub(crate) fn coverage(&self) -> Option<f64> {
        self.has_intervals.then(|| self.mean_of(self.held as f64))
    }

    /// The share of correct classes.
    pub(crate) fn accuracy(&self) -> f64 {
        self.mean_of(self.right as f64)
    }

    /// The share of rows of the most frequent class.
    pub(crate) fn majority(&self) -> f64 {
        self.mean_of(self.confusion.iter().map(|row| row.iter().sum::<u64>()).max().unwrap_or(0) as f64)
    }

    /// The error so far: RMSE, the share of wrong classes, or the mean log density.
    pub(crate) fn running(&self) -> f64 {
        if self.is_density {
            self.log_density / (self.n - self.outside).max(1) as f64
        } else if self.is_classes {
            1.0 - self.accuracy()
        } else {
            self.rmse()
        }
    }

    /// All figures by name, for JSON.
    pub(crate) fn figures(&self, coverage: f64, classes: &[String]) -> Value {
        let mut object = Map::new();
        let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
        put("rows", json!(self.n));
        if self.is_density {
            put("mean_log_density", number(self.log_density / (self.n - self.outside).max(1) as f64));
            put("outside_the_box", json!(self.outside));
            return Value::Object(object);
        }
        put("unknown_targets", json!(self.n_unknown));
        if self.is_classes {
            put("accuracy", json!(self.accuracy()));
            put("log_loss", json!(self.mean_of(self.log_loss)));
            put("brier", json!(self.mean_of(self.brier)));
            put("baseline_accuracy", json!(self.majority()));
            put("classes", json!(classes));
            put("confusion", json!(self.confusion));
        } else {
            put("rmse", json!(self.rmse()));
            put("mae", json!(self.mae()));
            put("r2", json!(self.r2()));
            put("baseline_rmse", json!(self.baseline()));
            if self.has_intervals {
                put("interval", json!(coverage));
                put("coverage", json!(self.coverage()));
                put("mean_width", json!(self.mean_of(self.width)));
            }
        }
        Value::Object(object)
    }

    /// The figures in one line.
    pub(crate) fn line(&self, coverage: f64) -> String {
        let unknown =
            if self.n_unknown > 0 { format!("; {} targets are unknown", self.n_unknown) } else { String::new() };
        let text = if self.is_density {
            let inside = (self.n - self.outside).max(1) as f64;
            format!("mean log density {}, {} rows outside the box", short(self.log_density / inside), self.outside)
        } else if self.is_classes {
            format!(
                "accuracy {:.1} %, log loss {} (most frequent class: {:.1} %)",
                100.0 * self.accuracy(),
                short(self.mean_of(self.log_loss)),
                100.0 * self.majority()
            )
        } else {
            let r2 = self.r2().map_or(String::new(), |r2| format!(", R² {}", short(r2)));
            let held = self.coverage().map_or(String::new(), |held| {
                format!("; {} % intervals cover {:.1} %", short(100.0 * coverage), 100.0 * held)
            });
            format!(
                "RMSE {} (predicting the mean: {}), MAE {}{r2}{held}",
                short(self.rmse()),
                short(self.baseline()),
                short(self.mae())
            )
        };
        format!("{} rows: {text}{unknown}", self.n)
    }
}

/// The most probable class, the first of equals.
pub(crate) fn most_probable(probabilities: &[f64]) -> usize {
    let mut best = 0;
    for (i, p) in probabilities.iter().enumerate() {
        if *p > probabilities[best] {
            best = i;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_by_hand() {
        let mut scores = Scores::default();
        let answer = Answer::Regression {
            mean: vec![1.0, 2.0, 4.0, 0.0],
            std: vec![1.0; 4],
            lower: vec![0.0, 2.5, 3.0, 0.0],
            upper: vec![2.0, 3.5, 5.0, 0.0],
        };
        scores.add(&answer, &[1.0, 3.0, 2.0, f64::NAN], false);
        assert_eq!((scores.n(), scores.mae()), (3, 1.0));
        assert!((scores.rmse() - (5.0_f64 / 3.0).sqrt()).abs() < 1e-15);
        assert!((scores.baseline() - (2.0_f64 / 3.0).sqrt()).abs() < 1e-15);
        assert!((scores.r2().unwrap() + 1.5).abs() < 1e-14);
        assert_eq!(scores.figures(0.9, &[])["coverage"], 2.0 / 3.0);
        assert_eq!(scores.figures(0.9, &[])["unknown_targets"], 1);
    }

    #[test]
    fn classes_by_hand() {
        let mut scores = Scores::default();
        scores.add(&Answer::Classes(vec![0.25, 0.75, 0.5, 0.5]), &[1.0, 1.0], false);
        let figures = scores.figures(0.9, &["a".into(), "b".into()]);
        assert_eq!((figures["accuracy"].as_f64(), figures["confusion"][1][0].as_u64()), (Some(0.5), Some(1)));
        let expected = -(0.75_f64.ln() + 0.5_f64.ln()) / 2.0;
        assert!((figures["log_loss"].as_f64().unwrap() - expected).abs() < 1e-15);
        assert_eq!(figures["baseline_accuracy"], 1.0);
    }
}
