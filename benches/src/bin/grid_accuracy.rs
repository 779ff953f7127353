//! The accuracy table: test error and tuning time of the tuned exact Laplace kernel and of grid models on real data.
//!
//! `grid_accuracy [NAME...]`, by default ccpp and cpu_act. Split: `default_rng(0).permutation(n)`, first 80 % for
//! training; lifetimes and α tuned on training rows only; then one exact solve on all of them. The environment may set
//! THREADS, ROWS (the stages of tuning, such as 500,1000), TRAIN (fewer training rows), ONLY_DEFAULT, and GRIDS (numbers of grids
//! such as 50,200: then grid models instead, lifetimes searched for, α of the exact kernel).

use mondrian::GridRidgeParams;
use mondrian::Lifetime;
use mondrian::LifetimesChoice;
use mondrian::Points;
use mondrian::Progress;
use mondrian::internals::laplace::{Criterion, Method, tune};
use mondrian::internals::laplace::{LaplaceKernelRidgeParams, TuningParams};
use mondrian::internals::linalg::Threads;
use mondrian_benches::{Standardised, Table, rmse, timed};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        names = vec!["ccpp".into(), "cpu_act".into()];
    }
    let threads = Threads::up_to(number("THREADS").unwrap_or(1));
    let defaults = TuningParams { threads, ..TuningParams::default() };
    let defaults = match std::env::var("ROWS") {
        Ok(rows) => TuningParams { rows: rows.split(',').map(str::parse).collect::<Result<_, _>>()?, ..defaults },
        Err(_) => defaults,
    };
    println!("| data | way | tuning s | evaluations | leave-one-out | solve s | test RMSE |");
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: |");
    for name in &names {
        let mut split = Table::read(name)?.split(0);
        if let Some(n) = number("TRAIN") {
            split.train_x.truncate(n * split.n_columns);
            split.train_y.truncate(n);
        }
        let likelihood = TuningParams { criterion: Criterion::Likelihood, ..defaults.clone() };
        let sweeps =
            TuningParams { method: Method::Coordinate, rows: vec![1000], evaluations: 200, ..defaults.clone() };
        if let Ok(grids) = std::env::var("GRIDS") {
            for n_grids in grids.split(',') {
                grids_of(name, n_grids.parse()?, &split)?;
            }
            continue;
        }
        measure(name, "leave-one-out, gradient", &split, &defaults)?;
        if std::env::var_os("ONLY_DEFAULT").is_none() {
            measure(name, "likelihood, gradient", &split, &likelihood)?;
            measure(name, "leave-one-out, coordinate", &split, &sweeps)?;
        }
    }
    Ok(())
}

/// A setting from the environment.
fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

fn grids_of(name: &str, n_grids: usize, split: &Standardised) -> mondrian::Result<()> {
    let train = Points::row_major(&split.train_x, split.n_columns)?;
    let test = Points::row_major(&split.test_x, split.n_columns)?;
    let params = GridRidgeParams { n_grids, alpha: None, ..GridRidgeParams::default() };
    let (model, seconds) = timed(|| params.fit(train, &split.train_y));
    let model = model?;
    let error = rmse(&model.predict(test)?, &split.test_y);
    let (n, found) =
        (model.trajectory().len(), mondrian::Step::best(model.trajectory()).map_or(f64::NAN, |step| step.error));
    println!(
        "| {name} | {n_grids} grids, search and solve | {seconds:.2} | {n} | {found:.4} (held out) | – | {error:.4} |"
    );
    eprintln!("{name}: {} features, {:?}", model.ridge().features().n_features(), model.ridge().solver());
    Ok(())
}

fn measure(name: &str, way: &str, split: &Standardised, tuning: &TuningParams) -> mondrian::Result<()> {
    let train = Points::row_major(&split.train_x, split.n_columns)?;
    let test = Points::row_major(&split.test_x, split.n_columns)?;
    let (tuned, seconds) = timed(|| tune(train, &split.train_y, tuning, &mut Progress::none()));
    let tuned = tuned?;
    let params = LaplaceKernelRidgeParams {
        lifetime: LifetimesChoice::Each(
            tuned.lifetimes.iter().map(|l| Lifetime::new(*l)).collect::<mondrian::Result<_>>()?,
        ),
        alpha: Some(tuned.alpha),
        tuning: tuning.clone(),
        ..LaplaceKernelRidgeParams::default()
    };
    let (model, solve_seconds) = timed(|| params.fit(train, &split.train_y));
    let model = model?;
    let error = rmse(&model.predict(test)?, &split.test_y);
    let n = tuned.trajectory.len();
    let loo = tuned.trajectory.best().map_or(f64::NAN, |step| step.error);
    println!("| {name} | {way} | {seconds:.2} | {n} | {loo:.4} | {solve_seconds:.1} | {error:.4} |");
    let shown: Vec<String> = tuned.lifetimes.iter().map(|l| format!("{l:.2e}")).collect();
    eprintln!("{name}, {way}: alpha {:.2e}, lifetimes {}", tuned.alpha, shown.join(" "));
    Ok(())
}
