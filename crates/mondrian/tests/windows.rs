//! Forests that hold the last n rows, or a sample of n: the forest of exactly those rows, bit for bit, whatever came before.

use mondrian::internals::model_file::{Archive, Saved};
use mondrian::process::{Bounds, NodeKey};
use mondrian::{
    ClassificationForest, DensityForest, Error, FitOptions, ForestParams, Lifetime, MondrianFeatures, Points,
    RegressionForest,
};

const D: usize = 2;

fn rows(n: u64) -> Vec<[f64; D]> {
    // Some rows come again.
    let draw =
        |i: u64, dim: u64| NodeKey::root(5, if i.is_multiple_of(9) { i / 2 } else { i }).fork(dim).draw(0).uniform();
    (0..n).map(|i| [draw(i, 0), 3.0 * draw(i, 1)]).collect()
}

fn target(x: &[f64; D]) -> f64 {
    (5.0 * x[0]).sin() + x[1]
}

fn class(x: &[f64; D]) -> u32 {
    (3.0 * x[0]) as u32
}

fn points(x: &[[f64; D]]) -> Points<'_> {
    Points::row_major(x.as_flattened(), D).unwrap()
}

fn targets(x: &[[f64; D]]) -> Vec<f64> {
    x.iter().map(target).collect()
}

fn classes(x: &[[f64; D]]) -> Vec<u32> {
    x.iter().map(class).collect()
}

fn bits(numbers: &[f64]) -> Vec<u64> {
    numbers.iter().map(|x| x.to_bits()).collect()
}

fn lifetime() -> Lifetime {
    Lifetime::new(20.0).unwrap()
}

fn root() -> Bounds {
    Bounds::new(&[0.0, 0.0], &[1.0, 3.0]).unwrap()
}

/// What all three kinds of forest do here.
trait Model: Sized + Clone + Saved {
    fn fit(params: ForestParams, x: &[[f64; D]]) -> Self;
    fn learn(&mut self, x: &[[f64; D]]);
    fn forget(&mut self, x: &[[f64; D]]);
    fn join(&mut self, other: &Self) -> Result<(), Error>;
    fn answers(&self, x: &[[f64; D]]) -> Vec<u64>;
    fn n_held(&self) -> usize;
    fn hold_last(&mut self, n: Option<usize>) -> Result<(), Error>;
}

macro_rules! model {
    ($model:ty, [$($values:ident)?], $answer:ident, $with:expr) => {
        impl Model for $model {
            fn fit(params: ForestParams, x: &[[f64; D]]) -> Self {
                let mut all = <$model>::params();
                all.forest = params;
                $with(all).fit(points(x) $(, &$values(x))?).unwrap()
            }

            fn learn(&mut self, x: &[[f64; D]]) {
                <$model>::learn(self, points(x) $(, &$values(x))?).unwrap();
            }

            fn forget(&mut self, x: &[[f64; D]]) {
                <$model>::forget(self, points(x) $(, &$values(x))?).unwrap();
            }

            fn join(&mut self, other: &Self) -> Result<(), Error> {
                <$model>::merge(self, other)
            }

            fn answers(&self, x: &[[f64; D]]) -> Vec<u64> {
                bits(&self.$answer(points(x)).unwrap())
            }

            fn n_held(&self) -> usize {
                self.n_rows()
            }

            fn hold_last(&mut self, n: Option<usize>) -> Result<(), Error> {
                self.set_window(n)
            }
        }
    };
}

model!(RegressionForest, [targets], predict, |params| params);
model!(ClassificationForest, [classes], predict_proba, |params: mondrian::ClassificationParams| params.n_classes(3));
model!(DensityForest, [], log_density, |params| params);

fn params() -> ForestParams {
    ForestParams::default().n_trees(5).lifetime(lifetime()).bounds(root())
}

