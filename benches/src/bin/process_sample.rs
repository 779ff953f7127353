//! Cuts sampled per second on one thread, and the cost of a cut as the number of dimensions grows.
//!
//! `cargo run --release -p mondrian-benches --bin process_sample`

use mondrian::Lifetime;
use mondrian::process::{Bounds, Mondrian, NodeKey};
use mondrian_benches::timed;

/// Expected number of cells per sample, for any number of dimensions.
const N_CELLS: f64 = 200_000.0;
const N_SAMPLES: u64 = 5;

fn main() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool of one thread");
    println!("{:<44} {:>10} {:>12} {:>9}", "bench", "cuts", "cuts/s", "ns/cut");
    let mut reference = None;
    for n_dims in [2, 10, 100, 1000] {
        // (1 + λℓ)^D cells with λ = 1.
        let side = N_CELLS.powf(1.0 / f64::from(n_dims)) - 1.0;
        let bounds = Bounds::new(&vec![0.0; n_dims as usize], &vec![side; n_dims as usize]).expect("a box");
        let sample = |index| Mondrian::new(bounds.clone(), NodeKey::root(1, index)).until(one()).expect("a sample");
        // The smallest of a few runs, each on its own sample: the noise of a busy machine only adds.
        let runs = (0..N_SAMPLES).map(|index| {
            let (partition, seconds) = pool.install(|| processor_timed(|| sample(index)));
            (partition.n_cuts(), 1e9 * seconds / partition.n_cuts() as f64)
        });
        let (n_cuts, cost) = runs.min_by(|a, b| a.1.total_cmp(&b.1)).expect("at least one run");
        let id = format!("process_sample/d={n_dims}/cells={N_CELLS}");
        print!("{id:<44} {n_cuts:>10} {:>12.3e} {cost:>9.1}", 1e9 / cost);
        if n_dims == 10 {
            reference = Some(cost);
        }
        match reference {
            Some(ten) => println!("   {:.2} × the cost at D = 10", cost / ten),
            None => println!(),
        }
    }
}

/// Processor seconds of this thread if the system reports them (Linux), else wall-clock seconds: waiting on a busy
/// machine is not to be measured.
fn processor_timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let on_processor = || -> Option<f64> {
        let counters = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        counters.split_whitespace().next()?.parse().ok()
    };
    let before = on_processor();
    let (result, seconds) = timed(work);
    match (before, on_processor()) {
        (Some(before), Some(after)) => (result, 1e-9 * (after - before)),
        _ => (result, seconds),
    }
}

fn one() -> Lifetime {
    Lifetime::new(1.0).expect("one is a lifetime")
}
