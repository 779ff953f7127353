//! Kernel entries computed on the fly, and nearest rows: core-nanoseconds per entry and per distance at 2, 9 and 27
//! axes.
//!
//! The limit stated beside them is that of two vector additions of eight numbers per cycle, at the clock that a loop of
//! dependent additions runs at (three cycles each on Zen 4). By count of instructions an entry and its part in a symmetric
//! product need 2·D additions and subtractions for the distance, 11 for 2^(−d) (two comparisons among them) and 2 for the two sums.
//! Absolute values, multiplications and shifts have units of their own.
//!
//! Then the cost of the metric: 2·D axes (each input and its rank, as a tuned kernel has them) alone and with D
//! directions.

use mondrian::internals::laplace::{KernelRows, PackedRows};
use mondrian::internals::linalg::{Matrix, Threads};
use mondrian::process::NodeKey;
use mondrian_benches::{timed, timed_on_thread};

fn sample(n: usize, dims: usize, spread: f64) -> KernelRows {
    let axes = (0..n * dims).map(|i| NodeKey::root(1, i as u64).draw(0).normal() * spread).collect();
    KernelRows::of_axes(axes, dims).expect("finite numbers")
}

/// Number of queries for nearest rows: enough for the resolution of the processor clock.
const QUERIES: usize = 4000;

/// Nanoseconds of a cycle.
fn cycle() -> f64 {
    let (sum, seconds) = timed_on_thread(|| {
        let step = std::hint::black_box(1e-9_f32);
        (0..400_000_000_u32).fold(0.0_f32, |sum, _| std::hint::black_box(step) + sum)
    });
    std::hint::black_box(sum);
    seconds * 1e9 / 400_000_000.0 / 3.0
}

fn main() {
    let n: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(20_000);
    let cycle = cycle();
    println!("about {:.2} GHz", 1.0 / cycle);
    for dims in [2, 9, 27] {
        let rows = sample(n, dims, 1.0 / dims as f64);
        let packed = PackedRows::new(&rows);
        let vector = Matrix::from_fn(n, 1, |i, _| (i as f64).sin());
        let many = Matrix::from_fn(n, 8, |i, v| ((i + v) as f64).sin());
        let entries = (n * n) as f64 / 2.0;
        let (_, seconds) = timed_on_thread(|| packed.product(&vector, Threads::ONE).expect("one number per row"));
        let (_, seconds_of_eight) =
            timed_on_thread(|| packed.product(&many, Threads::ONE).expect("one number per row"));
        let (_, by_two) = timed(|| packed.product(&vector, Threads::up_to(2)).expect("one number per row"));
        println!(
            "D {dims:2}: {:.3} core-ns per entry made (limit of the additions {:.3}), 8 vectors {:.3}; \
             products per second of {n} rows {:.1} on one thread, {:.1} on two (by the clock)",
            seconds * 1e9 / entries,
            (2.0 * dims as f64 + 13.0) / 16.0 * cycle,
            seconds_of_eight * 1e9 / entries,
            1.0 / seconds,
            1.0 / by_two
        );
        let queries = rows.select(&(0..QUERIES).map(|i| i * n / QUERIES).collect::<Vec<_>>());
        for m in [32, 200] {
            let (scan, by_scan) =
                timed_on_thread(|| packed.nearest_by_scan(&queries, m, None, Threads::ONE).expect("enough rows"));
            let (index, by_index) =
                timed_on_thread(|| packed.nearest(&queries, m, None, Threads::ONE).expect("enough rows"));
            assert_eq!(scan, index);
            println!(
                "      {m} nearest: scan {:.1} µs per query ({:.3} core-ns per distance), index {:.1} µs",
                by_scan * 1e6 / QUERIES as f64,
                by_scan * 1e9 / QUERIES as f64 / n as f64,
                by_index * 1e6 / QUERIES as f64
            );
        }
        price_of_the_metric(n, dims);
    }
}

/// Core-nanoseconds per entry and per neighbour's distance of 2·D axes alone, and with D directions.
fn price_of_the_metric(n: usize, dims: usize) {
    let vector = Matrix::from_fn(n, 1, |i, _| (i as f64).sin());
    let measure = |rows: &KernelRows| {
        let packed = PackedRows::new(rows);
        let (_, product) = timed_on_thread(|| packed.product(&vector, Threads::ONE).expect("one number per row"));
        let queries = rows.select(&(0..QUERIES).map(|i| i * n / QUERIES).collect::<Vec<_>>());
        let (_, near) = timed_on_thread(|| packed.nearest(&queries, 200, None, Threads::ONE).expect("enough rows"));
        (product * 2e9 / (n * n) as f64, near * 1e6 / QUERIES as f64)
    };
    let axes = sample(n, 2 * dims, 0.5 / dims as f64);
    let (entry, near) = measure(&axes);
    println!("      {} axes: {entry:.3} core-ns per entry, 200 nearest {near:.1} µs", 2 * dims);
    let directions: Vec<f64> =
        (0..n * dims).map(|i| NodeKey::root(2, i as u64).draw(0).normal() / dims as f64).collect();
    for exponent in [1.0, 1.3] {
        let both = axes.clone().with_directions(directions.clone(), dims, exponent).expect("finite numbers");
        let (with, near_with) = measure(&both);
        println!(
            "      and {dims} directions, p {exponent}: {with:.3} ({:.2} times), 200 nearest {near_with:.1} µs ({:.2} times)",
            with / entry,
            near_with / near
        );
    }
}
