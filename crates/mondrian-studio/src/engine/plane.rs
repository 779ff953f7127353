//! One tree in the plane of two inputs: a Mondrian process itself, by self-consistency.

use mondrian::process::{Bounds, Child, Mondrian, NodeKey};
use mondrian::{Error, Lifetime};

use super::{Model, problem};
use crate::api::{Cut, FitRequest, Plane, PlaneRequest, Problem, Side};
use crate::tables::Data;

/// Cells at the end of the slider, about: what a canvas draws sixty times per second.
const MOST_CELLS: f64 = 5000.0;
/// Points drawn at most.
const MOST_POINTS: usize = 2000;

/// From, to.
pub(super) type Range = (f64, f64);

impl Model {
    /// The sides of a plane in the model's scale.
    pub(super) fn sides(&self, data: &Data, plane: PlaneRequest) -> Result<(Range, Range), Problem> {
        if plane.x >= data.width() || plane.y >= data.width() || plane.x == plane.y {
            return Err(Problem::with_hint("a plane needs two different inputs", "choose another"));
        }
        let bounds = self.box_of(data).map_err(|e| problem(&e))?;
        let side = |d: usize| (bounds.lower()[d], bounds.upper()[d]);
        Ok((side(plane.x), side(plane.y)))
    }

    fn box_of(&self, data: &Data) -> Result<Bounds, Error> {
        self.bounds().cloned().map_or_else(|| Bounds::new(&data.lower, &data.upper), Ok)
    }

    /// The cuts of one tree in a plane, with training rows.
    pub(crate) fn plane(&self, data: &Data, request: &FitRequest, plane: PlaneRequest) -> Result<Plane, Problem> {
        let (x, y) = self.sides(data, plane)?;
        let side = |d: usize, (min, max): (f64, f64)| Side {
            name: data.features[d].clone(),
            min,
            max,
            low: data.encoder.in_units(d, min),
            high: data.encoder.in_units(d, max),
        };
        let (nodes, complete_to) = match self {
            Self::Laplace(_) | Self::Grid(_) => (Vec::new(), 0.0),
            _ => self.cuts(data, request, plane).map_err(|e| problem(&e))?,
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
        Ok(Plane { x: side(plane.x, x), y: side(plane.y, y), nodes, complete_to, points })
    }

    fn cuts(&self, data: &Data, request: &FitRequest, plane: PlaneRequest) -> Result<(Vec<Cut>, f64), Error> {
        let bounds = self.box_of(data)?;
        let flat = |side: &[f64]| -> Vec<f64> {
            (0..bounds.n_dims())
                .map(|d| {
                    let in_plane = d == plane.x || d == plane.y;
                    if in_plane { side[d] } else { data.middle[d].clamp(bounds.lower()[d], bounds.upper()[d]) }
                })
                .collect()
        };
        let process = Mondrian::new(bounds.clone(), NodeKey::root(request.seed, plane.tree as u64));
        let slice = process.restrict(Bounds::new(&flat(bounds.lower()), &flat(bounds.upper()))?)?;
        let mut to = self.curve().map_or(1.0, |curve| curve.to);
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
                (node.time, u8::from(node.dim == plane.y), node.location, number(node.below), number(node.above))
            })
            .collect();
        Ok((nodes, to))
    }
}
