//! The tree's exact promises (docs/design.md, "Exact promises"): each row of the table, by equality.

use mondrian::internals::tree::{
    Child, CodedRows, Codes, Domain, Frozen, Kind, Landing, Locator, PointStore, Touched, Tree,
};
use mondrian::process::{Bounds, NodeKey};
use mondrian::{Error, Lifetime};

/// Points with near-duplicates, duplicates and a constant column, by key.
fn cloud(n: usize, n_dims: usize, seed: u64) -> Vec<Vec<f64>> {
    let value = |row: u64, dim: u64| NodeKey::root(seed, row).fork(dim).draw(0).uniform();
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for row in 0..n as u64 {
        let mut x: Vec<f64> = (0..n_dims as u64).map(|dim| value(row, dim)).collect();
        match row % 7 {
            1 => x.clone_from(&rows[row as usize - 1]),
            3 => {
                let jitter: Vec<f64> = rows[row as usize / 2].iter().map(|v| v + 1e-7).collect();
                x = jitter;
            }
            _ => {}
        }
        if n_dims > 2 {
            x[1] = 0.25;
        }
        rows.push(x);
    }
    rows
}

fn store_of(rows: &[Vec<f64>]) -> PointStore {
    let mut store = PointStore::new(rows[0].len());
    for x in rows {
        store.add(x).unwrap();
    }
    store
}

fn bounds_of(rows: &[Vec<f64>]) -> Bounds {
    let dims = 0..rows[0].len();
    let fold = |f: fn(f64, f64) -> f64, start| -> Vec<f64> {
        dims.clone().map(|d| rows.iter().map(|x| x[d]).fold(start, f)).collect()
    };
    Bounds::new(&fold(f64::min, f64::INFINITY), &fold(f64::max, f64::NEG_INFINITY)).unwrap()
}

fn domain(rows: &[Vec<f64>], lifetime: f64) -> Domain {
    Domain::new(3, &bounds_of(rows), Lifetime::new(lifetime).unwrap()).unwrap()
}

const CASES: [(usize, usize); 6] = [(1, 1), (2, 5), (40, 1), (200, 5), (120, 50), (300, 2)];
const LIFETIMES: [f64; 5] = [0.0, 0.7, 4.0, 40.0, f64::INFINITY];

/// Every case of points, domain and tree.
fn for_all(check: impl Fn(&[Vec<f64>], &Domain, NodeKey)) {
    for (n, n_dims) in CASES {
        for lifetime in LIFETIMES {
            for index in 0..3 {
                let rows = cloud(n, n_dims, 17 + n as u64);
                let domain = domain(&rows, lifetime);
                check(&rows, &domain, domain.tree_key(index));
            }
        }
    }
}

#[test]
fn grown_trees_are_well_formed() {
    for_all(|rows, domain, key| {
        let store = store_of(rows);
        assert!(Tree::grown(domain, key, &store).is_well_formed(&store));
    });
}

#[test]
fn large_trees_do_not_depend_on_how_they_were_grown() {
    // Enough points for codes to be copied near each other, and for parts to be grown apart.
    let (scattered, clustered, wide) = (cloud(50_000, 8, 5), clusters(35_000, 3, 6), cloud(5000, 40, 7));
    let cases = [(&scattered, 3.0), (&scattered, f64::INFINITY), (&clustered, f64::INFINITY), (&wide, f64::INFINITY)];
    for (rows, lifetime) in cases {
        let store = store_of(rows);
        let domain = domain(rows, lifetime);
        let key = domain.tree_key(0);
        let batch = Tree::grown_by(&domain, key, &store, None);
        assert!(Tree::grown(&domain, key, &store).same_as(&store, &batch, &store));
        // Codes on a box that is much too large, or too small, decide little: coordinates do.
        let n_dims = domain.n_dims();
        let boxes = [
            bounds_of(rows),
            bounds_of(rows).widened(30).unwrap(),
            Bounds::new(&vec![0.4; n_dims], &vec![0.4 + 1e-9; n_dims]).unwrap(),
        ];
        let codes = boxes.map(|bounds| Codes::new(&Domain::new(0, &bounds, domain.lifetime()).unwrap(), &store));
        for codes in &codes {
            assert!(Tree::grown_by(&domain, key, &store, Some(codes)).same_as(&store, &batch, &store), "by codes");
        }
        for n_threads in [1, 2, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            let parts = pool.install(|| Tree::grown_in_parts(&domain, key, &store, Some(&codes[0])));
            assert!(parts.same_as(&store, &batch, &store), "{n_threads} threads, lifetime {lifetime}");
        }
        let (mut one_by_one, mut touched) = (Tree::new(key), Touched::default());
        for point in store.points() {
            one_by_one.insert(&domain, &store, &mut [point], &mut touched);
        }
        assert!(one_by_one.same_as(&store, &batch, &store), "lifetime {lifetime}");
        let (mut halves, points) = (Tree::new(key), store.points().collect::<Vec<u32>>());
        for half in points.chunks(points.len() / 2) {
            halves.insert(&domain, &store, &mut half.to_vec(), &mut touched);
        }
        assert!(halves.same_as(&store, &batch, &store), "lifetime {lifetime}, in batches");
    }
}

