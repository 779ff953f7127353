//! The peer: a batch build with bounding boxes, as LRT14 (Algorithms 1 and 2) describes it.
//!
//! At every node it computes the box of the node's points over all D dimensions, draws a time and a cut from that box,
//! and partitions the points: an index array partitioned in place, an explicit stack, no allocation per node. Boxes are
//! found in two ways. *Plain*: feature by feature over columns, the straightforward loops, as in published splitters.
//! *Vectorised*: row by row over a row-major array, both corners at once, a loop that the compiler turns into vector
//! minima and maxima; the fastest variant found.

/// A node of the peer: the data every implementation needs for a query, besides its box.
#[expect(dead_code, reason = "the peer is timed, never queried")]
pub(crate) struct BoxNode {
    pub(crate) time: f64,
    pub(crate) location: f64,
    pub(crate) dim: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) above: u32,
}

/// A tree of the peer. Boxes are 2·D numbers per node, lower bounds first.
pub(crate) struct BoxTree {
    pub(crate) nodes: Vec<BoxNode>,
    pub(crate) boxes: Vec<f64>,
}

/// Whether the peer keeps its boxes. It needs them for queries and online learning; if they would take gigabytes they
/// are dropped, in the peer's favour.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Boxes {
    Kept,
    Dropped,
}

/// The points, in the layout of each method.
#[derive(Clone, Copy)]
pub(crate) enum Scan<'a> {
    /// Column-major, feature by feature.
    Plain(&'a [f64]),
    /// Row-major, row by row.
    Vectorised(&'a [f64]),
}

impl Scan<'_> {
    fn numbers(&self) -> &[f64] {
        match self {
            Self::Plain(x) | Self::Vectorised(x) => x,
        }
    }

    fn find_box(&self, rows: &[u32], lower: &mut [f64], upper: &mut [f64]) -> f64 {
        match self {
            Self::Plain(x) => find_box_plainly(x, rows, lower, upper),
            Self::Vectorised(x) => find_box(x, rows, lower, upper),
        }
    }
}

/// Builds a tree over the points until `lifetime`.
pub(crate) fn build(scan: Scan<'_>, n_dims: usize, lifetime: f64, boxes: Boxes, seed: u64) -> BoxTree {
    let x = scan.numbers();
    let n = x.len() / n_dims;
    let (row_stride, column_stride) = if matches!(scan, Scan::Plain(_)) { (1, n) } else { (n_dims, 1) };
    let mut order: Vec<u32> = (0..n as u32).collect();
    let mut tree = BoxTree { nodes: Vec::new(), boxes: Vec::new() };
    let mut random = Random(seed);
    let (mut lower, mut upper) = (vec![0.0; n_dims], vec![0.0; n_dims]);
    // Start, end, time of the parent's cut, and the parent whose upper child this is.
    let mut todo = vec![(0, n, 0.0, None::<usize>)];
    while let Some((start, end, birth, parent)) = todo.pop() {
        let id = tree.nodes.len();
        if let Some(parent) = parent {
            tree.nodes[parent].above = id as u32;
        }
        let linear_dimension = scan.find_box(&order[start..end], &mut lower, &mut upper);
        let time =
            if linear_dimension > 0.0 { birth - random.uniform().ln() / linear_dimension } else { f64::INFINITY };
        let (dim, location) = place(random.uniform() * linear_dimension, &lower, &upper);
        let (start_, end_) = (start as u32, end as u32);
        tree.nodes.push(BoxNode { time, location, dim: dim as u32, start: start_, end: end_, above: 0 });
        if boxes == Boxes::Kept {
            tree.boxes.extend_from_slice(&lower);
            tree.boxes.extend_from_slice(&upper);
        }
        if time < lifetime {
            let middle = start
                + partition(&mut order[start..end], |row| {
                    x[row as usize * row_stride + dim * column_stride] <= location
                });
            todo.push((middle, end, time, Some(id)));
            todo.push((start, middle, time, None));
        }
    }
    tree
}

/// The box of some rows; its linear dimension.
fn find_box(x: &[f64], rows: &[u32], lower: &mut [f64], upper: &mut [f64]) -> f64 {
    let n_dims = lower.len();
    let first = &x[rows[0] as usize * n_dims..][..n_dims];
    lower.copy_from_slice(first);
    upper.copy_from_slice(first);
    for row in &rows[1..] {
        let row = &x[*row as usize * n_dims..][..n_dims];
        for ((value, lo), hi) in row.iter().zip(lower.iter_mut()).zip(upper.iter_mut()) {
            *lo = if *value < *lo { *value } else { *lo };
            *hi = if *value > *hi { *value } else { *hi };
        }
    }
    lower.iter().zip(upper).map(|(lo, hi)| *hi - lo).sum()
}

/// The box of some rows of a column-major array, feature by feature; its linear dimension.
fn find_box_plainly(x: &[f64], rows: &[u32], lower: &mut [f64], upper: &mut [f64]) -> f64 {
    let columns = x.chunks_exact(x.len() / lower.len());
    let mut linear_dimension = 0.0;
    for ((column, lower), upper) in columns.zip(lower).zip(upper) {
        let first = column[rows[0] as usize];
        let (mut lo, mut hi) = (first, first);
        for row in rows {
            let value = column[*row as usize];
            if value < lo {
                lo = value;
            } else if value > hi {
                hi = value;
            }
        }
        (*lower, *upper) = (lo, hi);
        linear_dimension += hi - lo;
    }
    linear_dimension
}

/// The dimension and location at a place along the laid-out sides.
fn place(mut at: f64, lower: &[f64], upper: &[f64]) -> (usize, f64) {
    let mut last = 0;
    for (dim, (lo, hi)) in lower.iter().zip(upper).enumerate() {
        if hi > lo {
            last = dim;
            if at < hi - lo {
                break;
            }
            at -= hi - lo;
        }
    }
    (last, (lower[last] + at).clamp(lower[last], upper[last].next_down().max(lower[last])))
}

fn partition(rows: &mut [u32], is_below: impl Fn(u32) -> bool) -> usize {
    let mut n_below = 0;
    for i in 0..rows.len() {
        let row = rows[i];
        let below = is_below(row);
        rows[i] = rows[n_below];
        rows[n_below] = row;
        n_below += usize::from(below);
    }
    n_below
}

/// SplitMix64: a cheap generator, so that random numbers do not slow down the peer.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (((z ^ (z >> 31)) >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
}
