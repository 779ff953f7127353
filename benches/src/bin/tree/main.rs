//! The tree's cost: batch fit, dimensions, online learning, location, memory, forgetting and merging, as ratios.
//!
//! `tree [a|b|c|d|e|f|g ...]`, by default all; one thread. Every time is processor time of that thread (the clock's for
//! work under 200 ms), the minimum over alternating runs, whose number is in the table: at least 7, fewer only if a run
//! takes many seconds. `RUNS=n` changes it. a: fit against bounding boxes; b: dimensions; c: row-at-a-time learning; d:
//! location of unseen rows; e: bytes per point and times, without chains and with them; f: forgetting and merging
//! against fitting; g: a million rows.

mod boxes;
mod data;

use std::hint::black_box;

use boxes::{Boxes, Scan};
use data::Rows;
use mondrian::ForestParams;
use mondrian::Lifetime;
use mondrian::internals::forest::Forest;
use mondrian::internals::tree::{CodedRows, Codes, Frozen, Kind, Locator, PointStore, Touched, Tree};
use mondrian::process::BuiltInMeasure;
use mondrian_benches::timed_on_thread as timed;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

type Section = fn() -> Outcome;

const FOREVER: f64 = f64::INFINITY;
/// Trees of the forests that fits are timed of.
const N_TREES: usize = 10;

fn main() -> Outcome {
    // Forests too run on this thread only, whose time is measured.
    rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global()?;
    let requested: Vec<String> = std::env::args().skip(1).collect();
    let is_requested = |name: &str| requested.is_empty() || requested.iter().any(|a| a == name);
    let sections: [(&str, Section); 7] = [
        ("a", fit_against_boxes),
        ("b", dimensions),
        ("c", online),
        ("d", unseen_rows),
        ("e", bytes),
        ("f", forget_and_merge),
        ("g", a_million),
    ];
    for (name, section) in sections {
        if is_requested(name) {
            section()?;
            println!();
        }
    }
    Ok(())
}