#[test]
fn small_cells_grown_side_by_side_are_those_grown_one_after_the_other() {
    // With codes small cells share rounds if they have at most sixteen dimensions, without codes they never do.
    for n_dims in [1, 2, 3, 4, 5, 8, 15, 16, 17] {
        for (n, lifetime) in
            [(3, 40.0), (33, 0.7), (65, 40.0), (400, f64::INFINITY), (3000, 4.0), (3000, f64::INFINITY)]
        {
            let rows = cloud(n, n_dims, (n + n_dims) as u64);
            let (store, chained) = (store_of(&rows), domain(&rows, lifetime));
            for domain in [chained.clone(), chained.storing_every_cut()] {
                for index in 0..3 {
                    let key = domain.tree_key(index);
                    let alone = Tree::grown_by(&domain, key, &store, None);
                    let together = Tree::grown_by(&domain, key, &store, Some(&Codes::new(&domain, &store)));
                    assert!(together.same_as(&store, &alone, &store), "{n} points, {n_dims} dimensions, {lifetime}");
                    assert!(together.is_well_formed(&store));
                    assert_eq!(together.n_nodes(), alone.n_nodes());
                }
            }
        }
    }
}

#[test]
fn order_of_arrival_changes_nothing() {
    for_all(|rows, domain, key| {
        let batch_store = store_of(rows);
        let batch = Tree::grown(domain, key, &batch_store);
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|i| NodeKey::root(99, *i as u64).draw(0).to_bits());
        for chunk in [1, 7, 1000] {
            let (mut store, mut tree, mut touched) =
                (PointStore::new(domain.n_dims()), Tree::new(key), Touched::default());
            for part in order.chunks(chunk) {
                let mut fresh = Vec::new();
                for row in part {
                    let (point, new) = store.add(&rows[*row]).unwrap();
                    // A point that is new in this very batch will be counted with all its rows.
                    if new {
                        fresh.push(point);
                    } else if !fresh.contains(&point) {
                        tree.count_again(&store, point, &mut touched);
                    }
                }
                tree.insert(domain, &store, &mut fresh, &mut touched);
            }
            assert!(tree.is_well_formed(&store));
            assert!(tree.same_as(&store, &batch, &batch_store), "chunks of {chunk}");
        }
    });
}

#[test]
fn forgetting_gives_the_tree_that_never_saw_the_rows() {
    for_all(|rows, domain, key| {
        let mut store = store_of(rows);
        let mut tree = Tree::grown(domain, key, &store);
        let mut touched = Touched::default();
        let kept: Vec<Vec<f64>> = rows.iter().enumerate().filter(|(i, _)| i % 3 == 0).map(|(_, x)| x.clone()).collect();
        for (row, x) in rows.iter().enumerate() {
            if row % 3 != 0 {
                let point = store.find(x).unwrap();
                let gone = store.multiplicity(point) == 1;
                tree.forget(domain, x, point, gone, &mut touched);
                store.remove(point);
                if tree.needs_compaction() {
                    tree.compact(&store);
                }
            }
        }
        let small = store_of(&kept);
        assert!(tree.is_well_formed(&store));
        assert!(tree.same_as(&store, &Tree::grown(domain, key, &small), &small));
    });
}

