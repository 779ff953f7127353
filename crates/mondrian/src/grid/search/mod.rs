//! Searching for lifetimes on a grid: one loop, many optimizers.
//!
//! An [`Optimizer`] makes one step at a time on a [`Bench`], which evaluates, records and counts. So every optimizer
//! respects the budget, reports progress, can be stopped between any two evaluations' steps and resumed, and
//! leaves a whole trajectory.

mod bayes;
mod coordinate;
mod gradient;
mod greedy;
mod lookahead;
mod spsa;

pub use bayes::Bayes;
pub use coordinate::Coordinate;
pub use gradient::Gradient;
pub use greedy::Greedy;
pub use lookahead::Lookahead;
pub use spsa::Spsa;

use crate::grid::{GridState, Move};
use crate::progress::{Progress, Step};
use crate::select::Trajectory;
use crate::{Error, Result};

/// One way of choosing the next configuration.
pub trait Optimizer: std::fmt::Debug + Send {
    /// Makes the next step; false when there are no candidates left.
    ///
    /// # Errors
    /// Those of the evaluations.
    fn step(&mut self, bench: &mut Bench<'_>) -> Result<bool>;
}

/// Which optimizer; the names of the Python package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchKind {
    /// The gradient, which gives the best model for the time.
    #[default]
    Auto,
    /// Always add the best next cut.
    Greedy,
    /// Add or remove the best cut, while that lowers the error.
    GreedyBoth,
    /// Several cuts in one direction before deciding.
    Lookahead,
    /// One lifetime after the other, multiplied by factors.
    Coordinate,
    /// Quasi-Newton descent on the exact kernel.
    Gradient,
    /// Simultaneous perturbation.
    Spsa,
    /// Gaussian-process optimisation by expected improvement.
    Bayes,
}

impl SearchKind {
    /// From its name: auto, greedy, greedy-both, lookahead, coordinate, gradient, spsa, bayes.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "auto" => Self::Auto,
            "greedy" => Self::Greedy,
            "greedy-both" => Self::GreedyBoth,
            "lookahead" => Self::Lookahead,
            "coordinate" => Self::Coordinate,
            "gradient" => Self::Gradient,
            "spsa" => Self::Spsa,
            "bayes" => Self::Bayes,
            _ => return None,
        })
    }

    /// A fresh optimizer of this kind.
    pub fn optimizer(self, seed: u64) -> Box<dyn Optimizer> {
        match self {
            Self::Auto | Self::Gradient => Box::new(Gradient::default()),
            Self::Greedy => Box::new(Greedy::increase()),
            Self::GreedyBoth => Box::new(Greedy::both()),
            Self::Lookahead => Box::new(Lookahead::new(8)),
            Self::Coordinate => Box::new(Coordinate::default()),
            Self::Spsa => Box::new(Spsa::new(seed)),
            Self::Bayes => Box::new(Bayes::new(seed)),
        }
    }
}

/// When a search ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchLimits {
    /// Evaluations in all: configurations whose validation error was computed, what-ifs included.
    pub budget: usize,
    /// Steps without a new smallest error after which it ends.
    pub patience: usize,
}

impl Default for SearchLimits {
    fn default() -> Self {
        Self { budget: 400, patience: 50 }
    }
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The optimizer had no candidates left.
    Finished,
    /// The budget is used up; a run with a larger one resumes.
    Budget,
    /// No new smallest error for as many steps as patience allows.
    Patience,
    /// The callback stopped it; another run resumes.
    Stopped,
}

/// The interface of optimizers to the state.
pub struct Bench<'a> {
    state: &'a mut GridState,
    trajectory: &'a mut Trajectory,
    evaluations: &'a mut usize,
    progress: Progress<'a>,
    budget: usize,
    patience: usize,
    stopped: bool,
}

