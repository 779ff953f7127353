//! Pictures of partitions: as shapes, and as SVG.
//!
//! Two dimensions give the partition, one gives the time–location diagram of the report, more give a two-dimensional
//! slice, which is a restriction and so a Mondrian partition itself.

mod diagram;
mod drawing;
pub(crate) mod grid;
mod lettering;
mod paint;
mod plane;

use crate::process::{Measure, Partition};
use crate::{Error, Result};
pub use drawing::{Colour, Drawing, Shape, Text};
pub use lettering::PathStep;

/// How to draw a partition.
///
/// ```
/// use mondrian::{Lifetime, process::{Partition, Picture}};
/// let sample = Partition::sample(&[0.0, 0.0], &[1.0, 1.0], Lifetime::new(4.0)?, 1)?;
/// assert!(Picture::new().paint(true).svg(&sample)?.starts_with("<svg"));
/// # Ok::<(), mondrian::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    size: f64,
    times: bool,
    paint: bool,
    axes: Option<(usize, usize)>,
    through: Option<Vec<f64>>,
}

impl Default for Picture {
    fn default() -> Self {
        Self::new()
    }
}

impl Picture {
    /// A line drawing 720 pixels wide or high, whichever is the longer side.
    pub fn new() -> Self {
        Self { size: 720.0, times: false, paint: false, axes: None, through: None }
    }

    /// The longer side, in pixels.
    #[must_use]
    pub fn size(mut self, pixels: f64) -> Self {
        self.size = pixels;
        self
    }

    /// Labels every cut that has space for it with its birth time.
    #[must_use]
    pub fn times(mut self, times: bool) -> Self {
        self.times = times;
        self
    }

    /// Fills the cells in the style of Piet Mondrian; the coloured cells are a function of the sample's key.
    #[must_use]
    pub fn paint(mut self, paint: bool) -> Self {
        self.paint = paint;
        self
    }

    /// The two dimensions to show, horizontal and vertical. Default: the first two of positive length.
    #[must_use]
    pub fn axes(mut self, across: usize, up: usize) -> Self {
        self.axes = Some((across, up));
        self
    }

    /// A point in the slice, for more than two dimensions. Default: the centre of the box.
    #[must_use]
    pub fn through(mut self, point: &[f64]) -> Self {
        self.through = Some(point.to_vec());
        self
    }

    /// The picture of a partition, as an SVG document.
    ///
    /// # Errors
    /// Those of [`Picture::drawing`].
    pub fn svg<M: Measure + Clone>(&self, partition: &Partition<M>) -> Result<String> {
        Ok(self.drawing(partition)?.to_svg())
    }

    /// The picture of a partition, as shapes.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for a size that is not between 16 and 100000 pixels or axes that are not two
    /// different dimensions of the box, [`Error::LengthMismatch`] and [`Error::NotInside`] for a point to go through.
    pub fn drawing<M: Measure + Clone>(&self, partition: &Partition<M>) -> Result<Drawing> {
        if !(16.0..=100_000.0).contains(&self.size) {
            let expected = "between 16 and 100000 pixels";
            return Err(Error::InvalidParameter { name: "size", value: self.size, expected });
        }
        match self.shown_dims(partition)? {
            Shown::Line(dim) => Ok(diagram::draw(self, partition, dim)),
            Shown::Plane(across, up) => {
                let slice = self.slice(partition, across, up)?;
                let partition = slice.as_ref().unwrap_or(partition);
                let plane = plane::Plane::new(partition, across, up, self.size);
                if self.paint { Ok(paint::draw(&plane, partition)) } else { Ok(plane.draw(self.times)) }
            }
        }
    }

    fn shown_dims<M: Measure + Clone>(&self, partition: &Partition<M>) -> Result<Shown> {
        let n_dims = partition.n_dims();
        if let Some((across, up)) = self.axes {
            for dim in [across, up] {
                if dim >= n_dims || across == up {
                    let expected = "one of two different dimensions of the box";
                    return Err(Error::InvalidParameter { name: "axes", value: dim as f64, expected });
                }
            }
            return Ok(Shown::Plane(across, up));
        }
        let open: Vec<usize> =
            partition.bounds().lengths().enumerate().filter(|(_, l)| *l > 0.0).map(|(dim, _)| dim).collect();
        Ok(match open[..] {
            [across, up, ..] => Shown::Plane(across, up),
            [dim] => Shown::Line(dim),
            [] if n_dims == 1 => Shown::Line(0),
            [] => Shown::Plane(0, 1),
        })
    }

    /// The slice to show, `None` if the partition has no further extent.
    fn slice<M: Measure + Clone>(
        &self,
        partition: &Partition<M>,
        across: usize,
        up: usize,
    ) -> Result<Option<Partition<M>>> {
        let bounds = partition.bounds();
        if let Some(point) = &self.through
            && point.len() != bounds.n_dims()
        {
            let (expected, found) = (bounds.n_dims(), point.len());
            return Err(Error::LengthMismatch { what: "coordinates to go through", expected, found });
        }
        let (mut lower, mut upper) = (bounds.lower().to_vec(), bounds.upper().to_vec());
        for dim in (0..bounds.n_dims()).filter(|dim| *dim != across && *dim != up) {
            let centre = lower[dim] + (upper[dim] - lower[dim]) / 2.0;
            let place = self.through.as_ref().map_or(centre, |point| point[dim]);
            (lower[dim], upper[dim]) = (place, place);
        }
        if lower == bounds.lower() && upper == bounds.upper() {
            return Ok(None);
        }
        partition.restrict(&lower, &upper).map(Some)
    }
}

/// The content of a picture.
enum Shown {
    Line(usize),
    Plane(usize, usize),
}

impl<M: Measure + Clone> Partition<M> {
    /// The default picture of the partition; [`Picture`] has options.
    ///
    /// # Errors
    /// Those of [`Picture::svg`].
    pub fn to_svg(&self) -> Result<String> {
        Picture::new().svg(self)
    }
}

const INK: Colour = Colour(0x1b, 0x1a, 0x17);
const PAPER: Colour = Colour(0xff, 0xff, 0xff);