#[test]
fn raising_the_lifetime_refines_the_same_tree() {
    for (n, n_dims) in CASES {
        let rows = cloud(n, n_dims, 5);
        let store = store_of(&rows);
        let full = domain(&rows, f64::INFINITY);
        let key = full.tree_key(0);
        let mut tree = Tree::grown(&full.with_lifetime(Lifetime::ZERO), key, &store);
        for lifetime in LIFETIMES {
            let now = full.with_lifetime(Lifetime::new(lifetime).unwrap());
            tree.raise_lifetime(&now, &store);
            assert!(tree.same_as(&store, &Tree::grown(&now, key, &store), &store), "lifetime {lifetime}");
        }
    }
}

#[test]
fn extended_boxes_keep_every_promise() {
    for (n, n_dims) in CASES {
        let rows = cloud(n, n_dims, 23);
        // The first box is that of a few rows; the rest sticks out.
        let few: Vec<Vec<f64>> = rows.iter().take(3).map(|x| x.iter().map(|v| 0.45 + 0.1 * v).collect()).collect();
        let mut domain = domain(&few, 30.0);
        let rung = domain.rung_holding(&bounds_of(&rows)).unwrap();
        domain.set_rung(rung).unwrap();
        let key = domain.tree_key(1);
        let store = store_of(&rows);
        let batch = Tree::grown(&domain, key, &store);
        assert!(batch.is_well_formed(&store));
        let (mut grown, mut again, mut touched) = (Tree::new(key), PointStore::new(n_dims), Touched::default());
        for x in rows.iter().rev() {
            let (point, new) = again.add(x).unwrap();
            if new {
                grown.insert(&domain, &again, &mut [point], &mut touched);
            } else {
                grown.count_again(&again, point, &mut touched);
            }
        }
        assert!(grown.same_as(&again, &batch, &store));
        // Extend then raise the lifetime = raise then extend.
        let mut raised = Tree::grown(&domain.with_lifetime(Lifetime::new(1.0).unwrap()), key, &store);
        raised.raise_lifetime(&domain, &store);
        assert!(raised.same_as(&store, &batch, &store));
    }
}

#[test]
fn rows_routed_together_land_where_each_lands_alone() {
    for_all(|rows, domain, key| {
        let store = store_of(rows);
        let tree = Tree::grown(domain, key, &store);
        // Rows of the tree, rows near them, rows anywhere in the box.
        let mut queries: Vec<f64> = Vec::new();
        for (at, x) in cloud(150, domain.n_dims(), 77).iter().enumerate() {
            let near = &rows[at % rows.len()];
            queries.extend(x.iter().zip(near).map(|(a, b)| [*b, *a, b + 1e-9 * a, b + 0.1 * a][at % 4]));
        }
        for x in queries.chunks_exact_mut(domain.n_dims()) {
            domain.clamp(x);
        }
        for lifetime in LIFETIMES {
            let lifetime = Lifetime::new(lifetime).unwrap();
            let mut locator = Locator::new(&tree, domain, &store, lifetime);
            let exact = tree.route(domain, &store, &CodedRows::new(domain, &queries), lifetime, Frozen::Resumed);
            let stored = tree.route(domain, &store, &CodedRows::new(domain, &queries), lifetime, Frozen::AsItStands);
            for ((x, exact), stored) in queries.chunks_exact(domain.n_dims()).zip(exact).zip(stored) {
                assert_eq!(exact, locator.locate(x));
                match exact {
                    Landing::Unseen { parent, .. } if matches!(parent.kind(), Kind::Single(_)) => {
                        assert_eq!(stored, Landing::Seen(parent));
                    }
                    _ => assert_eq!(stored, exact),
                }
            }
        }
    });
}

