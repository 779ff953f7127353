//! Images of the digits 0 and 9 as principal components.

use anyhow::Result;
use mondrian::Points;

use super::pca::Components;
use crate::context::Context;
use crate::record::Spread;

/// Rows that come from the 60 000 training images.
const N_TRAIN: usize = 11_872;

/// Rows with a class each: 0 or 1.
pub(super) struct Labelled {
    pub(super) n_columns: usize,
    /// Row-major.
    pub(super) rows: Vec<f64>,
    pub(super) classes: Vec<u32>,
}

impl Labelled {
    pub(super) fn len(&self) -> usize {
        self.classes.len()
    }

    /// The first columns of all rows.
    pub(super) fn leading(&self, columns: usize) -> Vec<f64> {
        self.rows.chunks_exact(self.n_columns).flat_map(|r| &r[..columns]).copied().collect()
    }

    /// Every fifth row apart: those that a fold learns, and those it holds out.
    pub(super) fn fold(&self, number: usize) -> [Self; 2] {
        [false, true].map(|held_out| {
            let wanted = |row: &usize| (row % 5 == number) == held_out;
            self.chosen(&(0..self.len()).filter(wanted).collect::<Vec<usize>>())
        })
    }

    fn chosen(&self, rows: &[usize]) -> Self {
        let d = self.n_columns;
        Self {
            n_columns: d,
            rows: rows.iter().flat_map(|r| &self.rows[r * d..(r + 1) * d]).copied().collect(),
            classes: rows.iter().map(|r| self.classes[*r]).collect(),
        }
    }

    /// Share of rows that are given another class.
    pub(super) fn share_wrong(&self, found: &[u32]) -> f64 {
        found.iter().zip(&self.classes).filter(|(a, b)| a != b).count() as f64 / self.len() as f64
    }
}

/// Images to learn and images to test.
pub(super) struct Images {
    pub(super) train: Labelled,
    pub(super) test: Labelled,
}

impl Images {
    /// Every `stride`-th of the file's training images learns, an even number; the others that an odd number or the test
    /// part of the file gives are tested, with every stride the same: with the file's 1989 test images alone, errors of one
    /// to three per cent would be too uncertain to compare. The small version tests every fourth of them.
    ///
    /// Components are those of the images to learn, all in units of the first one's deviation.
    pub(super) fn new(context: &Context, stride: usize) -> Result<Self> {
        let table = context.table("mnist_0_9")?;
        let all = Labelled {
            n_columns: table.n_columns,
            classes: table.y.iter().map(|digit| u32::from(*digit != 0.0)).collect(),
            rows: table.x,
        };
        let n_train = N_TRAIN.min(all.len() * 6 / 7);
        let train: Vec<usize> = (0..n_train).step_by(stride).collect();
        let others = (0..all.len()).filter(|row| row % 2 == 1 || *row >= n_train);
        let test: Vec<usize> = others.step_by(context.pick(1, 4)).collect();
        let (mut train, mut test) = (all.chosen(&train), all.chosen(&test));
        let components = Components::new(Points::row_major(&train.rows, all.n_columns)?, context.pick(10, 6));
        for part in [&mut train, &mut test] {
            part.rows = components.project(Points::row_major(&part.rows, all.n_columns)?)?;
            part.n_columns = components.len();
        }
        let first = Spread::of(train.rows.iter().step_by(train.n_columns).copied()).deviation;
        train.rows.iter_mut().chain(&mut test.rows).for_each(|x| *x /= first);
        Ok(Self { train, test })
    }
}
