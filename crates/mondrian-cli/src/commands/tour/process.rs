//! The process itself: a sample viewed at different times.

use mondrian::Lifetime;
use mondrian::process::{Bounds, Mondrian, NodeKey, Picture};

use super::Tour;
use crate::failure::Outcome;
use crate::report::partition::partition_block;
use crate::report::{Axis, Block, Figure, Section};

const LIFETIME: f64 = 5.0;

pub(super) fn chapter(tour: &mut Tour) -> Outcome<()> {
    let process = Mondrian::new(Bounds::new(&[0.0, 0.0], &[1.0, 1.0])?, NodeKey::root(tour.seed, 0));
    let sample = process.until(Lifetime::new(LIFETIME)?)?;
    let side = |name: &str| Axis { name: name.to_owned(), min: 0.0, max: 1.0, low: None, high: None };
    let block = partition_block(&process, [side("x"), side("y")], [0, 1], &[0.5, 0.5], LIFETIME, None)?;
    tour.report.sections.push(Section::new(
        "A Mondrian process",
        &[
            "Every box waits an exponential time, with a rate equal to its total side length, and is then cut uniformly along its sides. Move the slider: a longer lifetime only refines the partition.",
            "The whole picture is a function of one seed. It does not depend on threads, the order of queries or earlier lifetimes.",
        ],
        vec![block.block],
    ));
    tour.message("a Mondrian process", format!("{} cells at lifetime {LIFETIME} on the unit square", sample.n_cells()));
    let window = sample.restrict(&[0.2, 0.3], &[0.7, 0.8])?;
    let outer = sample.extend(&[-0.5, -0.5], &[1.5, 1.5], None)?;
    let same = outer.restrict(&[0.2, 0.3], &[0.7, 0.8])?.is_same_sample(&window);
    tour.message(
        "restrict, extend",
        format!(
            "a window has {} cells, the extension to twice the width {}; back in the window, cut for cut: {}",
            window.n_cells(),
            outer.n_cells(),
            if same { "the same" } else { "another" }
        ),
    );
    // Drawn about as large as they are shown, so that letters can be read.
    let small = Picture::new().size(300.0);
    let drawn = [
        ("The sample, painted.", small.clone().paint(true).svg(&sample)?),
        ("Restricted to a window: the cuts that cross it, at their times.", small.clone().times(true).svg(&window)?),
        ("Extended to twice the width: the old cuts continue, and new ones are added.", small.svg(&outer)?),
    ];
    let figures = drawn.into_iter().map(|(caption, svg)| Figure { svg, caption: caption.to_owned() }).collect();
    tour.report.sections.push(Section::new(
        "Restriction and extension",
        &["A window on a Mondrian process is a Mondrian process, and every sample can be extended to a larger box. Online learning is based on this."],
        vec![Block::Figures { figures }],
    ));
    tour.figures.insert("cells".to_owned(), sample.n_cells().into());
    Ok(())
}