#[test]
fn rows_read_by_codes_land_where_each_lands_alone() {
    // More than a megabyte of them, so that they are coded: rows of the tree, rows near them, rows anywhere.
    let rows = cloud(4000, 8, 15);
    let (store, domain) = (store_of(&rows), domain(&rows, f64::INFINITY));
    let tree = Tree::grown(&domain, domain.tree_key(0), &store);
    let mut queries: Vec<f64> = Vec::new();
    for (at, x) in cloud(20_000, 8, 16).iter().enumerate() {
        let near = &rows[at % rows.len()];
        queries.extend(x.iter().zip(near).map(|(a, b)| [*b, *a, b + 1e-9 * a, b + 0.1 * a][at % 4]));
    }
    for x in queries.chunks_exact_mut(domain.n_dims()) {
        domain.clamp(x);
    }
    assert!(size_of_val(&queries[..]) > 1 << 20);
    let coded = CodedRows::new(&domain, &queries);
    for lifetime in [0.5, 3.0, f64::INFINITY] {
        let lifetime = Lifetime::new(lifetime).unwrap();
        let mut locator = Locator::new(&tree, &domain, &store, lifetime);
        let landings = tree.route(&domain, &store, &coded, lifetime, Frozen::Resumed);
        let cells = tree.cells(&domain, &store, &coded, lifetime, Frozen::Resumed);
        for ((x, landing), cell) in queries.chunks_exact(domain.n_dims()).zip(landings).zip(cells) {
            assert_eq!(landing, locator.locate(x));
            assert_eq!(locator.cell_of(x), Some(cell).filter(|child| *child != Child::EMPTY));
        }
    }
}

#[test]
fn a_box_must_have_a_rate_of_cuts() {
    let wide = |length: f64| Bounds::new(&[0.0, 0.0], &[length, length]).expect("each side is a number");
    let too_large =
        |domain: mondrian::Result<Domain>| matches!(domain, Err(Error::TooLarge { what: "the sum of the sides", .. }));
    assert!(too_large(Domain::new(1, &wide(1e308), Lifetime::INFINITE)));
    assert!(too_large(Domain::restored(1, wide(1e308), 0, Lifetime::INFINITE)));
    let mut domain = Domain::new(1, &wide(8e307), Lifetime::INFINITE).expect("the sum is a number");
    assert!(matches!(domain.set_rung(1), Err(Error::TooLarge { .. })));
    assert_eq!(domain.rung(), 0);
}

/// Tight clusters with repeated points and a constant column, by key: their trees are full of chains.
fn clusters(n: usize, n_dims: usize, seed: u64) -> Vec<Vec<f64>> {
    let draw = |a: usize, b: usize| NodeKey::root(seed, a as u64).fork(b as u64).draw(0).uniform();
    let point = |row: usize| {
        let cluster = row % (n / 8).max(1);
        let spread = [1e-2, 1e-5, 1e-9, 1e-14][cluster % 4];
        let x = (0..n_dims).map(|dim| draw(1000 + cluster, dim) + spread * draw(row, dim));
        x.enumerate().map(|(dim, x)| if n_dims > 2 && dim == 1 { 0.25 } else { x }).collect()
    };
    (0..n).map(|row| point(if row % 9 == 4 { row - 4 } else { row })).collect()
}

const CLUSTERED: [(usize, usize); 4] = [(2, 5), (60, 1), (160, 5), (80, 50)];

/// Every case of clustered points, on a first box and on an extended one.
fn for_all_clusters(check: impl Fn(&[Vec<f64>], &Domain, NodeKey)) {
    for (n, n_dims) in CLUSTERED {
        let rows = clusters(n, n_dims, 31);
        for lifetime in LIFETIMES {
            let on_first = domain(&rows, lifetime);
            check(&rows, &on_first, on_first.tree_key(0));
            let few: Vec<Vec<f64>> = rows.iter().take(2).map(|x| x.iter().map(|v| 0.4 + 0.2 * v).collect()).collect();
            let mut extended = domain(&few, lifetime);
            let rung = extended.rung_holding(&bounds_of(&rows)).unwrap();
            extended.set_rung(rung).unwrap();
            check(&rows, &extended, extended.tree_key(1));
        }
    }
}

/// The lengths of all runs of cuts with an empty side in a tree without chains.
fn runs_of(plain: &Tree) -> Vec<usize> {
    let (mut runs, mut todo) = (Vec::new(), vec![plain.root()]);
    while let Some(mut child) = todo.pop() {
        let mut run = 0;
        while let Kind::Inner(id) = child.kind() {
            let node = plain.node(id);
            if node.separates() {
                todo.extend(plain.children(node));
                break;
            }
            run += 1;
            child = plain.child(node, node.full_side());
        }
        runs.push(run);
    }
    runs
}

