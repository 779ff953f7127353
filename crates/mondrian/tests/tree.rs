//! The tree's exact promises (design, section 1): each row of the table, by equality.

use mondrian::process::{Bounds, NodeKey};
use mondrian::tree::{Frozen, Ground, Kind, Landing, Locator, PointStore, Touched, Tree};
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

fn ground(rows: &[Vec<f64>], lifetime: f64) -> Ground {
    Ground::new(3, &bounds_of(rows), Lifetime::new(lifetime).unwrap()).unwrap()
}

const CASES: [(usize, usize); 6] = [(1, 1), (2, 5), (40, 1), (200, 5), (120, 50), (300, 2)];
const LIFETIMES: [f64; 5] = [0.0, 0.7, 4.0, 40.0, f64::INFINITY];

/// Every case of points, ground and tree.
fn for_all(check: impl Fn(&[Vec<f64>], &Ground, NodeKey)) {
    for (n, n_dims) in CASES {
        for lifetime in LIFETIMES {
            for index in 0..3 {
                let rows = cloud(n, n_dims, 17 + n as u64);
                let ground = ground(&rows, lifetime);
                check(&rows, &ground, ground.tree_key(index));
            }
        }
    }
}

#[test]
fn grown_trees_are_well_formed() {
    for_all(|rows, ground, key| {
        let store = store_of(rows);
        assert!(Tree::grown(ground, key, &store).is_well_formed(&store));
    });
}

#[test]
fn large_trees_do_not_depend_on_how_they_were_grown() {
    // Enough points for rows to be copied near each other, and for parts to be grown apart.
    let rows = cloud(50_000, 8, 5);
    let store = store_of(&rows);
    for lifetime in [3.0, f64::INFINITY] {
        let ground = ground(&rows, lifetime);
        let key = ground.tree_key(0);
        let batch = Tree::grown(&ground, key, &store);
        for n_threads in [1, 2, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            let parts = pool.install(|| Tree::grown_in_parts(&ground, key, &store));
            assert!(parts.same_as(&store, &batch, &store), "{n_threads} threads, lifetime {lifetime}");
        }
        let (mut one_by_one, mut touched) = (Tree::new(key), Touched::default());
        for point in store.points() {
            one_by_one.insert(&ground, &store, &mut [point], &mut touched);
        }
        assert!(one_by_one.same_as(&store, &batch, &store), "lifetime {lifetime}");
        let (mut halves, points) = (Tree::new(key), store.points().collect::<Vec<u32>>());
        for half in points.chunks(points.len() / 2) {
            halves.insert(&ground, &store, &mut half.to_vec(), &mut touched);
        }
        assert!(halves.same_as(&store, &batch, &store), "lifetime {lifetime}, in batches");
    }
}

#[test]
fn order_of_arrival_changes_nothing() {
    for_all(|rows, ground, key| {
        let batch_store = store_of(rows);
        let batch = Tree::grown(ground, key, &batch_store);
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|i| NodeKey::root(99, *i as u64).draw(0).to_bits());
        for chunk in [1, 7, 1000] {
            let (mut store, mut tree, mut touched) =
                (PointStore::new(ground.n_dims()), Tree::new(key), Touched::default());
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
                tree.insert(ground, &store, &mut fresh, &mut touched);
            }
            assert!(tree.is_well_formed(&store));
            assert!(tree.same_as(&store, &batch, &batch_store), "chunks of {chunk}");
        }
    });
}

#[test]
fn forgetting_gives_the_tree_that_never_saw_the_rows() {
    for_all(|rows, ground, key| {
        let mut store = store_of(rows);
        let mut tree = Tree::grown(ground, key, &store);
        let mut touched = Touched::default();
        let kept: Vec<Vec<f64>> = rows.iter().enumerate().filter(|(i, _)| i % 3 == 0).map(|(_, x)| x.clone()).collect();
        for (row, x) in rows.iter().enumerate() {
            if row % 3 != 0 {
                let point = store.find(x).unwrap();
                let gone = store.multiplicity(point) == 1;
                tree.forget(x, point, gone, &mut touched);
                store.remove(point);
                if tree.is_untidy() {
                    tree.tidy(&store);
                }
            }
        }
        let small = store_of(&kept);
        assert!(tree.is_well_formed(&store));
        assert!(tree.same_as(&store, &Tree::grown(ground, key, &small), &small));
    });
}

#[test]
fn raising_the_lifetime_refines_the_same_tree() {
    for (n, n_dims) in CASES {
        let rows = cloud(n, n_dims, 5);
        let store = store_of(&rows);
        let full = ground(&rows, f64::INFINITY);
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
        let mut ground = ground(&few, 30.0);
        let rung = ground.rung_holding(&bounds_of(&rows)).unwrap();
        ground.set_rung(rung).unwrap();
        let key = ground.tree_key(1);
        let store = store_of(&rows);
        let batch = Tree::grown(&ground, key, &store);
        assert!(batch.is_well_formed(&store));
        let (mut grown, mut again, mut touched) = (Tree::new(key), PointStore::new(n_dims), Touched::default());
        for x in rows.iter().rev() {
            let (point, new) = again.add(x).unwrap();
            if new {
                grown.insert(&ground, &again, &mut [point], &mut touched);
            } else {
                grown.count_again(&again, point, &mut touched);
            }
        }
        assert!(grown.same_as(&again, &batch, &store));
        // Extend then raise the lifetime = raise then extend.
        let mut raised = Tree::grown(&ground.with_lifetime(Lifetime::new(1.0).unwrap()), key, &store);
        raised.raise_lifetime(&ground, &store);
        assert!(raised.same_as(&store, &batch, &store));
    }
}

#[test]
fn rows_routed_together_land_where_each_lands_alone() {
    for_all(|rows, ground, key| {
        let store = store_of(rows);
        let tree = Tree::grown(ground, key, &store);
        // Rows of the tree, rows near them, rows anywhere in the box.
        let mut queries: Vec<f64> = Vec::new();
        for (at, x) in cloud(150, ground.n_dims(), 77).iter().enumerate() {
            let near = &rows[at % rows.len()];
            queries.extend(x.iter().zip(near).map(|(a, b)| [*b, *a, b + 1e-9 * a, b + 0.1 * a][at % 4]));
        }
        for x in queries.chunks_exact_mut(ground.n_dims()) {
            ground.clamp(x);
        }
        for lifetime in LIFETIMES {
            let lifetime = Lifetime::new(lifetime).unwrap();
            let mut locator = Locator::new(&tree, ground, &store, lifetime);
            let exact = tree.route(ground, &store, &queries, lifetime, Frozen::Resumed);
            let stored = tree.route(ground, &store, &queries, lifetime, Frozen::AsItStands);
            for ((x, exact), stored) in queries.chunks_exact(ground.n_dims()).zip(exact).zip(stored) {
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
fn a_box_must_have_a_rate_of_cuts() {
    let wide = |length: f64| Bounds::new(&[0.0, 0.0], &[length, length]).expect("each side is a number");
    let too_large =
        |ground: mondrian::Result<Ground>| matches!(ground, Err(Error::TooLarge { what: "the sum of the sides", .. }));
    assert!(too_large(Ground::new(1, &wide(1e308), Lifetime::INFINITE)));
    assert!(too_large(Ground::restored(1, wide(1e308), 0, Lifetime::INFINITE)));
    let mut ground = Ground::new(1, &wide(8e307), Lifetime::INFINITE).expect("the sum is a number");
    assert!(matches!(ground.set_rung(1), Err(Error::TooLarge { .. })));
    assert_eq!(ground.rung(), 0);
}