impl Bench<'_> {
    /// The current state.
    pub fn state(&self) -> &GridState {
        self.state
    }

    /// The validation error after each move, made alone.
    ///
    /// # Errors
    /// Those of [`GridState::what_if`].
    pub fn what_if(&mut self, moves: &[Move]) -> Result<Vec<Option<f64>>> {
        *self.evaluations += moves.len();
        self.state.what_if(moves)
    }

    /// Makes a move that counts as a step of the trajectory, or not if only trying.
    ///
    /// # Errors
    /// Those of [`GridState::apply`].
    pub fn make(&mut self, step: Move, record: bool) -> Result<Option<f64>> {
        if !self.state.apply(step)? {
            return Ok(None);
        }
        let error = self.state.validation_error();
        if record {
            let lifetimes = self.state.lifetimes().to_vec();
            self.record(lifetimes, error);
        } else {
            *self.evaluations += 1;
        }
        Ok(Some(error))
    }

    /// The validation error at any configuration.
    ///
    /// # Errors
    /// Those of [`GridState::error_at`].
    pub fn evaluate(&mut self, lifetimes: &[f64]) -> Result<f64> {
        *self.evaluations += 1;
        let error = self.state.error_at(lifetimes)?;
        self.record(lifetimes.to_vec(), error);
        Ok(error)
    }

    /// Whether evaluations are left.
    pub fn has_budget(&self) -> bool {
        *self.evaluations < self.budget && !self.stopped
    }

    fn record(&mut self, lifetimes: Vec<f64>, error: f64) {
        let (alpha, cost, rows) = (self.state.alpha(), self.state.cost(), self.state.n_train());
        let step = Step { lifetimes, alpha, error, cost, rows };
        let fraction = (*self.evaluations as f64 / self.budget.max(1) as f64).min(1.0);
        self.stopped |= self.progress.step(fraction, &step).is_err();
        self.trajectory.push(step);
    }
}

/// A search in progress: a state, an optimizer and the trajectory.
///
/// ```
/// use mondrian::{Points, Progress};
/// use mondrian::internals::features::MondrianGrid;
/// use mondrian::internals::grid::GridState;
/// use mondrian::internals::grid::search::SearchLimits;
/// use mondrian::SearchKind;
/// use mondrian::internals::grid::search::{Outcome, Search};
/// let x: Vec<f64> = (0..90).map(|i| f64::from(i * 37 % 90) / 30.0).collect();
/// let y: Vec<f64> = x.iter().map(|x| x.sin()).collect();
/// let (train, validation) = (Points::row_major(&x[..60], 1)?, Points::row_major(&x[60..], 1)?);
/// let state = GridState::new(MondrianGrid::new(20, 1)?, train, &y[..60], validation, &y[60..], 0.01, true)?;
/// let mut search = Search::new(state, SearchKind::Greedy.optimizer(0));
/// let limits = SearchLimits { budget: 30, patience: 1000 };
/// assert_eq!(search.run(limits, &mut Progress::none())?, Outcome::Budget);
/// let early = search.best().expect("steps were made").error;
/// search.run(SearchLimits { budget: 100, ..limits }, &mut Progress::none())?;       // resumes
/// assert!(search.best().expect("more steps").error < early);
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug)]
pub struct Search {
    state: GridState,
    optimizer: Box<dyn Optimizer>,
    trajectory: Trajectory,
    evaluations: usize,
    finished: bool,
}

impl Search {
    /// A new search. Greedy searches start at the state's configuration.
    pub fn new(state: GridState, optimizer: Box<dyn Optimizer>) -> Self {
        Self { state, optimizer, trajectory: Trajectory::default(), evaluations: 0, finished: false }
    }

    /// Runs or resumes the search until a limit is reached. The budget counts from the first run.
    ///
    /// # Errors
    /// Those of the evaluations; a state too large for them ends the search instead.
    pub fn run(&mut self, limits: SearchLimits, progress: &mut Progress<'_>) -> Result<Outcome> {
        if self.trajectory.is_empty() {
            let mut bench = self.bench(limits, progress.part(0.0, 1.0));
            let (lifetimes, error) = (bench.state.lifetimes().to_vec(), bench.state.validation_error());
            *bench.evaluations += 1;
            bench.record(lifetimes, error);
        }
        loop {
            if self.finished {
                return Ok(Outcome::Finished);
            }
            if self.evaluations >= limits.budget {
                return Ok(Outcome::Budget);
            }
            if self.steps_since_best() >= limits.patience {
                return Ok(Outcome::Patience);
            }
            let mut optimizer = std::mem::replace(&mut self.optimizer, Box::new(Greedy::increase()));
            let mut bench = self.bench(limits, progress.part(0.0, 1.0));
            let more = optimizer.step(&mut bench);
            let stopped = bench.stopped;
            self.optimizer = optimizer;
            self.finished = match more {
                Ok(more) => !more,
                // Partitions that are too fine for the memory limit are not candidates.
                Err(Error::TooLarge { .. }) => true,
                Err(error) => return Err(error),
            };
            if stopped {
                return Ok(Outcome::Stopped);
            }
        }
    }

