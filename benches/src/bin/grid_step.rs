//! One greedy step by what-if against the report's save, update, restore; and a whole search.
//!
//! `grid_step`: D = 8, about 2000 features. The report's way copies P for each of the 2·D candidates, deletes every
//! changed feature and borders for its successors one at a time, and reads the validation error off the result.

use std::collections::HashMap;

use mondrian::Matrix;
use mondrian::Points;
use mondrian::Progress;
use mondrian::SearchKind;
use mondrian::internals::features::MondrianGrid;
use mondrian::internals::grid::search::Search;
use mondrian::internals::grid::search::SearchLimits;
use mondrian::internals::grid::{GridState, Move};
use mondrian::internals::linalg::{Cholesky, Into, Threads, gemv};
use mondrian::process::NodeKey;
use mondrian_benches::timed;

const D: usize = 8;
const N_GRIDS: usize = 50;
const ALPHA: f64 = 0.1;

fn sample(n: usize) -> (Vec<f64>, Vec<f64>) {
    let x: Vec<f64> = (0..n * D).map(|k| NodeKey::root(1, k as u64).draw(0).uniform()).collect();
    let y = x.chunks(D).map(|r| (5.0 * r[0]).sin() + r[1] * r[2] + 0.5 * (3.0 * r[3]).cos()).collect();
    (x, y)
}

fn state(n_train: usize, n_validation: usize) -> mondrian::Result<GridState> {
    let (x, y) = sample(n_train + n_validation);
    let at = n_train * D;
    GridState::new(
        MondrianGrid::new(N_GRIDS, 1)?,
        Points::row_major(&x[..at], D)?,
        &y[..n_train],
        Points::row_major(&x[at..], D)?,
        &y[n_train..],
        ALPHA,
        false,
    )
}

/// Removed and added features (as their training rows), found by comparing cell numbers.
struct Change {
    gone: Vec<usize>,
    come: Vec<Vec<usize>>,
}

fn change(before: &GridState, after: &GridState) -> Change {
    let (old, new) = (before.train_cells(), after.train_cells());
    let mut rows_of_new: HashMap<u32, Vec<usize>> = HashMap::new();
    let mut olds_of_new: HashMap<u32, Vec<u32>> = HashMap::new();
    let mut news_of_old: HashMap<u32, Vec<u32>> = HashMap::new();
    for (at, (&o, &n)) in old.iter().zip(&new).enumerate() {
        rows_of_new.entry(n).or_default().push(at / N_GRIDS);
        olds_of_new.entry(n).or_default().push(o);
        news_of_old.entry(o).or_default().push(n);
    }
    let varied = |list: &Vec<u32>| list.iter().any(|v| v != &list[0]);
    let mut gone: Vec<usize> = news_of_old
        .iter()
        .filter(|(_, news)| varied(news) || varied(&olds_of_new[&news[0]]))
        .map(|(&o, _)| o as usize)
        .collect();
    gone.sort_unstable_by(|a, b| b.cmp(a));
    let mut come: Vec<(u32, Vec<usize>)> = rows_of_new
        .into_iter()
        .filter(|(n, _)| varied(&olds_of_new[n]) || gone.contains(&(olds_of_new[n][0] as usize)))
        .collect();
    come.sort_unstable();
    Change { gone, come: come.into_iter().map(|(_, rows)| rows).collect() }
}

/// The report's updates of P, one feature at a time, each over the whole matrix.
struct Plain {
    p: Vec<f64>,
    n: usize,
    cells: Vec<Vec<usize>>,
}

impl Plain {
    fn delete(&mut self, i: usize) {
        let (n, p) = (self.n, &self.p);
        let (pivot, last) = (p[i * n + i], n - 1);
        let column: Vec<f64> = p[i * n..(i + 1) * n].to_vec();
        let mut next = vec![0.0; last * last];
        let place = |k: usize| if k == i { last } else { k };
        for c in 0..last {
            let from = place(c);
            for r in 0..last {
                let row = place(r);
                next[c * last + r] = p[from * n + row] - column[from] * column[row] / pivot;
            }
        }
        (self.p, self.n) = (next, last);
        for features in &mut self.cells {
            features.retain(|&f| f != i);
            features.iter_mut().filter(|f| **f == last).for_each(|f| *f = i);
        }
    }