/// A window equals a fit of its rows after every batch; a file of it goes on where it stopped.
fn window_is_a_fit_of_the_last_rows<M: Model>() {
    let (x, queries) = (rows(400), rows(500));
    for n in [1, 7, 60] {
        let mut model = M::fit(params().window(n), &x[..25]);
        let (mut at, mut size) = (25, 1);
        while at < x.len() {
            let end = (at + size).min(x.len());
            model.learn(&x[at..end]);
            if size % 5 == 0 {
                model = M::from_bytes(&model.to_bytes().unwrap()).unwrap();
            }
            (at, size) = (end, size % 90 + 4);
            let whole = M::fit(params(), &x[at - n.min(at)..at]);
            assert_eq!(model.answers(&queries), whole.answers(&queries), "window of {n} after {at} rows");
            assert_eq!(model.n_held(), n.min(at));
        }
        // Files of equal windows are equal, however the rows came.
        let again = M::fit(params().window(n), &x);
        assert_eq!(again.answers(&queries), model.answers(&queries));
        assert_eq!(M::from_bytes(&again.to_bytes().unwrap()).unwrap().answers(&queries), model.answers(&queries));
    }
}

#[test]
fn windows_are_fits_of_the_last_rows() {
    window_is_a_fit_of_the_last_rows::<RegressionForest>();
    window_is_a_fit_of_the_last_rows::<ClassificationForest>();
    window_is_a_fit_of_the_last_rows::<DensityForest>();
}

/// A sample is a function of the set of rows: of order, batches and merging it is free.
fn sample_is_free_of_order<M: Model>() {
    let (x, queries) = (rows(300), rows(400));
    let whole = M::fit(params().max_rows(40), &x);
    assert_eq!(whole.n_held(), 40);
    let mut backwards = x.clone();
    backwards.reverse();
    for order in [&x, &backwards] {
        let mut model = M::fit(params().max_rows(40), &order[..10]);
        for batch in order[10..].chunks(17) {
            model.learn(batch);
        }
        assert_eq!(model.answers(&queries), whole.answers(&queries));
        let [mut a, b] = [&order[..120], &order[120..]].map(|part| M::fit(params().max_rows(40), part));
        a.join(&M::from_bytes(&b.to_bytes().unwrap()).unwrap()).unwrap();
        assert_eq!(a.answers(&queries), whole.answers(&queries));
    }
    let other = M::fit(params().max_rows(40).seed(1), &x);
    assert_ne!(other.answers(&queries), whole.answers(&queries), "another seed takes other rows");
}

#[test]
fn samples_are_free_of_order() {
    sample_is_free_of_order::<RegressionForest>();
    sample_is_free_of_order::<ClassificationForest>();
    sample_is_free_of_order::<DensityForest>();
}

fn changes_of_the_window<M: Model>() {
    let (x, queries) = (rows(200), rows(300));
    let mut model = M::fit(params(), &x[..100]);
    // Rows of before a window go first.
    model.hold_last(Some(30)).unwrap();
    assert_eq!(model.n_held(), 30);
    model.learn(&x[100..130]);
    assert_eq!(model.answers(&queries), M::fit(params(), &x[100..130]).answers(&queries));
    model.forget(&x[110..115]);
    model.learn(&x[130..135]);
    let left: Vec<[f64; D]> = [&x[100..110], &x[115..135]].concat();
    assert_eq!(model.answers(&queries), M::fit(params(), &left).answers(&queries));
    model.hold_last(Some(20)).unwrap();
    assert_eq!(model.answers(&queries), M::fit(params(), &x[115..135]).answers(&queries));
    model.hold_last(None).unwrap();
    model.learn(&x[135..]);
    assert_eq!(model.answers(&queries), M::fit(params(), &x[115..]).answers(&queries));
    assert!(model.hold_last(Some(0)).is_err());
    assert_eq!(model.n_held(), 85);
    let windows = [&x[..50], &x[50..]].map(|part| M::fit(params().window(20), part));
    let [mut a, b] = windows;
    assert!(matches!(a.join(&b), Err(Error::Incompatible { .. })), "rows of windows have an order");
    assert!(matches!(a.join(&model), Err(Error::Incompatible { .. })), "one window only");
}

#[test]
fn windows_change_their_length() {
    changes_of_the_window::<RegressionForest>();
    changes_of_the_window::<ClassificationForest>();
    changes_of_the_window::<DensityForest>();
}