    /// The validation error after each of these moves, made alone from the current configuration; counted as
    /// evaluations.
    ///
    /// # Errors
    /// Those of [`GridState::what_if`].
    pub fn what_if(&mut self, moves: &[Move]) -> Result<Vec<Option<f64>>> {
        self.bench(SearchLimits::default(), Progress::none()).what_if(moves)
    }

    /// Makes a move manually; the next run continues from there. Returns the new error, or none if there is no such
    /// cut.
    ///
    /// # Errors
    /// Those of [`GridState::apply`].
    pub fn make(&mut self, step: Move) -> Result<Option<f64>> {
        let mut bench = self.bench(SearchLimits::default(), Progress::none());
        let made = bench.make(step, true)?;
        *bench.evaluations += usize::from(made.is_some());
        self.finished &= made.is_none();
        Ok(made)
    }

    /// Moves to a configuration manually; the next run continues from there. Returns its error.
    ///
    /// # Errors
    /// Those of [`GridState::jump`].
    pub fn jump(&mut self, lifetimes: &[f64]) -> Result<f64> {
        self.state.jump(lifetimes)?;
        let mut bench = self.bench(SearchLimits::default(), Progress::none());
        *bench.evaluations += 1;
        let (lifetimes, error) = (bench.state.lifetimes().to_vec(), bench.state.validation_error());
        bench.record(lifetimes, error);
        self.finished = false;
        Ok(error)
    }

    /// Tunes α at the best configuration, by factors of the square root of ten while the error decreases. The next run
    /// continues from there with this α. Every α needs a fresh solve.
    ///
    /// # Errors
    /// Those of [`GridState::jump`] and [`GridState::set_alpha`].
    pub fn tune_alpha(&mut self, limits: SearchLimits, progress: &mut Progress<'_>) -> Result<Outcome> {
        let Some(Step { lifetimes, alpha, error: mut least, .. }) = self.best().cloned() else {
            return Ok(Outcome::Finished);
        };
        self.state.jump(&lifetimes)?;
        if self.state.alpha() != alpha {
            self.state.set_alpha(alpha)?;
        }
        self.finished = false;
        for factor in [10.0_f64.sqrt(), 0.1_f64.sqrt()] {
            let mut has_moved = false;
            loop {
                if self.evaluations >= limits.budget {
                    return Ok(Outcome::Budget);
                }
                let before = self.state.alpha();
                match self.state.set_alpha(before * factor) {
                    Err(Error::NotPositiveDefinite { .. }) => break,
                    outcome => outcome?,
                }
                let mut bench = self.bench(limits, progress.part(0.0, 1.0));
                let error = bench.state.validation_error();
                *bench.evaluations += 1;
                bench.record(lifetimes.clone(), error);
                if bench.stopped {
                    return Ok(Outcome::Stopped);
                }
                if error >= least {
                    self.state.set_alpha(before)?;
                    break;
                }
                (least, has_moved) = (error, true);
            }
            if has_moved {
                break;
            }
        }
        Ok(Outcome::Finished)
    }

    fn bench<'a>(&'a mut self, limits: SearchLimits, progress: Progress<'a>) -> Bench<'a> {
        let Self { state, trajectory, evaluations, .. } = self;
        Bench {
            state,
            trajectory,
            evaluations,
            progress,
            budget: limits.budget,
            patience: limits.patience,
            stopped: false,
        }
    }

    fn steps_since_best(&self) -> usize {
        let steps = self.trajectory.steps();
        let mut best = (f64::INFINITY, 0);
        for (at, step) in steps.iter().enumerate() {
            if step.error < best.0 {
                best = (step.error, at);
            }
        }
        steps.len().saturating_sub(best.1 + 1)
    }

    /// The recorded evaluations.
    pub fn trajectory(&self) -> &Trajectory {
        &self.trajectory
    }

    /// The step of smallest validation error.
    pub fn best(&self) -> Option<&Step> {
        self.trajectory.best()
    }

    /// Evaluations so far.
    pub fn evaluations(&self) -> usize {
        self.evaluations
    }

    /// The current state of the search.
    pub fn state(&self) -> &GridState {
        &self.state
    }
}
