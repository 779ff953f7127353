//! A tree of the process in two dimensions, for the lifetime slider.

use mondrian::internals::process::Child;
use mondrian::process::{Measure, Mondrian};
use mondrian::{Lifetime, Points};

use super::parts::figure;
use super::{Axis, Block};
use crate::failure::Outcome;

/// Approximate number of cells at the slider's end, which a page can redraw while the slider moves.
const MOST_CELLS: f64 = 10_000.0;
/// Approximate minimum number of cells shown first.
const LEAST_CELLS: f64 = 16.0;
/// Approximate number of cells that can still be distinguished.
const MANY_CELLS: f64 = 800.0;
/// Points drawn at most.
const MOST_POINTS: usize = 600;

/// Points to draw into a partition, with a value each.
pub(crate) struct Drawn<'a> {
    pub(crate) points: Points<'a>,
    pub(crate) values: &'a [f64],
    /// The name of the values.
    pub(crate) name: String,
    /// Class names, if the values are classes.
    pub(crate) classes: Option<Vec<String>>,
}

/// The slice of a process in two of its dimensions, with the others at `through`.
pub(crate) fn partition_block<M: Measure + Clone>(
    process: &Mondrian<M>,
    axes: [Axis; 2],
    dims: [usize; 2],
    through: &[f64],
    lifetime: f64,
    drawn: Option<Drawn<'_>>,
) -> Outcome<DrawnTree> {
    let slice = process.slice(&dims, through)?;
    let max_lifetime = longest(&slice, lifetime);
    let partition = slice.until(Lifetime::new(max_lifetime)?)?;
    let number = |child: Child| match child {
        Child::Cut(number) => number as i64,
        Child::Cell(_) => -1,
    };
    let nodes = partition
        .nodes()
        .map(|node| {
            let axis = u8::from(node.dim == dims[1]);
            (node.time, axis, node.location, number(node.below), number(node.above))
        })
        .collect();
    let [x, y] = axes;
    let (points, value, classes) = match drawn {
        None => (Vec::new(), String::new(), None),
        Some(drawn) => {
            let stride = drawn.points.n_rows().div_ceil(MOST_POINTS).max(1);
            let points = (0..drawn.points.n_rows())
                .step_by(stride)
                .map(|row| [drawn.points.get(row, dims[0]), drawn.points.get(row, dims[1]), drawn.values[row]])
                .collect();
            (points, drawn.name, drawn.classes)
        }
    };
    let n_cells = if lifetime <= max_lifetime { partition.at(Lifetime::new(lifetime)?)?.n_cells() } else { 0 };
    // If the chosen lifetime cannot be drawn, the drawing starts with cells that can be distinguished.
    let first = if lifetime > max_lifetime { with_cells(&slice, max_lifetime, MANY_CELLS) } else { lifetime };
    let shown = first.max(with_cells(&slice, max_lifetime, LEAST_CELLS));
    let note = if lifetime > max_lifetime {
        Some(format!(
            "The slider ends at λ = {}: at the chosen λ = {} this tree has more cells than a page can draw.",
            figure(max_lifetime),
            figure(lifetime)
        ))
    } else if shown > lifetime {
        Some(format!(
            "At the chosen λ = {} this tree has {n_cells} {} here; the drawing starts at λ = {}, where there are more cells.",
            figure(lifetime),
            if n_cells == 1 { "cell" } else { "cells" },
            figure(shown)
        ))
    } else {
        None
    };
    let block = Block::Partition { x, y, value, nodes, points, classes, lifetime: shown, max_lifetime };
    Ok(DrawnTree { block, note })
}

/// A drawing, and a note about its range.
pub(crate) struct DrawnTree {
    pub(crate) block: Block,
    pub(crate) note: Option<String>,
}

/// The lifetime with about this many cells, at most `longest`.
fn with_cells<M: Measure + Clone>(slice: &Mondrian<M>, longest: f64, n_cells: f64) -> f64 {
    let cells = |value: f64| Lifetime::new(value).map_or(f64::INFINITY, |l| slice.expected_cells(l));
    let mut lifetime = longest;
    while lifetime > 0.0 && cells(lifetime / 1.1) >= n_cells {
        lifetime /= 1.1;
    }
    lifetime
}

/// Twice the lifetime shown first, or less if that would exceed the number of cells that a page can draw.
fn longest<M: Measure + Clone>(slice: &Mondrian<M>, lifetime: f64) -> f64 {
    let cells = |value: f64| Lifetime::new(value).map_or(f64::INFINITY, |l| slice.expected_cells(l));
    let mut longest = if lifetime.is_finite() && lifetime > 0.0 { 2.0 * lifetime } else { 1024.0 };
    while cells(longest) > MOST_CELLS {
        longest *= 0.9;
    }
    while cells(longest) < 40.0 && longest < 1e9 && slice.linear_dimension() > 0.0 {
        longest *= 1.5;
    }
    longest
}
