//! Classification of digits 0 and 9 by densities: Mondrian forests against kernel density estimation.

mod contest;
mod images;
mod kde;
mod pca;
mod summary;

use anyhow::Result;

use crate::context::Context;
use crate::record::Record;
use contest::{Contest, n_folds, n_trees};
use images::Images;

pub(crate) fn run(context: &Context) -> Result<Record> {
    // Of the file's training images every second one learns, and in a contest of its own every twelfth.
    let many = Contest::new(context, &Images::new(context, context.pick(2, 6))?)?;
    let few = Contest::new(context, &Images::new(context, 12)?)?;
    let mut record = Record::new(
        "digits",
        "Digits 0 and 9 by densities",
        "A point is given the class whose estimated density is higher there. On MNIST's digits 0 and 9, projected onto their \
         principal components, densities by Mondrian forests seem more competitive with kernel density estimation (squared \
         exponential kernel) in few dimensions. Hyperparameters were set to sensible values and kept constant.",
    );
    record.setting(
        "rows",
        format!(
            "{} images to learn, and {} in a second contest (the report does not state its number); the same {} others to test",
            many.n_train, few.n_train, many.n_test
        ),
    );
    record.setting("components", "of the training rows, all divided by the deviation of the first");
    record.setting("trees M =", n_trees(context));
    record.setting(
        "constant values",
        format!(
            "those with the least mean error over all numbers of components in {} folds of cross-validation on the training rows \
             (the report does not state its values); chosen values: those with the least error there for each number of components",
            n_folds(context)
        ),
    );
    record.seeds = format!("{} forests; kernel density estimation is deterministic", context.seeds(3, 2).len());
    summary::write(&mut record, &many, &few);
    Ok(record)
}
