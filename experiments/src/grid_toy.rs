//! Toy data in two dimensions for the grid experiments: small enough that every configuration can be tried.

use mondrian::Progress;
use mondrian::SearchKind;
use mondrian::internals::features::MondrianGrid;
use mondrian::internals::grid::search::Search;
use mondrian::internals::grid::search::SearchLimits;
use mondrian::internals::grid::{GridState, Move};
use mondrian::process::NodeKey;
use mondrian::{Points, Result};

use crate::plot::{Path, Surface};

const N_TRAIN: usize = 200;
const N_VALIDATION: usize = 100;
const ALPHA: f64 = 0.1;
pub(crate) const NOISE: f64 = 0.05;

/// Rows uniform on the unit square with a noisy target, and the grids.
pub(crate) struct Toy {
    x: Vec<f64>,
    y: Vec<f64>,
    n_grids: usize,
    seed: u64,
}

/// A lattice of validation errors: entry (r, c) is that after c cuts in the first and r in the second dimension.
pub(crate) struct Lattice {
    pub(crate) size: usize,
    pub(crate) values: Vec<f64>,
}

impl Lattice {
    pub(crate) fn least(&self) -> f64 {
        self.values.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// With walks over it, and a ring around the least of all.
    pub(crate) fn surface(self, title: &str, mut paths: Vec<Path>) -> Surface {
        let at = (0..self.values.len()).fold(0, |best, k| if self.values[k] < self.values[best] { k } else { best });
        let (x, y) = (vec![(at % self.size) as f64], vec![(at / self.size) as f64]);
        paths.push(Path { name: "least of all".to_owned(), colour: 2, x, y, joined: false });
        Surface {
            title: title.to_owned(),
            x: "cuts in dimension 1".to_owned(),
            y: "cuts in dimension 2".to_owned(),
            z: "validation RMSE".to_owned(),
            n_columns: self.size,
            values: self.values,
            paths,
        }
    }
}

/// A search with its configurations as numbers of cuts.
pub(crate) struct Walk {
    pub(crate) errors: Vec<f64>,
    pub(crate) cuts: Vec<[usize; 2]>,
}

impl Walk {
    pub(crate) fn least(&self) -> f64 {
        self.errors.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// As a path over a lattice: the part before it first leaves it.
    pub(crate) fn on(&self, size: usize, name: &str) -> Path {
        let inside = self.cuts.iter().take_while(|c| c[0] < size && c[1] < size);
        let (x, y) = inside.map(|c| (c[0] as f64, c[1] as f64)).unzip();
        Path { name: name.to_owned(), colour: 0, x, y, joined: true }
    }

    /// The neighbours that an increasing search evaluated.
    pub(crate) fn considered(&self, size: usize) -> Path {
        let mut seen = std::collections::BTreeSet::new();
        for c in &self.cuts {
            seen.extend([[c[0] + 1, c[1]], [c[0], c[1] + 1]].into_iter().filter(|c| c[0] < size && c[1] < size));
        }
        let (x, y) = seen.iter().map(|c| (c[0] as f64, c[1] as f64)).unzip();
        Path { name: "considered".to_owned(), colour: 1, x, y, joined: false }
    }
}

impl Toy {
    /// A target of two inputs with noise of a twentieth.
    pub(crate) fn new(seed: u64, n_grids: usize, target: impl Fn(f64, f64) -> f64) -> Self {
        let n = N_TRAIN + N_VALIDATION;
        let key = NodeKey::root(seed, 0);
        let x: Vec<f64> = (0..2 * n).map(|k| key.fork(0).fork(k as u64).draw(0).uniform()).collect();
        let error = |i: usize| NOISE * key.fork(1).fork(i as u64).draw(0).normal();
        let y = x.chunks(2).enumerate().map(|(i, r)| target(r[0], r[1]) + error(i)).collect();
        Self { x, y, n_grids, seed }
    }

    fn state(&self) -> Result<GridState> {
        GridState::new(
            MondrianGrid::new(self.n_grids, self.seed)?,
            Points::row_major(&self.x[..2 * N_TRAIN], 2)?,
            &self.y[..N_TRAIN],
            Points::row_major(&self.x[2 * N_TRAIN..], 2)?,
            &self.y[N_TRAIN..],
            ALPHA,
            true,
        )
    }

    /// The validation error after any numbers of cuts below `size`.
    pub(crate) fn lattice(&self, size: usize) -> Result<Lattice> {
        let mut state = self.state()?;
        let mut values = Vec::new();
        for row in 0..size {
            let start = state.lifetimes().to_vec();
            values.push(state.validation_error());
            for _ in 1..size {
                state.apply(Move::Raise(0))?;
                values.push(state.validation_error());
            }
            state.jump(&start)?;
            if row + 1 < size {
                state.apply(Move::Raise(1))?;
            }
        }
        Ok(Lattice { size, values })
    }

    /// A search from no cuts at all.
    pub(crate) fn walk(&self, kind: SearchKind, budget: usize) -> Result<Walk> {
        let mut search = Search::new(self.state()?, kind.optimizer(self.seed));
        search.run(SearchLimits { budget, patience: budget }, &mut Progress::none())?;
        let mut ruler = self.state()?;
        let mut walk = Walk { errors: Vec::new(), cuts: Vec::new() };
        for step in search.trajectory().steps() {
            ruler.jump(&step.lifetimes)?;
            walk.errors.push(step.error);
            walk.cuts.push([ruler.n_cuts()[0], ruler.n_cuts()[1]]);
        }
        Ok(walk)
    }
}

/// The settings that all toy experiments share, as words.
pub(crate) const SETTINGS: [(&str, &str); 3] = [
    ("rows", "200 to learn and 100 to validate, uniform on the unit square"),
    ("noise", "0.05"),
    ("α =", "0.1 with an intercept (the report states none of these)"),
];
