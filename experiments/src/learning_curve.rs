//! Error against the number of training rows, the lifetime chosen by the path.

use anyhow::Result;
use mondrian::Points;
use mondrian::{ForestParams, LeafModel, LifetimeChoice, RegressionParams};
use mondrian_benches::{Standardised, rmse};
use rayon::prelude::*;

use crate::context::Context;
use crate::plot::{Axis, Figure, Line, Panel, Style};
use crate::record::{Cell, Record, Spread};

/// Three ways: independent leaves with the lifetime by path, with the lifetime that the fewest rows chose, and
/// hierarchical leaves with the lifetime by path.
const WAYS: [&str; 3] = ["independent, by path", "independent, lifetime kept", "hierarchical, by path"];

/// One fit.
#[derive(Clone, Copy)]
struct Fit {
    error: f64,
    lifetime: f64,
}

/// One table: fits by size, seed and way.
struct Curve {
    name: &'static str,
    sizes: Vec<usize>,
    fits: Vec<Vec<[Fit; 3]>>,
}

pub(crate) fn run(context: &Context) -> Result<Record> {
    let curves = [
        curve(context, "ccpp", "ccpp", &[100, 200, 500, 1000, 2000, 5000, 7600])?,
        curve(context, "gebco_altitude", "gebco", &[100, 200, 500, 1000, 2000, 5000, 10_000, 20_000])?,
    ];
    let mut record = Record::new(
        "learning-curve",
        "Error against training rows",
        "No figure. For a Lipschitz target in D dimensions the best lifetime is known to grow like n^(1/(D+2)) and the squared error \
         then to fall like n^(-2/(D+2)); with a lifetime kept constant the error stops falling.",
    );
    record.setting("data", "ccpp (4 inputs), and land altitude (2 inputs)");
    record.setting("trees M =", n_trees(context));
    record.setting("lifetime", "chosen on the path of a held-out fifth of the training rows");
    record.seeds = format!("{}: other rows and other trees", context.seeds(3, 4).len());
    for curve in &curves {
        summarise(&mut record, curve);
    }
    record.see(
        "On ccpp the error of independent leaves goes from {ccpp_first_0:.2} to {ccpp_last_0:.2} MW from the fewest to the most rows while \
         the chosen lifetime goes from {ccpp_lifetime_first:.2} to {ccpp_lifetime_last:.2}; with the fewest rows' lifetime it ends at \
         {ccpp_last_1:.2}; hierarchical leaves end at {ccpp_last_2:.2}. On the altitudes the same four are {gebco_first_0:.0} and \
         {gebco_last_0:.0} metres, {gebco_last_1:.0} and {gebco_last_2:.0} metres, the lifetime growing from {gebco_lifetime_first:.2} to \
         {gebco_lifetime_last:.2}, as n to the power {gebco_power:.2} (theory for Lipschitz targets: 0.25; on ccpp {ccpp_power:.2}, theory 0.17).",
    );
    let number = |name: &str| record.numbers[name];
    let both = |of: &dyn Fn(&str) -> bool| ["ccpp", "gebco"].iter().all(|set| of(set));
    let falls = both(&|set| number(&format!("{set}_falls")) == 1.0);
    let grows = both(&|set| number(&format!("{set}_lifetime_last")) > number(&format!("{set}_lifetime_first")));
    let pays = both(&|set| number(&format!("{set}_last_0")) < number(&format!("{set}_last_1")));
    record.claim(
        "error falls",
        falls,
        "with the lifetime by path the mean error falls at every step in the number of rows, both leaf models",
    );
    record.claim("lifetime grows", grows, "the chosen lifetime grows with the number of rows");
    record.claim(
        "choosing pays",
        pays,
        "with the most rows, choosing the lifetime again beats keeping that of the fewest rows",
    );
    Ok(record)
}

fn n_trees(context: &Context) -> usize {
    context.pick(50, 10)
}

fn curve(context: &Context, table: &str, name: &'static str, sizes: &[usize]) -> Result<Curve> {
    let table = context.table(table)?;
    let seeds = context.seeds(3, 4);
    let splits: Vec<Standardised> = seeds.iter().map(|s| table.split(*s as u32)).collect();
    let most = splits[0].train_y.len().min(context.pick(usize::MAX, 2000));
    let sizes: Vec<usize> = sizes.iter().copied().filter(|n| *n <= most).collect();
    let kept: Vec<f64> = seeds
        .par_iter()
        .zip(&splits)
        .map(|(seed, split)| Ok(fit(context, split, sizes[0], *seed, LeafModel::Independent, None)?.lifetime))
        .collect::<Result<_>>()?;
    let mut fits = Vec::new();
    for &n in &sizes {
        context.log(&format!("{name}: {n} rows"));
        let one = |k: usize| -> Result<[Fit; 3]> {
            let with = |model, kept| fit(context, &splits[k], n, seeds[k], model, kept);
            Ok([
                with(LeafModel::Independent, None)?,
                with(LeafModel::Independent, Some(kept[k]))?,
                with(LeafModel::Hierarchical, None)?,
            ])
        };
        fits.push((0..seeds.len()).into_par_iter().map(one).collect::<Result<Vec<[Fit; 3]>>>()?);
    }
    Ok(Curve { name, sizes, fits })
}