/// The number of runs, by default `default`.
fn runs(default: usize) -> usize {
    std::env::var("RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// The minimum time of each piece of work, alternating.
fn alternate<const N: usize>(runs: usize, mut works: [&mut dyn FnMut(); N]) -> [f64; N] {
    let mut least = [FOREVER; N];
    for _ in 0..runs {
        for (work, least) in works.iter_mut().zip(&mut least) {
            *least = least.min(timed(work).1);
        }
    }
    least
}

fn keep_least<const N: usize>(least: &mut [f64; N], seconds: [f64; N]) {
    for (least, seconds) in least.iter_mut().zip(seconds) {
        *least = least.min(seconds);
    }
}

fn fit_against_boxes() -> Outcome {
    println!(
        "| (a) data | lifetime | runs | nodes per point | a tree of 10 s | a tree alone s | by codes s | making them s | plain boxes s | over a tree of 10 | over one alone | vectorised boxes s | over a tree of 10 | wanted |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let row = |name: &str, rows: &Rows, lifetime: f64, n_runs: usize, wanted: &str| -> Outcome {
        let (store, domain) = (rows.store()?, rows.domain(lifetime)?);
        let columns = rows.columns();
        let codes = Codes::new(&domain, &store);
        let key = domain.tree_key(0);
        let n_nodes = Tree::grown(&domain, key, &store).n_nodes();
        let peer = |scan: Scan<'_>| drop(black_box(boxes::build(scan, rows.n_dims, lifetime, Boxes::Kept, 1)));
        let mut forest: Forest = Forest::from_parts(BuiltInMeasure::Uniform, domain.clone(), store.clone(), N_TREES)?;
        let [of_forest, alone, by_codes, making, plain, vectorised] = alternate(
            n_runs,
            [
                &mut || forest.regrow(&()),
                &mut || drop(black_box(Tree::grown(&domain, key, &store))),
                &mut || drop(black_box(Tree::grown_by(&domain, key, &store, Some(&codes)))),
                &mut || drop(black_box(Codes::new(&domain, &store))),
                &mut || peer(Scan::Plain(&columns)),
                &mut || peer(Scan::Vectorised(&rows.x)),
            ],
        );
        // A forest makes the codes once. The peers are given their columns, or need none.
        let of_ten = of_forest / N_TREES as f64;
        println!(
            "| {name} | {lifetime} | {n_runs} | {:.1} | {of_ten:.4} | {alone:.4} | {by_codes:.4} | {making:.4} | {plain:.3} | {:.1} | {:.1} | {vectorised:.3} | {:.1} | {wanted} |",
            n_nodes as f64 / store.n_points() as f64,
            plain / of_ten,
            plain / alone,
            vectorised / of_ten
        );
        Ok(())
    };
    row("uniform 200000 x 10", &Rows::uniform(200_000, 10, 1), 5.0, runs(7), "4")?;
    for name in ["letter", "ccpp"] {
        if let Ok(rows) = Rows::real(name) {
            row(name, &rows, FOREVER, runs(7), "-")?;
        }
    }
    if let Ok(rows) = Rows::real("mnist_0_9") {
        row("mnist_0_9", &rows, FOREVER, runs(7), "25")?;
    }
    // 1.5 GB of boxes, which a peer with queries has to write.
    row("uniform 60000 x 784", &Rows::uniform(60_000, 784, 1), FOREVER, runs(3), "100")
}

fn dimensions() -> Outcome {
    println!("| (b) 50000 uniform, lifetime x D = 80 | runs | D = 16 s | D = 256 s | ratio | wanted |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    let (few, many) = (Rows::uniform(50_000, 16, 1), Rows::uniform(50_000, 256, 1));
    let (few_ground, many_ground) = (few.domain(80.0 / 16.0)?, many.domain(80.0 / 256.0)?);
    let (few_store, many_store) = (few.store()?, many.store()?);
    let n_runs = runs(7);
    let [low, high] = alternate(
        n_runs,
        [&mut || drop(black_box(Tree::grown(&few_ground, few_ground.tree_key(0), &few_store))), &mut || {
            drop(black_box(Tree::grown(&many_ground, many_ground.tree_key(0), &many_store)));
        }],
    );
    println!("| this | {n_runs} | {low:.4} | {high:.4} | {:.2} | 3 |", high / low);
    let n_runs = runs(3);
    let (few_columns, many_columns) = (few.columns(), many.columns());
    for (name, few, many) in [
        ("plain", Scan::Plain(&few_columns), Scan::Plain(&many_columns)),
        ("vectorised", Scan::Vectorised(&few.x), Scan::Vectorised(&many.x)),
    ] {
        let peer = |scan, n_dims: usize| {
            drop(black_box(boxes::build(scan, n_dims, 80.0 / n_dims as f64, Boxes::Dropped, 1)));
        };
        let [low, high] = alternate(n_runs, [&mut || peer(few, 16), &mut || peer(many, 256)]);
        println!("| {name} boxes, dropped | {n_runs} | {low:.4} | {high:.4} | {:.2} | about 40 |", high / low);
    }
    Ok(())
}

/// Seconds to learn rows one by one: all, and the last tenth.
struct Pace {
    all: f64,
    end: f64,
}

impl Pace {
    fn of(n: usize, mut learn: impl FnMut(usize)) -> Self {
        let late = n - n / 10;
        let ((), early) = timed(|| (0..late).for_each(&mut learn));
        let ((), end) = timed(|| (late..n).for_each(&mut learn));
        Self { all: early + end, end }
    }
}

fn online() -> Outcome {
    let (n, n_dims, n_trees) = (30_000, 10, 10);
    println!("| (c) one row at a time, {n_trees} trees, {n} x {n_dims} | runs | rows/s | rows/s at the end | wanted |");
    println!("| --- | ---: | ---: | ---: | --- |");
    let data = [
        ("uniform", Rows::uniform(n, n_dims, 1)),
        ("Gaussian", Rows::gaussian(n, n_dims, 1)),
        ("clusters of 20, sigma 1e-4", Rows::clustered(n, n_dims, 20, 1e-4, 1)),
    ];
    for (name, rows) in &data {
        let bounds = mondrian::process::Bounds::of_points(mondrian::Points::row_major(&rows.x, n_dims)?);
        let domain = rows.domain(FOREVER)?;
        let n_runs = runs(7);
        let mut best = [FOREVER; 4];
        for _ in 0..n_runs {
            let mut store = PointStore::new(n_dims);
            let mut trees: Vec<Tree> = (0..n_trees).map(|i| Tree::new(domain.tree_key(i))).collect();
            let mut touched = Touched::default();
            let direct = Pace::of(n, |row| {
                let (point, new) = store.add(rows.row(row)).expect("the row fits");
                assert!(new, "no row twice");
                for tree in &mut trees {
                    tree.insert(&domain, &store, &mut [point], &mut touched);
                }
            });
            let params = ForestParams { n_trees, bounds: bounds.clone(), ..ForestParams::default() };
            let first = mondrian::Points::row_major(&rows.x[..n_dims], n_dims)?;
            let mut forest: Forest = Forest::with_domain(&params, first, Lifetime::INFINITE)?;
            let whole = Pace::of(n, |row| {
                let batch = forest.arrivals_at(rows.row(row).to_vec());
                forest.learn(batch, (), &mut (), &mut mondrian::Progress::none()).expect("the row fits");
            });
            keep_least(&mut best, [direct.all, direct.end, whole.all, whole.end]);
        }
        let wanted = if *name == "uniform" { "100000, 60000" } else { "-" };
        for (way, all, end) in [("Tree::insert", best[0], best[1]), ("Forest::grow", best[2], best[3])] {
            let (all, end) = (n as f64 / all, (n / 10) as f64 / end);
            println!("| {name}, {way} | {n_runs} | {all:.0} | {end:.0} | {wanted} |");
        }
    }
    Ok(())
}

fn unseen_rows() -> Outcome {
    let n = 200_000;
    println!("| (d) {n} unseen rows, D = 10 | lifetime | runs | s | over the fit | wanted |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    let (rows, unseen) = (Rows::uniform(n, 10, 1), Rows::uniform(n, 10, 2));
    let store = rows.store()?;
    for lifetime in [5.0, FOREVER] {
        let bounds = mondrian::process::Bounds::new(&[0.0; 10], &[1.0; 10])?;
        let domain = mondrian::internals::tree::Domain::new(1, &bounds, Lifetime::new(lifetime)?)?;
        let tree = Tree::grown(&domain, domain.tree_key(0), &store);
        let route = |frozen| {
            let rows = CodedRows::new(&domain, &unseen.x);
            black_box(tree.cells(&domain, &store, &rows, domain.lifetime(), frozen));
        };
        let one_by_one = || {
            let mut locator = Locator::new(&tree, &domain, &store, domain.lifetime());
            for row in unseen.x.chunks_exact(10) {
                black_box(locator.cell_of(row));
            }
        };
        let n_runs = runs(7);
        let [fit, batch, batch_exact, exact] = alternate(
            n_runs,
            [
                &mut || drop(black_box(Tree::grown(&domain, domain.tree_key(0), &store))),
                &mut || route(Frozen::AsItStands),
                &mut || route(Frozen::Resumed),
                &mut { one_by_one },
            ],
        );
        let ways = [
            ("fit", fit, "-"),
            ("batch", batch, "1"),
            ("batch, exact cells", batch_exact, "1.5"),
            ("one by one, exact cells", exact, "-"),
        ];
        for (name, seconds, wanted) in ways {
            println!("| {name} | {lifetime} | {n_runs} | {seconds:.4} | {:.2} | {wanted} |", seconds / fit);
        }
    }
    Ok(())
}

fn bytes() -> Outcome {
    println!(
        "| (e) lifetime inf | nodes per point, before | after | chains per point | bytes per point, before | after | ratio | wanted |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let data = [
        ("uniform 100000 x 10", Rows::uniform(100_000, 10, 1), "80"),
        ("uniform 100000 x 50", Rows::uniform(100_000, 50, 1), "80"),
        ("clusters of 20, sigma 1e-4, 20000 x 10", Rows::clustered(20_000, 10, 20, 1e-4, 1), "-"),
        ("clusters of 20, sigma 1e-4, 20000 x 50", Rows::clustered(20_000, 50, 20, 1e-4, 1), "-"),
    ];
    for (name, rows, wanted) in &data {
        let (store, domain) = (rows.store()?, rows.domain(FOREVER)?);
        let [plain, tree] =
            [domain.storing_every_cut(), domain].map(|domain| Tree::grown(&domain, domain.tree_key(0), &store));
        let n = store.n_points() as f64;
        let [before, after] = [&plain, &tree].map(|tree| tree.n_bytes() as f64 / n);
        println!(
            "| {name} | {:.2} | {:.2} | {:.2} | {before:.1} | {after:.1} | {:.1} | {wanted} |",
            plain.n_nodes() as f64 / n,
            tree.n_nodes() as f64 / n,
            tree.n_chains() as f64 / n,
            before / after
        );
    }
    println!();
    println!("| (e) seconds, before and after chains | runs | before | after | before over after |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    data.iter().try_for_each(|(name, rows, _)| with_chains_and_without(name, rows))
}

/// Fit, location and learning with and without chains. Unseen rows are of the same clusters, and anywhere.
fn with_chains_and_without(name: &str, rows: &Rows) -> Outcome {
    let (store, domain, n_dims) = (rows.store()?, rows.domain(FOREVER)?, rows.n_dims);
    let grounds = [domain.storing_every_cut(), domain.clone()];
    let grow = |which: usize| Tree::grown(&grounds[which], domain.tree_key(0), &store);
    let trees = [grow(0), grow(1)];
    let n = rows.n_rows().min(20_000);
    let mut near: Vec<f64> = rows.x[..n * n_dims].to_vec();
    let noise = Rows::gaussian(n, n_dims, 9);
    near.iter_mut().zip(&noise.x).for_each(|(x, e)| *x += 1e-4 * e);
    let mut anywhere = Rows::uniform(n, n_dims, 10).x;
    for x in near.chunks_exact_mut(n_dims).chain(anywhere.chunks_exact_mut(n_dims)) {
        domain.clamp(x);
    }
    let route = |which: usize, x: &[f64]| {
        let rows = CodedRows::new(&grounds[which], x);
        black_box(trees[which].cells(&grounds[which], &store, &rows, Lifetime::INFINITE, Frozen::AsItStands));
    };
    let locate = |which: usize, x: &[f64]| {
        let mut locator = Locator::new(&trees[which], &grounds[which], &store, Lifetime::INFINITE);
        for x in x.chunks_exact(n_dims) {
            black_box(locator.cell_of(x));
        }
    };
    let learn = |which: usize| {
        let (mut tree, mut touched) = (Tree::new(domain.tree_key(0)), Touched::default());
        store.points().for_each(|point| tree.insert(&grounds[which], &store, &mut [point], &mut touched));
        black_box(tree);
    };
    let works: [(&str, &dyn Fn(usize)); 6] = [
        ("fit", &|which| drop(black_box(grow(which)))),
        ("rows one at a time", &learn),
        ("rows near others, in batch", &|which| route(which, &near)),
        ("rows near others, one by one", &|which| locate(which, &near)),
        ("rows anywhere, in batch", &|which| route(which, &anywhere)),
        ("rows anywhere, one by one", &|which| locate(which, &anywhere)),
    ];
    for (what, work) in works {
        let n_runs = runs(7);
        let [before, after] = alternate(n_runs, [&mut || work(0), &mut || work(1)]);
        println!("| {name}: {what} | {n_runs} | {before:.5} | {after:.5} | {:.2} |", before / after);
    }
    Ok(())
}

fn forget_and_merge() -> Outcome {
    println!(
        "| (f) uniform, D = 10 | lifetime | runs | fit all s | merge halves s | ratio | fit half s | forget half s | ratio |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let n = 100_000_u32;
    let rows = Rows::uniform(n as usize, 10, 1);
    let half = Rows { x: rows.x[..rows.x.len() / 2].to_vec(), n_dims: 10 };
    let (store, half_store) = (rows.store()?, half.store()?);
    for lifetime in [5.0, FOREVER] {
        let domain = rows.domain(lifetime)?;
        let key = domain.tree_key(0);
        let (whole, part) = (Tree::grown(&domain, key, &store), Tree::grown(&domain, key, &half_store));
        let n_runs = runs(7);
        let mut touched = Touched::default();
        let mut least = [FOREVER; 4];
        for _ in 0..n_runs {
            let (mut merged, mut less) = (part.clone(), whole.clone());
            let mut others: Vec<u32> = (n / 2..n).collect();
            let mut forgotten = Touched::default();
            let seconds = alternate(
                1,
                [
                    &mut || drop(black_box(Tree::grown(&domain, key, &store))),
                    &mut || merged.insert(&domain, &store, &mut others, &mut touched),
                    &mut || drop(black_box(Tree::grown(&domain, key, &half_store))),
                    &mut || {
                        for point in n / 2..n {
                            less.forget(&domain, store.point(point), point, true, &mut forgotten);
                        }
                        less.compact(&store);
                    },
                ],
            );
            keep_least(&mut least, seconds);
            assert!(merged.same_as(&store, &whole, &store) && less.same_as(&half_store, &part, &half_store));
        }
        let [fit, merge, fit_half, forget] = least;
        println!(
            "| {n} | {lifetime} | {n_runs} | {fit:.4} | {merge:.4} | {:.2} | {fit_half:.4} | {forget:.4} | {:.2} |",
            merge / fit,
            forget / fit_half
        );
    }
    Ok(())
}

fn a_million() -> Outcome {
    println!("| (g) uniform 1000000 x 10, lifetime 5 | runs | s a tree | rows in leaves | store s | wanted |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    let rows = Rows::uniform(1_000_000, 10, 1);
    let domain = rows.domain(5.0)?;
    let (store, store_seconds) = timed(|| rows.store());
    let store = store?;
    let n_runs = runs(7);
    let mut tree = Tree::new(domain.tree_key(0));
    let [seconds] = alternate(n_runs, [&mut || tree = Tree::grown(&domain, domain.tree_key(0), &store)]);
    let in_leaves: u32 = tree
        .node_ids()
        .flat_map(|id| tree.children(tree.node(id)))
        .map(|child| if let Kind::Leaf(leaf) = child.kind() { tree.leaf(leaf).count() } else { 0 })
        .sum();
    println!("| | {n_runs} | {seconds:.3} | {in_leaves} | {store_seconds:.3} | 0.4 |");
    Ok(())
}