#[test]
fn chains_are_the_long_runs_of_the_plain_tree() {
    let n_chains = std::cell::Cell::new(0);
    for_all_clusters(|rows, domain, key| {
        let store = store_of(rows);
        let (tree, plain) = (Tree::grown(domain, key, &store), Tree::grown(&domain.storing_every_cut(), key, &store));
        assert!(tree.is_well_formed(&store) && plain.is_well_formed(&store));
        assert!(tree.without_chains(domain, &store).same_as(&store, &plain, &store));
        assert_eq!(plain.n_chains(), 0);
        let (long, short): (Vec<usize>, Vec<usize>) = runs_of(&plain).into_iter().partition(|run| *run >= 4);
        assert_eq!(tree.n_chains(), long.len());
        assert_eq!(plain.n_nodes() - tree.n_nodes(), long.iter().sum::<usize>());
        assert!(short.iter().all(|run| *run < 4));
        n_chains.set(n_chains.get() + long.len());
    });
    assert!(n_chains.get() > 500, "{}", n_chains.get());
}

#[test]
fn points_come_and_go_through_chains() {
    for_all_clusters(|rows, domain, key| {
        let (mut store, mut tree, mut touched) = (PointStore::new(domain.n_dims()), Tree::new(key), Touched::default());
        let mut held: Vec<Vec<f64>> = Vec::new();
        let mut plain = Tree::new(key);
        let unchained = domain.storing_every_cut();
        for step in 0..3 * rows.len() {
            let lot = NodeKey::root(12, step as u64).draw(0).to_bits() as usize;
            // Two thirds come, one by one or several at once; a third goes.
            if !lot.is_multiple_of(3) || held.is_empty() {
                let mut fresh = Vec::new();
                for at in 0..[1, 1, 5][lot / 3 % 3] {
                    let x = &rows[(lot / 9 + at * 7) % rows.len()];
                    let (point, new) = store.add(x).unwrap();
                    held.push(x.clone());
                    if new {
                        fresh.push(point);
                    } else if !fresh.contains(&point) {
                        tree.count_again(&store, point, &mut touched);
                        plain.count_again(&store, point, &mut touched);
                    }
                }
                plain.insert(&unchained, &store, &mut fresh.clone(), &mut touched);
                tree.insert(domain, &store, &mut fresh, &mut touched);
            } else {
                let x = held.swap_remove(lot / 3 % held.len());
                let point = store.find(&x).unwrap();
                let gone = store.multiplicity(point) == 1;
                tree.forget(domain, &x, point, gone, &mut touched);
                plain.forget(&unchained, &x, point, gone, &mut touched);
                store.remove(point);
            }
            if tree.needs_compaction() {
                tree.compact(&store);
            }
            if step % 16 == 0 {
                assert!(tree.is_well_formed(&store));
                assert!(tree.same_as(&store, &Tree::grown(domain, key, &store), &store), "step {step}");
                assert!(plain.same_as(&store, &Tree::grown(&unchained, key, &store), &store), "step {step}");
            }
        }
        // All go, in the end.
        for x in held {
            let point = store.find(&x).unwrap();
            tree.forget(domain, &x, point, store.multiplicity(point) == 1, &mut touched);
            store.remove(point);
        }
        assert_eq!(tree.root(), Tree::new(key).root());
    });
}

/// The numbers of all points under a child, ascending.
fn points_under(tree: &Tree, child: Child) -> Vec<u32> {
    let (mut points, mut todo) = (Vec::new(), vec![child]);
    while let Some(child) = todo.pop() {
        match child.kind() {
            Kind::Inner(id) => todo.extend(tree.children(tree.node(id))),
            Kind::Leaf(id) => points.extend_from_slice(tree.leaf(id).points()),
            Kind::Single(point) => points.push(point),
            Kind::Empty => {}
        }
    }
    points.sort_unstable();
    points
}

