//! The figures of `docs/grid.md`: the report's three toy experiments and the altitude experiment.
//!
//! `grid_figures [FOLDER]` writes SVG files, by default into `docs/figures`, and prints what they show. The altitude
//! figures need the real data and are left out without it.

use std::ops::ControlFlow;
use std::path::Path;

use mondrian::Points;
use mondrian::grid::search::{Search, SearchKind, SearchLimits};
use mondrian::grid::{GridState, MondrianGrid, Move};
use mondrian::process::NodeKey;
use mondrian_benches::svg::{Chart, Line, Surface, page};
use mondrian_benches::{Table, timed};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

struct Toy {
    x: Vec<f64>,
    y: Vec<f64>,
    n_train: usize,
    n_grids: usize,
    alpha: f64,
    seed: u64,
}

impl Toy {
    fn new(seed: u64, n_grids: usize, noise: f64, target: impl Fn(f64, f64) -> f64) -> Self {
        let n = 300;
        let x: Vec<f64> = (0..2 * n).map(|k| NodeKey::root(seed, k).draw(0).uniform()).collect();
        let error = |i: usize| noise * NodeKey::root(seed + 1, i as u64).draw(0).normal();
        let y = x.chunks(2).enumerate().map(|(i, r)| target(r[0], r[1]) + error(i)).collect();
        Self { x, y, n_train: 200, n_grids, alpha: 0.1, seed }
    }

    fn state(&self) -> mondrian::Result<GridState> {
        let at = 2 * self.n_train;
        GridState::new(
            MondrianGrid::new(self.n_grids, self.seed)?,
            Points::row_major(&self.x[..at], 2)?,
            &self.y[..self.n_train],
            Points::row_major(&self.x[at..], 2)?,
            &self.y[self.n_train..],
            self.alpha,
            true,
        )
    }

    /// The validation error after any numbers of cuts below `size`; rows are the second dimension.
    fn surface(&self, size: usize) -> mondrian::Result<Vec<Vec<f64>>> {
        let mut state = self.state()?;
        let mut values = Vec::new();
        for row in 0..size {
            let mut line = vec![state.validation_error()];
            for _ in 1..size {
                state.apply(Move::Raise(0))?;
                line.push(state.validation_error());
            }
            for _ in 1..size {
                state.apply(Move::Lower(0))?;
            }
            values.push(line);
            if row + 1 < size {
                state.apply(Move::Raise(1))?;
            }
        }
        Ok(values)
    }

    /// A search with the configuration as numbers of cuts after each step.
    fn run(&self, kind: SearchKind, budget: usize) -> mondrian::Result<(Search, Vec<(f64, f64)>)> {
        let mut search = Search::new(self.state()?, kind.optimizer(1));
        search.run(SearchLimits { budget, patience: budget }, &mut |_| ControlFlow::Continue(()))?;
        let mut ruler = self.state()?;
        let mut path = Vec::new();
        for step in search.trajectory().steps() {
            ruler.jump(&step.lifetimes)?;
            path.push((ruler.n_cuts()[0] as f64, ruler.n_cuts()[1] as f64));
        }
        Ok((search, path))
    }
}

fn errors(search: &Search) -> Vec<(f64, f64)> {
    search.trajectory().steps().iter().enumerate().map(|(k, step)| (k as f64, step.error)).collect()
}

fn best(search: &Search) -> f64 {
    search.best().map_or(f64::NAN, |step| step.error)
}

fn greedy_figure(folder: &Path, name: &str, title: &str, toy: &Toy) -> Outcome<()> {
    const SIZE: usize = 41;
    let values = toy.surface(SIZE)?;
    let (search, path) = toy.run(SearchKind::Greedy, 2 * 2 * (SIZE - 1))?;
    let inside: Vec<(f64, f64)> = path.iter().copied().take_while(|p| p.0 < SIZE as f64 && p.1 < SIZE as f64).collect();
    let least = values.iter().flatten().fold(f64::INFINITY, |m, &v| m.min(v));
    let last = inside[inside.len() - 1];
    println!(
        "{name}: greedy from {:.4} to {:.4}; least of the surface {least:.4}; cuts at its end {} and {}",
        values[0][0],
        best(&search),
        last.0,
        last.1
    );
    let surface = Surface {
        title: title.to_owned(),
        x_label: "cuts in dimension 1".to_owned(),
        y_label: "cuts in dimension 2".to_owned(),
        values,
        paths: vec![Line { name: "greedy".to_owned(), points: inside }],
    };
    let chart = Chart {
        title: "Validation error along the path".to_owned(),
        x_label: "steps".to_owned(),
        y_label: "RMSE".to_owned(),
        lines: vec![Line { name: "greedy".to_owned(), points: errors(&search) }],
    };
    std::fs::write(folder.join(format!("{name}.svg")), page(&[surface.to_panel(), chart.to_panel()]))?;
    Ok(())
}

