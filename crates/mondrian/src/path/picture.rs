//! A path as a small self-contained SVG.

use std::fmt::Write as _;

use crate::path::RegularizationPath;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
const MARGIN: [f64; 4] = [24.0, 24.0, 52.0, 72.0]; // top, right, bottom, left

/// Largest number of values drawn per curve.
const DRAWN: usize = 2000;

impl RegularizationPath {
    /// The curves over the lifetime (logarithmic axis where that reads better), the best lifetime marked.
    pub fn to_svg(&self) -> String {
        let thin = self.thinned(DRAWN);
        let mut curves: Vec<(&str, &str, &[f64])> = vec![("training", "#d62718", &thin.train)];
        for curve in &thin.validation {
            curves.push(("validation", "#1b7a3d", curve));
        }
        if let Some(curve) = &thin.leave_one_out {
            curves.push(("leave-one-out", "#1f4fa3", curve));
        }
        let frame = Frame::new(&thin.lifetimes, curves.iter().flat_map(|c| c.2.iter().copied()));
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"13\"><rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>"
        );
        frame.axes(&mut svg, self.loss.name());
        for (row, (name, colour, values)) in curves.iter().enumerate() {
            frame.curve(&mut svg, &thin.lifetimes, values, colour);
            let y = MARGIN[0] + 16.0 * row as f64 + 10.0;
            let x = WIDTH - MARGIN[1] - 110.0;
            let _ = write!(
                svg,
                "<path d=\"M{x} {}h18\" stroke=\"{colour}\" stroke-width=\"3\"/><text x=\"{}\" y=\"{y}\">{name}</text>",
                y - 4.0,
                x + 24.0
            );
        }
        let best = frame.x(self.best_lifetime().get());
        let _ = write!(
            svg,
            "<path d=\"M{best:.1} {}V{}\" stroke=\"#000\" stroke-dasharray=\"2 4\"/><text x=\"{:.1}\" y=\"{}\">λ = {:.4}</text></svg>",
            MARGIN[0],
            HEIGHT - MARGIN[2],
            best + 5.0,
            HEIGHT - MARGIN[2] - 8.0,
            self.best_lifetime().get()
        );
        svg
    }
}

/// The positions of values on the page.
struct Frame {
    x: (f64, f64),
    y: (f64, f64),
}

impl Frame {
    fn new(lifetimes: &[f64], values: impl Iterator<Item = f64>) -> Self {
        let last = lifetimes[lifetimes.len() - 1];
        let last = if last.is_finite() && last > 0.0 { last } else { 1.0 };
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|v| v.is_finite()) {
            low = low.min(value);
            high = high.max(value);
        }
        if low >= high {
            (low, high) = if low.is_finite() { (low - 0.5, low + 0.5) } else { (0.0, 1.0) };
        }
        let pad = (high - low) * 0.04;
        Self { x: (0.0, last), y: (low - pad, high + pad) }
    }

    fn x(&self, t: f64) -> f64 {
        MARGIN[3] + (t.min(self.x.1) - self.x.0) / (self.x.1 - self.x.0) * (WIDTH - MARGIN[1] - MARGIN[3])
    }

    fn y(&self, v: f64) -> f64 {
        HEIGHT - MARGIN[2] - (v - self.y.0) / (self.y.1 - self.y.0) * (HEIGHT - MARGIN[0] - MARGIN[2])
    }

    fn axes(&self, svg: &mut String, loss: &str) {
        let (left, bottom) = (MARGIN[3], HEIGHT - MARGIN[2]);
        let _ = write!(
            svg,
            "<path d=\"M{left} {}V{bottom}H{}\" fill=\"none\" stroke=\"#333\"/>",
            MARGIN[0],
            WIDTH - MARGIN[1]
        );
        for tick in ticks(self.x) {
            let x = self.x(tick);
            let _ = write!(
                svg,
                "<path d=\"M{x:.1} {bottom}v5\" stroke=\"#333\"/><text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                bottom + 19.0,
                short(tick)
            );
        }
        for tick in ticks(self.y) {
            let y = self.y(tick);
            let _ = write!(
                svg,
                "<path d=\"M{} {y:.1}h5\" stroke=\"#333\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 5.0,
                left - 9.0,
                y + 4.0,
                short(tick)
            );
        }
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">lifetime λ</text>",
            (left + WIDTH - MARGIN[1]) / 2.0,
            HEIGHT - 12.0
        );
        let _ = write!(
            svg,
            "<text transform=\"translate(18 {}) rotate(-90)\" text-anchor=\"middle\">{loss}</text>",
            HEIGHT / 2.0
        );
    }

    /// A step curve: each value holds until the next lifetime.
    fn curve(&self, svg: &mut String, lifetimes: &[f64], values: &[f64], colour: &str) {
        let _ =
            write!(svg, "<path fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-linejoin=\"round\" d=\"");
        let mut pen = 'M';
        for (t, v) in lifetimes.iter().zip(values).filter(|(t, v)| t.is_finite() && v.is_finite()) {
            if pen == 'M' {
                let _ = write!(svg, "M{:.1} {:.1}", self.x(*t), self.y(*v));
                pen = 'L';
            } else {
                let _ = write!(svg, "H{:.1}V{:.1}", self.x(*t), self.y(*v));
            }
        }
        let _ = write!(svg, "H{:.1}\"/>", self.x(self.x.1));
    }
}

/// About five round numbers within a range.
fn ticks((low, high): (f64, f64)) -> Vec<f64> {
    let raw = (high - low) / 5.0;
    let power = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|f| f * power).find(|s| *s >= raw).unwrap_or(10.0 * power);
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    (first..=last.min(first + 20)).map(|i| i as f64 * step).collect()
}

fn short(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if value != 0.0 && (value.abs() >= 1e6 || value.abs() < 1e-4) { format!("{value:e}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use crate::path::{Loss, PathBuilder};

    #[test]
    fn a_path_of_one_value_can_be_drawn() {
        let mut path = PathBuilder::new(Loss::Rmse, 1);
        path.push(0.0, 1.0, &[1.0]);
        let svg = path.finish(None).to_svg();
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>") && !svg.contains("NaN"));
    }
}
