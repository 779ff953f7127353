//! Classification forests in model files.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::forest::Forest;
use crate::forest::classification::masks::{PointClasses, check_labels};
use crate::forest::classification::{ClassificationForest, ClassificationParams, TrainedTrees};
use crate::model_file::{Archive, ModelFileError, Saved};
use crate::{Lifetime, Result};

/// What a file says besides the parameters, the domain and the points.
#[derive(Serialize, Deserialize)]
struct State {
    n_classes: usize,
    /// The lifetime looked at; none: automatic.
    view: Option<Lifetime>,
}

impl Saved for ClassificationForest {
    const KIND: &'static str = "forest.classification";

    fn to_archive(&self) -> Result<Archive> {
        let mut archive = Archive::new(Self::KIND);
        archive.set_params("classification", &self.params)?;
        archive.set_params("state", &State { n_classes: self.n_classes(), view: self.view })?;
        let TrainedTrees { forest, classes } = &*self.trained;
        if forest.write_summary(&mut archive)? {
            return Ok(archive);
        }
        forest.write_to(&mut archive)?;
        let mut rows: [Vec<u32>; 3] = Default::default();
        for point in forest.store().points() {
            for (class, count) in classes.of(point) {
                rows.iter_mut().zip([point, *class, *count]).for_each(|(column, value)| column.push(value));
            }
        }
        let [point, class, count] = rows;
        archive.insert_vec("labels/point", point)?;
        archive.insert_vec("labels/class", class)?;
        archive.insert_vec("labels/count", count)?;
        Ok(archive)
    }

    fn from_archive(archive: &Archive) -> Result<Self> {
        let params: ClassificationParams = archive.params("classification")?;
        params.check()?;
        let State { n_classes, view } = archive.params("state")?;
        if let Some(summary) = crate::forest::saved::read_summary(archive)? {
            let model = summary.grown_classification()?;
            return model.at(view.unwrap_or_else(|| model.terminal_lifetime()));
        }
        let (mut forest, growth) = Forest::read_from(archive)?;
        let class = archive.slice("labels/class")?;
        check_labels(class.len(), class, n_classes)?;
        let (point, count) = (archive.slice("labels/point")?, archive.slice("labels/count")?);
        let inconsistent = |what| Err(ModelFileError::Inconsistent { what }.into());
        if point.len() != class.len() || count.len() != class.len() {
            return inconsistent("labels: points, classes and counts differ in number");
        }
        let mut rows = vec![0_u64; forest.store().n_slots()];
        for (point, count) in point.iter().zip(count) {
            match rows.get_mut(*point as usize) {
                Some(sum) if *count > 0 => *sum += u64::from(*count),
                _ => return inconsistent("labels: a count of zero, or of no point"),
            }
        }
        if (0..rows.len()).any(|p| rows[p] != u64::from(forest.store().multiplicity(p as u32))) {
            return inconsistent("labels: a point's classes do not add up to its rows");
        }
        if view.is_some_and(|view| view > forest.domain().lifetime()) {
            return inconsistent("the lifetime looked at is beyond that of the trees");
        }
        let mut classes = PointClasses::new(n_classes);
        for ((point, class), count) in point.iter().zip(class).zip(count) {
            classes.add_rows(*point, *class, *count);
        }
        if let Some(held) = forest.held() {
            let mut left: HashMap<(u32, u32), u32> =
                point.iter().zip(class).zip(count).map(|((point, class), count)| ((*point, *class), *count)).collect();
            let known = held.rows().all(|(_, (point, value))| {
                let [class] = **value else { return false };
                let count = left.get_mut(&(*point, class as u32)).filter(|count| **count > 0);
                count.is_some_and(|count| {
                    *count -= 1;
                    f64::from(class as u32) == class
                })
            });
            if !known {
                return inconsistent("classes of the rows of a window or sample");
            }
        }
        let is_class = |value: &f64| value.fract() == 0.0 && (0.0..n_classes as f64).contains(value);
        if forest.warm_up().is_some_and(|warm_up| warm_up.n_values() > 1 || !warm_up.values().iter().all(is_class)) {
            return inconsistent("classes of the first rows of a stream");
        }
        forest.regrow_as_saved(&classes, &growth)?;
        let trained = Arc::new(TrainedTrees { forest, classes });
        Ok(Self::of_parts(params, trained, view))
    }
}