#[test]
fn queries_find_the_same_cells_with_and_without_chains() {
    for_all_clusters(|rows, domain, key| {
        let store = store_of(rows);
        let (tree, plain) = (Tree::grown(domain, key, &store), Tree::grown(&domain.storing_every_cut(), key, &store));
        let mut queries: Vec<f64> = Vec::new();
        for (at, x) in cloud(120, domain.n_dims(), 78).iter().enumerate() {
            let near = &rows[at % rows.len()];
            let spread = [0.0, 1e-15, 1e-10, 1e-6, 1e-3, 0.1, 1.0][at % 7];
            queries.extend(x.iter().zip(near).map(|(a, b)| b + spread * (a - 0.5)));
        }
        for x in queries.chunks_exact_mut(domain.n_dims()) {
            domain.clamp(x);
        }
        // Lifetimes at, and within, the first chains.
        let inside = tree.chains().take(4).flat_map(|(_, chain)| {
            let (first, last) = (chain.first_time(), chain.last_time());
            [first, first.next_down(), f64::midpoint(first, last), last, last.next_down()]
        });
        for lifetime in LIFETIMES.into_iter().chain(inside) {
            let lifetime = Lifetime::new(lifetime).unwrap();
            let mut locator = Locator::new(&tree, domain, &store, lifetime);
            let mut plain_locator = Locator::new(&plain, domain, &store, lifetime);
            let together = tree.route(domain, &store, &CodedRows::new(domain, &queries), lifetime, Frozen::Resumed);
            let cells = tree.cells(domain, &store, &CodedRows::new(domain, &queries), lifetime, Frozen::Resumed);
            for ((x, landing), shared) in queries.chunks_exact(domain.n_dims()).zip(together).zip(cells) {
                assert_eq!(locator.locate(x), landing);
                let cell = locator.cell_of(x);
                assert_eq!(cell, Some(shared).filter(|child| *child != Child::EMPTY));
                let ((child, stays), (other, plain_stays)) = (locator.locate_in_law(x), plain_locator.locate_in_law(x));
                assert_eq!(points_under(&tree, child), points_under(&plain, other));
                assert_eq!(stays.to_bits(), plain_stays.to_bits());
                match (landing, plain_locator.locate(x)) {
                    (Landing::Seen(a), Landing::Seen(b)) => {
                        assert_eq!(cell, Some(a));
                        assert_eq!(points_under(&tree, a), points_under(&plain, b));
                    }
                    (Landing::Unseen { time, parent }, Landing::Unseen { time: plain_time, parent: plain_parent }) => {
                        assert_eq!(cell, None);
                        assert_eq!(time.to_bits(), plain_time.to_bits());
                        assert_eq!(points_under(&tree, parent), points_under(&plain, plain_parent));
                    }
                    (a, b) => panic!("{a:?} with chains, {b:?} without"),
                }
            }
            let (cells, plain_cells) = (tree.cell_numbers(lifetime), plain.cell_numbers(lifetime));
            let sorted = |tree: &Tree, cells: std::collections::HashMap<Child, u32>| {
                let mut cells: Vec<_> = cells.into_iter().map(|(cell, n)| (n, points_under(tree, cell))).collect();
                cells.sort_unstable();
                cells
            };
            assert_eq!(sorted(&tree, cells), sorted(&plain, plain_cells));
        }
    });
}

#[test]
fn thousands_of_cuts_are_one_chain() {
    let n_dims = 120;
    let near = |by: f64| (0..n_dims).map(|dim| 0.3 + 0.003 * dim as f64 + by).collect::<Vec<f64>>();
    let rows = [vec![0.0; n_dims], vec![1.0; n_dims], near(0.0), near(1e-13), near(-1e-13), near(3e-8)];
    let store = store_of(&rows);
    let domain = domain(&rows, f64::INFINITY);
    let key = domain.tree_key(0);
    let batch = Tree::grown(&domain, key, &store);
    let plain = Tree::grown(&domain.storing_every_cut(), key, &store);
    assert!(plain.n_nodes() > 3000, "{}", plain.n_nodes());
    assert!(batch.n_nodes() < 20 && batch.n_bytes() * 10 < plain.n_bytes());
    assert!(batch.without_chains(&domain, &store).same_as(&store, &plain, &store));
    let (mut tree, mut touched) = (Tree::new(key), Touched::default());
    for x in rows.iter().rev() {
        tree.insert(&domain, &store, &mut [store.find(x).unwrap()], &mut touched);
    }
    assert!(tree.same_as(&store, &batch, &store));
    for x in &rows[3..] {
        tree.forget(&domain, x, store.find(x).unwrap(), true, &mut touched);
    }
    let small = store_of(&rows[..3]);
    assert!(tree.same_as(&store, &Tree::grown(&domain, key, &small), &small));
}