fn stuck_figure(folder: &Path, name: &str, title: &str, toy: &Toy) -> Outcome<()> {
    let kinds = [
        (SearchKind::GreedyBoth, "greedy both ways"),
        (SearchKind::Lookahead, "look-ahead"),
        (SearchKind::Spsa, "SPSA"),
        (SearchKind::Bayes, "Gaussian process"),
    ];
    let mut lines = Vec::new();
    for (kind, label) in kinds {
        let (search, _) = toy.run(kind, 200)?;
        let start = search.trajectory().steps()[0].error;
        println!("{name}, {label}: {start:.4} to {:.4} in {} evaluations", best(&search), search.evaluations());
        // The least so far, against the configurations kept.
        let mut least = f64::INFINITY;
        let points = errors(&search).into_iter().map(|(k, e)| {
            least = least.min(e);
            (k, least)
        });
        lines.push(Line { name: label.to_owned(), points: points.collect() });
    }
    let chart = Chart {
        title: title.to_owned(),
        x_label: "steps".to_owned(),
        y_label: "least validation RMSE so far".to_owned(),
        lines,
    };
    std::fs::write(folder.join(format!("{name}.svg")), page(&[chart.to_panel()]))?;
    Ok(())
}

fn altitude_figure(folder: &Path, table: &str, n_train: usize, title: &str) -> Outcome<()> {
    let Ok(table_read) = Table::read(table) else {
        println!("{table}: no data, no figure");
        return Ok(());
    };
    let split = table_read.split(0);
    let n_validation = 1000.min(split.test_y.len());
    let (train, validation) = (&split.train_x[..2 * n_train], &split.test_x[..2 * n_validation]);
    let state = GridState::new(
        MondrianGrid::new(20, 1)?,
        Points::row_major(train, 2)?,
        &split.train_y[..n_train],
        Points::row_major(validation, 2)?,
        &split.test_y[..n_validation],
        0.1,
        true,
    )?;
    let mut search = Search::new(state, SearchKind::Greedy.optimizer(0));
    let limits = SearchLimits { budget: 1200, patience: 100 };
    let (outcome, seconds) = timed(|| search.run(limits, &mut |_| ControlFlow::Continue(())));
    println!(
        "{table}, {n_train} training rows: {:?} after {} steps in {seconds:.1} s, validation error {:.2} to {:.2}, {} features",
        outcome?,
        search.trajectory().len(),
        search.trajectory().steps()[0].error,
        best(&search),
        search.state().n_features()
    );
    let lifetime = |dim: usize| {
        let steps = search.trajectory().steps().iter().enumerate();
        steps.map(|(k, step)| (k as f64, step.lifetimes[dim])).collect()
    };
    let error = Chart {
        title: title.to_owned(),
        x_label: "steps".to_owned(),
        y_label: "validation RMSE, metres".to_owned(),
        lines: vec![Line { name: "greedy".to_owned(), points: errors(&search) }],
    };
    let lifetimes = Chart {
        title: "Lifetimes".to_owned(),
        x_label: "steps".to_owned(),
        y_label: "lifetime, standardised inputs".to_owned(),
        lines: vec![
            Line { name: "longitude".to_owned(), points: lifetime(0) },
            Line { name: "latitude".to_owned(), points: lifetime(1) },
        ],
    };
    std::fs::write(folder.join(format!("grid-{table}.svg")), page(&[error.to_panel(), lifetimes.to_panel()]))?;
    Ok(())
}

fn main() -> Outcome<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "docs/figures".to_owned());
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    let smooth = Toy::new(5, 5, 0.05, |a, b| (3.0 * a).sin() + 0.7 * b);
    greedy_figure(folder, "grid-toy-surface", "Greedy on an easy surface", &smooth)?;
    let irrelevant = Toy::new(6, 5, 0.05, |a, _| (6.0 * a).sin());
    greedy_figure(folder, "grid-toy-irrelevant", "Dimension 2 is irrelevant", &irrelevant)?;
    let board = Toy::new(7, 10, 0.05, |a, b| if (a < 0.5) == (b < 0.5) { 1.0 } else { -1.0 });
    stuck_figure(folder, "grid-toy-stuck", "A chessboard: no single dimension helps", &board)?;
    let wave = Toy::new(8, 3, 0.05, |a, _| (25.0 * a).sin());
    stuck_figure(folder, "grid-toy-wave", "A wave: the first cuts do not help", &wave)?;
    altitude_figure(folder, "road3d_head", 4000, "3D Road Network, first 5000 rows")?;
    altitude_figure(folder, "gebco_altitude", 10_000, "GEBCO altitude (stand-in)")
}