    fn border(&mut self, rows: &[usize]) {
        let n = self.n;
        let share = 1.0 / N_GRIDS as f64;
        let mut b = vec![0.0; n];
        for &row in rows {
            self.cells[row].iter().for_each(|&f| b[f] += share);
        }
        let view = Matrix::from_column_major(std::mem::take(&mut self.p), n, n).expect("square");
        let mut image = vec![0.0; n];
        gemv(1.0, &view, &b, Into::Replace, &mut image);
        let p = view.into_vec();
        let schur = rows.len() as f64 * share + ALPHA - b.iter().zip(&image).map(|(b, i)| b * i).sum::<f64>();
        let mut next = vec![0.0; (n + 1) * (n + 1)];
        for c in 0..n {
            let scale = image[c] / schur;
            for r in 0..n {
                next[c * (n + 1) + r] = p[c * n + r] + scale * image[r];
            }
            next[c * (n + 1) + n] = -scale;
            next[n * (n + 1) + c] = -scale;
        }
        next[n * (n + 1) + n] = 1.0 / schur;
        (self.p, self.n) = (next, n + 1);
        rows.iter().for_each(|&row| self.cells[row].push(n));
    }
}

fn main() -> mondrian::Result<()> {
    let mut state = state(2400, 600)?;
    let mut lifetimes = vec![0.4; D];
    while state.n_features() < 1900 {
        lifetimes.iter_mut().for_each(|l| *l *= 1.1);
        state.jump(&lifetimes)?;
    }
    let moves: Vec<Move> = (0..D).flat_map(|d| [Move::Raise(d), Move::Lower(d)]).collect();
    state.what_if(&moves)?;
    let runs = 5;
    let (errors, seconds) = timed(|| (0..runs).map(|_| state.what_if(&moves)).last());
    let errors = errors.expect("ran")?;
    let fast = seconds / f64::from(runs);
    println!("C = {}, N = 2400 + 600, D = {D}, M = {N_GRIDS}", state.n_features());
    println!("what-if, {} candidates: {:.1} ms", moves.len(), 1e3 * fast);

    // The block update in the report's procedure: copy, move, read, drop.
    let (ours, own) = timed(|| {
        moves
            .iter()
            .map(|&step| {
                let mut copy = state.clone();
                copy.apply(step).map(|_| copy.validation_error())
            })
            .collect::<mondrian::Result<Vec<f64>>>()
    });
    let worst = ours?.iter().zip(&errors).fold(0.0_f64, |w, (a, b)| w.max((a - b.unwrap_or(f64::NAN)).abs()));
    println!(
        "copy and move, block updates: {:.1} ms, {:.1} times slower; largest difference {worst:.1e}",
        1e3 * own,
        own / fast
    );

    // The report's: the structural part is prepared outside the timed one.
    let cells = state.train_cells();
    let c = state.n_features();
    let mut gram = Matrix::zeros(c, c);
    for row in cells.chunks(N_GRIDS) {
        row.iter().for_each(|&j| row.iter().for_each(|&i| gram[(i as usize, j as usize)] += 1.0 / N_GRIDS as f64));
    }
    (0..c).for_each(|i| gram[(i, i)] += ALPHA);
    let p = Cholesky::new(gram, Threads::ONE)?.inverse().into_vec();
    let rows: Vec<Vec<usize>> = cells.chunks(N_GRIDS).map(|r| r.iter().map(|&f| f as usize).collect()).collect();
    let changes: Vec<Change> = moves
        .iter()
        .map(|&step| {
            let mut copy = state.clone();
            copy.apply(step).map(|_| change(&state, &copy))
        })
        .collect::<mondrian::Result<_>>()?;
    let features: usize = changes.iter().map(|change| change.gone.len() + change.come.len()).sum();
    let (checksum, slow) = timed(|| {
        let mut sum = 0.0;
        for change in &changes {
            let mut plain = Plain { p: p.clone(), n: c, cells: rows.clone() };
            change.gone.iter().for_each(|&i| plain.delete(i));
            change.come.iter().for_each(|rows| plain.border(rows));
            sum += plain.p[0];
        }
        sum
    });
    println!(
        "the report's save, update, restore: {:.0} ms ({features} features deleted or added), {:.0} times slower [{checksum:.3}]",
        1e3 * slow,
        slow / fast
    );

    for kind in [SearchKind::Greedy, SearchKind::Coordinate, SearchKind::Gradient] {
        let mut search = Search::new(self::state(2400, 600)?, kind.optimizer(0));
        let start = search.state().validation_error();
        let limits = SearchLimits { budget: 400, patience: 400 };
        let (outcome, seconds) = timed(|| search.run(limits, &mut Progress::none()));
        println!(
            "search {kind:?} on 3000 × {D}: {} evaluations in {seconds:.1} s, {:?}, validation error {start:.4} to {:.4}",
            search.evaluations(),
            outcome?,
            search.best().map_or(f64::NAN, |step| step.error)
        );
    }
    Ok(())
}
