//! Greedy that may also remove cuts gets stuck; searches that look further do not.

use anyhow::Result;
use mondrian::SearchKind;
use rayon::prelude::*;

use crate::context::Context;
use crate::grid_toy::{Lattice, SETTINGS, Toy, Walk};
use crate::plot::{Axis, Figure, Line, Panel, Style};
use crate::record::{Cell, Record, Spread};

const KINDS: [(SearchKind, &str); 5] = [
    (SearchKind::Greedy, "greedy"),
    (SearchKind::GreedyBoth, "greedy both ways"),
    (SearchKind::Lookahead, "look-ahead"),
    (SearchKind::Spsa, "SPSA"),
    (SearchKind::Bayes, "Gaussian process"),
];
const BOTH: usize = 1;

/// A toy with every search's walk over seeds.
struct Scene {
    name: &'static str,
    target: fn(f64, f64) -> f64,
    n_grids: usize,
}

const SCENES: [Scene; 3] = [
    Scene { name: "sin 3x₁ + 0.7 x₂", target: |a, b| (3.0 * a).sin() + 0.7 * b, n_grids: 5 },
    Scene {
        name: "chessboard of four fields",
        target: |a, b| if (a < 0.5) == (b < 0.5) { 1.0 } else { -1.0 },
        n_grids: 10,
    },
    Scene { name: "wave sin 25x₁", target: |a, _| (25.0 * a).sin(), n_grids: 3 },
];

pub(crate) fn run(context: &Context) -> Result<Record> {
    let (size, budget) = (context.pick(41, 16), context.pick(120, 60));
    let seeds = context.seeds(8, 3);
    let toy = |scene: &Scene, seed: u64| Toy::new(seed, scene.n_grids, scene.target);
    let lattices: Vec<Lattice> =
        seeds.par_iter().map(|s| Ok(toy(&SCENES[0], *s).lattice(size)?)).collect::<Result<_>>()?;
    let mut walks: Vec<Vec<Vec<Walk>>> = Vec::new();
    for scene in &SCENES {
        context.log(scene.name);
        let of_seed = |s: &u64| KINDS.iter().map(|(kind, _)| Ok(toy(scene, *s).walk(*kind, budget)?)).collect();
        walks.push(seeds.par_iter().map(of_seed).collect::<Result<_>>()?);
    }
    let mut record = Record::new(
        "grid-both-ways",
        "Greedy both ways gets stuck",
        "A greedy search that may also remove a cut, where that leads to the lowest error, easily ends in local minima.",
    );
    record.setting("targets", "those of the table, with 5, 10 and 3 grids");
    SETTINGS.iter().for_each(|(name, value)| record.setting(name, value));
    record.setting("evaluations at most", budget);
    record.seeds = format!("{}: other data, grids and draws of the searches", seeds.len());
    summarise(&mut record, lattices, &walks);
    Ok(record)
}

fn summarise(record: &mut Record, lattices: Vec<Lattice>, walks: &[Vec<Vec<Walk>>]) {
    let n = lattices.len();
    let stuck = (0..n).filter(|s| walks[0][*s][BOTH].least() > lattices[*s].least() * 1.001).count();
    let steps = Spread::of((0..n).map(|s| walks[0][s][BOTH].errors.len() as f64 - 1.0));
    let excess = Spread::of((0..n).map(|s| walks[0][s][BOTH].least() / lattices[s].least() - 1.0));
    let never_left = walks[1].iter().filter(|w| w[BOTH].errors.len() == 1).count();
    for (name, value) in [
        ("stuck", stuck as f64),
        ("seeds", n as f64),
        ("steps", steps.mean),
        ("excess", excess.mean),
        ("never_left", never_left as f64),
    ] {
        record.number(name, value);
    }
    record.see(
        "On the smooth set greedy both ways ends after {steps:.0} steps on average, {excess:%} above the least of the lattice: in \
         {stuck} of {seeds} seeds it is stuck above the minimum, where no cut added or removed helps. On the chessboard, where no cut \
         in one dimension alone helps, it ends where it began with {never_left} of {seeds} seeds. Greedy that only adds cuts takes the \
         best next cut even where that is worse, and passes such places.",
    );
    record.claim(
        "gets stuck",
        2 * stuck > n,
        "greedy both ways ends in a local minimum with most seeds ({stuck} of {seeds})",
    );
    let means: Vec<Vec<Spread>> = walks
        .iter()
        .map(|scene| (0..KINDS.len()).map(|k| Spread::of(scene.iter().map(|w| w[k].least()))).collect())
        .collect();
    let beaten = means.iter().all(|m| (0..KINDS.len()).all(|k| k == BOTH || m[k].mean < 0.75 * m[BOTH].mean));
    record.claim(
        "others go further",
        beaten,
        "on each of the three sets every other search reaches less than three quarters of its error on average",
    );
    let row = |scene: usize| -> Vec<Cell> {
        let name = Cell::from(SCENES[scene].name);
        let start = Spread::of(walks[scene].iter().map(|w| w[0].errors[0]));
        std::iter::once(name).chain([start.into()]).chain(means[scene].iter().map(|s| Cell::from(*s))).collect()
    };
    let columns: Vec<&str> = ["target", "start"].into_iter().chain(KINDS.map(|k| k.1)).collect();
    record.table("Least validation error within the same number of evaluations", &columns, (0..SCENES.len()).map(row));
    let lattice = lattices.into_iter().next().expect("at least one seed");
    let path = walks[0][0][BOTH].on(lattice.size, "greedy both ways");
    let mut panels = vec![Panel::Surface(lattice.surface("Where it stops on the smooth set", vec![path]))];
    for (scene, title) in [(0, "The smooth set"), (1, "The chessboard"), (2, "The wave")] {
        let lines = KINDS.iter().enumerate().map(|(k, (_, name))| least_so_far(name, k, &walks[scene][0][k]));
        panels.push(Panel::chart(
            title,
            Axis::log("steps + 1"),
            Axis::linear("least validation RMSE so far"),
            lines.collect(),
        ));
    }
    record.figures.push(Figure {
        file: "grid-both-ways".to_owned(),
        caption:
            "The path of greedy both ways from (0, 0) until no neighbour is better; and the least error so far of all \
                  searches on three sets, first seed. A line that ends early is a search that has finished or used up its \
                  evaluations."
                .to_owned(),
        panels,
    });
}

fn least_so_far(name: &str, colour: usize, walk: &Walk) -> Line {
    let mut least = f64::INFINITY;
    let points = walk.errors.iter().enumerate().map(|(k, error)| {
        least = least.min(*error);
        (k as f64 + 1.0, least)
    });
    let style = if colour == BOTH { Style::Dotted } else { Style::Line };
    Line::new(name, colour, points.collect::<Vec<_>>()).style(style)
}
