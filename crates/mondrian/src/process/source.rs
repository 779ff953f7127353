//! Where a sample comes from: a key on its boxes, and the restrictions and extensions made since.

use serde::{Deserialize, Serialize};

use crate::process::walker::Walker;
use crate::process::{Bounds, Cell, NodeKey};
use crate::{Error, Result};

/// Extensions one sample can have been through; each is a layer that every later walk goes through.
pub const MAX_EXTENSIONS: usize = 64;

/// A process on a box, in measure coordinates: a pure function of these few numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "SavedSource")]
pub(crate) struct Source {
    /// Nested boxes, one keyed clock each (see [`Cell`]).
    boxes: Vec<Bounds>,
    key: NodeKey,
    /// What was done to the keyed process, first things first.
    layers: Vec<Layer>,
}

/// One operation on a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Layer {
    Restricted { window: Bounds },
    Extended { outer: Bounds, key: NodeKey },
}

impl Layer {
    fn bounds(&self) -> &Bounds {
        match self {
            Self::Restricted { window } => window,
            Self::Extended { outer, .. } => outer,
        }
    }
}

impl Source {
    /// The keyed process on nested boxes, of which there is at least one.
    pub(crate) fn keyed(boxes: Vec<Bounds>, key: NodeKey) -> Self {
        Self { boxes, key, layers: Vec::new() }
    }

    /// The key of the keyed process at the bottom.
    pub(crate) fn key(&self) -> NodeKey {
        self.key
    }

    /// The box of the process.
    pub(crate) fn bounds(&self) -> &Bounds {
        self.layers.last().map_or_else(|| self.boxes.last().expect("at least one box"), Layer::bounds)
    }

    /// The process seen through a window inside its box.
    pub(crate) fn restrict(mut self, window: Bounds) -> Result<Self> {
        self.bounds().check_holds(&window)?;
        // A window through a window shows what the smaller one alone shows.
        if matches!(self.layers.last(), Some(Layer::Restricted { .. })) {
            self.layers.pop();
        }
        self.layers.push(Layer::Restricted { window });
        Ok(self)
    }

    /// The process extended to a box that holds its own; without a seed, one that follows from the key.
    pub(crate) fn extend(mut self, outer: Bounds, seed: Option<u64>) -> Result<Self> {
        outer.check_holds(self.bounds())?;
        let n_extensions = self.n_extensions();
        if n_extensions >= MAX_EXTENSIONS {
            let (expected, limit) = ((n_extensions + 1) as f64, MAX_EXTENSIONS as f64);
            return Err(Error::TooLarge { what: "extensions of one sample", expected, limit });
        }
        // Outside the range of tree and rung numbers; counted, so that no two extensions share their draws.
        let number = u64::MAX - n_extensions as u64;
        let key = seed.map_or_else(|| self.key.fork(number), |seed| NodeKey::root(seed, number));
        self.layers.push(Layer::Extended { outer, key });
        Ok(self)
    }

    fn n_extensions(&self) -> usize {
        self.layers.iter().filter(|layer| matches!(layer, Layer::Extended { .. })).count()
    }

    /// A walk that starts at the whole box, at time 0.
    pub(crate) fn walker(&self) -> Walker {
        let mut level = self.boxes.len() as u32;
        let mut walker = Walker::Keyed(Box::new(Cell::root(&self.boxes, self.key)));
        for layer in &self.layers {
            walker = match layer {
                Layer::Restricted { window } => Walker::restricted(walker, window.clone()),
                Layer::Extended { outer, key } => {
                    let extended = Walker::extended(walker, outer, *key, level);
                    level += 1;
                    extended
                }
            };
        }
        walker
    }
}

/// A [`Source`] as read, before it is checked.
#[derive(Deserialize)]
struct SavedSource {
    boxes: Vec<Bounds>,
    key: NodeKey,
    layers: Vec<Layer>,
}

impl TryFrom<SavedSource> for Source {
    type Error = Error;

    fn try_from(saved: SavedSource) -> Result<Self> {
        if saved.boxes.is_empty() {
            return Err(Error::Empty { what: "boxes", rows: 0, columns: 0 });
        }
        for pair in saved.boxes.windows(2) {
            pair[1].check_holds(&pair[0])?;
        }
        let mut source = Self::keyed(saved.boxes, saved.key);
        for layer in saved.layers {
            source = match &layer {
                Layer::Restricted { window } => source.restrict(window.clone())?,
                Layer::Extended { outer, .. } => {
                    let mut extended = source.extend(outer.clone(), None)?;
                    // Checked above; the key is the one that was saved.
                    extended.layers.pop();
                    extended.layers.push(layer);
                    extended
                }
            };
        }
        Ok(source)
    }
}