#[test]
fn what_has_no_meaning_is_refused() {
    let x = rows(30);
    let both = RegressionForest::params().window(3).max_rows(3).fit(points(&x), &targets(&x));
    assert!(matches!(both, Err(Error::InvalidParameter { name: "max_rows", .. })));
    let none = RegressionForest::params().window(0).fit(points(&x), &targets(&x));
    assert!(matches!(none, Err(Error::InvalidParameter { name: "window", .. })));
    let weights = vec![1.0; 30];
    let weighted = || FitOptions::weighted(&weights);
    let refused = RegressionForest::params().window(5).fit_with(points(&x), &targets(&x), weighted());
    assert!(matches!(refused, Err(Error::NoWeights { .. })));
    let refused = ClassificationForest::params().max_rows(5).fit_with(points(&x), &classes(&x), weighted());
    assert!(matches!(refused, Err(Error::NoWeights { .. })));
    let mut model = RegressionForest::params().window(5).fit(points(&x), &targets(&x)).unwrap();
    assert!(matches!(model.learn_with(points(&x), &targets(&x), weighted()), Err(Error::NoWeights { .. })));
    let map = MondrianFeatures::on(&ForestParams::default().window(4), points(&x), lifetime());
    assert!(matches!(map, Err(Error::InvalidParameter { name: "window", .. })));
}

/// An automatic lifetime is chosen on the rows held.
#[test]
fn automatic_values_are_those_of_the_window() {
    let x = rows(300);
    let held = RegressionForest::params().n_trees(10).bounds(root()).window(120).fit(points(&x), &targets(&x)).unwrap();
    let last = &x[180..];
    let plain = RegressionForest::params().n_trees(10).bounds(root()).fit(points(last), &targets(last)).unwrap();
    assert_eq!(held.lifetime(), plain.lifetime());
    let said = held.predict_with_std(points(&x)).unwrap();
    let expected = plain.predict_with_std(points(&x)).unwrap();
    assert_eq!((bits(&said.mean), bits(&said.std)), (bits(&expected.mean), bits(&expected.std)));
}

/// Parts of a file that contradict each other are found out when it is read, not when a row is forgotten.
#[test]
fn damaged_files_are_refused() {
    let x = rows(50);
    let model = RegressionForest::params().window(20).fit(points(&x), &targets(&x)).unwrap();
    let sound = model.to_archive().unwrap();
    let altered = |name: &str, change: &dyn Fn(&Archive, &mut Archive)| {
        let mut archive = Archive::new(sound.kind());
        sound.metadata().iter().for_each(|(key, value)| archive.set_metadata(key, value).unwrap());
        for (key, array) in sound.arrays().iter().filter(|(key, _)| *key != name) {
            archive.insert_array(key, array.clone()).unwrap();
        }
        change(&sound, &mut archive);
        RegressionForest::from_archive(&archive)
    };
    let point = |at: usize| sound.slice::<u32>("held/point").unwrap()[at];
    assert!(altered("none", &|_, _| ()).is_ok());
    assert!(altered("held/point", &|_, _| ()).is_err(), "missing");
    assert!(
        altered("held/point", &|_, archive| archive.insert_vec("held/point", vec![point(0); 20]).unwrap()).is_err()
    );
    assert!(
        altered("held/point", &|_, archive| archive.insert_vec("held/point", vec![u32::MAX; 20]).unwrap()).is_err()
    );
    assert!(
        altered("held/values", &|_, archive| archive.insert("held/values", &[20, 1], vec![0.5; 20]).unwrap()).is_err()
    );
    assert!(
        altered("held/priority", &|_, archive| archive.insert_vec("held/priority", vec![3_u64; 20]).unwrap()).is_err()
    );
    let fewer = |sound: &Archive, archive: &mut Archive| {
        let priorities = sound.slice::<u64>("held/priority").unwrap()[..19].to_vec();
        archive.insert_vec("held/priority", priorities).unwrap();
    };
    assert!(altered("held/priority", &fewer).is_err());
}
