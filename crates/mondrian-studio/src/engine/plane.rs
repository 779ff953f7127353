//! One tree in the plane of two inputs: a Mondrian process itself, by self-consistency.

use mondrian::internals::process::Child;
use mondrian::process::{Bounds, BuiltInMeasure, Measure, Mondrian, NodeKey};
use mondrian::{Error, Lifetime};

use super::stream::SEED as STREAM_SEED;
use super::{Model, problem};
use crate::api::{Cut, Plane, PlaneRequest, Problem, Side};
use crate::tables::Data;

/// Approximate number of cells at the end of the slider, which a canvas can draw sixty times per second.
const MOST_CELLS: f64 = 5000.0;
/// Points drawn at most.
const MOST_POINTS: usize = 2000;

/// A lifetime with more cells than are drawn, in any box of scaled inputs.
const FAR: f64 = 1e6;

/// From, to.
pub(super) type Range = (f64, f64);

impl Model {
    /// The sides of a plane in the model's scale.
    pub(super) fn sides(&self, data: &Data, plane: PlaneRequest) -> Result<(Range, Range), Problem> {
        check(data, plane)?;
        let side = |d: usize| match self.trees() {
            None => (data.lower[d], data.upper[d]),
            // Trees use the coordinates of their measure.
            Some((domain, measure)) => {
                let bounds = domain.first_box();
                (measure.place(d, bounds.lower()[d]), measure.place(d, bounds.upper()[d]))
            }
        };
        Ok((side(plane.x), side(plane.y)))
    }

    /// The cuts of one tree in a plane, with training rows.
    pub(crate) fn plane(&self, data: &Data, plane: PlaneRequest) -> Result<Plane, Problem> {
        let (x, y) = self.sides(data, plane)?;
        let (nodes, complete_to) = self.cuts(data, plane).map_err(|e| problem(&e))?;
        Ok(with_rows(data, plane, (x, y), nodes, complete_to))
    }

    fn cuts(&self, data: &Data, plane: PlaneRequest) -> Result<(Vec<Cut>, f64), Error> {
        let Some((domain, measure)) = self.trees() else { return Ok((Vec::new(), 0.0)) };
        let to = self.curve().map_or(1.0, |curve| curve.to);
        cuts_of((domain.first_box(), measure), domain.tree_key(plane.tree), data, plane, to)
    }
}

/// The first tree of a stream, before a row is learned: the box of the rows and the seed are all that it depends on.
pub(crate) fn plane_of_stream(data: &Data, plane: PlaneRequest) -> Result<Plane, Problem> {
    check(data, plane)?;
    let found = Bounds::new(&data.lower, &data.upper).and_then(|bounds| {
        let key = NodeKey::root(STREAM_SEED, plane.tree as u64);
        cuts_of((&bounds, &BuiltInMeasure::Uniform), key, data, plane, FAR)
    });
    let (nodes, complete_to) = found.map_err(|e| problem(&e))?;
    let side = |d: usize| (data.lower[d], data.upper[d]);
    Ok(with_rows(data, plane, (side(plane.x), side(plane.y)), nodes, complete_to))
}

fn check(data: &Data, plane: PlaneRequest) -> Result<(), Problem> {
    if plane.x >= data.width() || plane.y >= data.width() || plane.x == plane.y {
        return Err(Problem::with_hint("a plane needs two different inputs", "choose another"));
    }
    Ok(())
}

/// The cuts in a plane, the other inputs at their medians, up to a lifetime or to as many cells as a canvas draws.
fn cuts_of(
    (bounds, measure): (&Bounds, &BuiltInMeasure),
    key: NodeKey,
    data: &Data,
    plane: PlaneRequest,
    mut to: f64,
) -> Result<(Vec<Cut>, f64), Error> {
    let middle: Vec<f64> = (0..bounds.n_dims()).map(|d| measure.coordinate(d, data.middle[d])).collect();
    let slice = Mondrian::new(bounds.clone(), key).slice(&[plane.x, plane.y], &middle)?;
    while slice.expected_cells(Lifetime::new(to)?) > MOST_CELLS {
        to *= 0.9;
    }
    let partition = slice.until(Lifetime::new(to)?)?;
    let number = |child: Child| match child {
        Child::Cut(number) => number as i64,
        Child::Cell(_) => -1,
    };
    let nodes = partition
        .nodes()
        .map(|node| {
            let place = measure.place(node.dim, node.location);
            (node.time, u8::from(node.dim == plane.y), place, number(node.below), number(node.above))
        })
        .collect();
    Ok((nodes, to))
}

/// A plane with its ends in the table's units and the training rows in it.
fn with_rows(data: &Data, plane: PlaneRequest, (x, y): (Range, Range), nodes: Vec<Cut>, complete_to: f64) -> Plane {
    let side = |d: usize, (min, max): Range| Side {
        name: data.features[d].clone(),
        min,
        max,
        low: data.encoder.in_units(d, min),
        high: data.encoder.in_units(d, max),
    };
    let width = data.width();
    let stride = data.train.rows.len().div_ceil(MOST_POINTS).max(1);
    let points = (0..data.train.rows.len())
        .step_by(stride)
        .map(|row| {
            let x = &data.train.x[row * width..];
            [x[plane.x], x[plane.y], data.train.y.get(row).copied().unwrap_or(0.0)]
        })
        .collect();
    Plane { x: side(plane.x, x), y: side(plane.y, y), nodes, complete_to, points }
}