fn fit(
    context: &Context,
    split: &Standardised,
    n: usize,
    seed: u64,
    leaf_model: LeafModel,
    kept: Option<f64>,
) -> Result<Fit> {
    let d = split.n_columns;
    let n_test = split.test_y.len().min(context.pick(2000, 200));
    let lifetime = match kept {
        Some(lifetime) => LifetimeChoice::Value(mondrian::Lifetime::new(lifetime)?),
        None => LifetimeChoice::Auto,
    };
    let forest = ForestParams {
        n_trees: n_trees(context),
        seed,
        lifetime,
        // One measure whatever the lifetime, so that lifetimes can be compared: inputs are standardised already.
        weights: mondrian::WeightsChoice::Raw,
        ..ForestParams::default()
    };
    let params = RegressionParams { forest, leaf_model, ..RegressionParams::default() };
    let model = params.fit(Points::row_major(&split.train_x[..n * d], d)?, &split.train_y[..n])?;
    let predicted = model.predict(Points::row_major(&split.test_x[..n_test * d], d)?)?;
    Ok(Fit { error: rmse(&predicted, &split.test_y[..n_test]), lifetime: model.lifetime().get() })
}

fn summarise(record: &mut Record, curve: &Curve) {
    let name = curve.name;
    let spread =
        |size: usize, way: usize, of: fn(&Fit) -> f64| Spread::of(curve.fits[size].iter().map(|f| of(&f[way])));
    let last = curve.sizes.len() - 1;
    let mut falls = true;
    for way in 0..WAYS.len() {
        let means: Vec<f64> = (0..=last).map(|k| spread(k, way, |f| f.error).mean).collect();
        falls &= way == 1 || means.windows(2).all(|w| w[1] < w[0]);
        record.number(&format!("{name}_first_{way}"), means[0]);
        record.number(&format!("{name}_last_{way}"), means[last]);
    }
    let lifetimes: Vec<f64> = (0..=last).map(|k| spread(k, 0, |f| f.lifetime).mean).collect();
    let power = (lifetimes[last] / lifetimes[0]).ln() / (curve.sizes[last] as f64 / curve.sizes[0] as f64).ln();
    record.number(&format!("{name}_falls"), f64::from(u8::from(falls)));
    record.number(&format!("{name}_lifetime_first"), lifetimes[0]);
    record.number(&format!("{name}_lifetime_last"), lifetimes[last]);
    record.number(&format!("{name}_power"), power);
    let row = |k: usize| -> Vec<Cell> {
        let errors = (0..WAYS.len()).map(|way| Cell::from(spread(k, way, |f| f.error)));
        let lifetime = Cell::from(spread(k, 0, |f| f.lifetime));
        std::iter::once(Cell::from(curve.sizes[k] as f64)).chain(errors).chain([lifetime]).collect()
    };
    let columns: Vec<&str> = ["rows"].into_iter().chain(WAYS).chain(["λ by path"]).collect();
    record.table(
        &format!("{name}: test RMSE, and the lifetime chosen for independent leaves"),
        &columns,
        (0..=last).map(row),
    );
    let rows = |k: usize| curve.sizes[k] as f64;
    let line = |way: usize| {
        let points = (0..=last).map(|k| {
            let error = spread(k, way, |f| f.error);
            (rows(k), error.mean, error.deviation)
        });
        Line::banded(WAYS[way], [0, 6, 2][way], points).style(if way == 1 { Style::Dashed } else { Style::Dotted })
    };
    let chosen = (0..=last).map(|k| {
        let lifetime = spread(k, 0, |f| f.lifetime);
        (rows(k), lifetime.mean, lifetime.deviation)
    });
    let (title, error) =
        if name == "ccpp" { ("Power plant", "test RMSE, MW") } else { ("Altitude", "test RMSE, metres") };
    let panels = [
        Panel::chart(title, Axis::log("training rows"), Axis::log(error), (0..WAYS.len()).map(line).collect()),
        Panel::chart(
            &format!("{title}: lifetime chosen by path"),
            Axis::log("training rows"),
            Axis::log("lifetime λ, 1/deviation of an input"),
            vec![Line::banded("independent leaves", 0, chosen).style(Style::Dotted)],
        ),
    ];
    if let Some(figure) = record.figures.first_mut() {
        figure.panels.extend(panels);
    } else {
        record.figures.push(Figure {
            file: "learning-curve".to_owned(),
            caption: "Test error against the number of training rows, and the lifetime that the path chooses; bands are one standard \
                      deviation over seeds."
                .to_owned(),
            panels: panels.to_vec(),
        });
    }
}
