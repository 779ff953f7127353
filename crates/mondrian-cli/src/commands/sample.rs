//! `mondrian sample`: a partition of a box, drawn.

use std::path::Path;

use mondrian::internals::process::Drawing;
use mondrian::process::{Bounds, BuiltInMeasure, Mondrian, NodeKey, Partition, Picture, Weights};
use serde_json::json;

use crate::args::SampleArgs;
use crate::failure::{Failure, Outcome};
use crate::pixels;
use crate::screen::Screen;

/// Cuts listed in the JSON object at most.
const LISTED: usize = 100_000;

pub(crate) fn run(args: &SampleArgs, screen: Screen) -> Outcome<()> {
    let partition = sample(args)?;
    let form = args.out.as_deref().map(|out| Form::plan(out, screen)).transpose()?;
    if let (Some(form), Some(out)) = (form, args.out.as_deref()) {
        form.write(&picture(args).drawing(&partition)?, args, out)?;
    }
    let text = format!(
        "{} cells by {} cuts at lifetime {} (seed {})",
        partition.n_cells(),
        partition.n_cuts(),
        partition.lifetime(),
        args.seed
    );
    screen.message(&text);
    if let Some(out) = args.out.as_deref().filter(|out| *out != Path::new("-")) {
        screen.message(format!("wrote {}", out.display()));
    }
    let cuts: Vec<_> = partition
        .nodes()
        .take(LISTED)
        .map(|node| json!({ "time": node.time, "dim": node.dim, "location": node.location }))
        .collect();
    let object = json!({
        "lower": partition.bounds().lower(),
        "upper": partition.bounds().upper(),
        "lifetime": partition.lifetime().get(),
        "seed": args.seed,
        "n_cells": partition.n_cells(),
        "n_cuts": partition.n_cuts(),
        "cuts": cuts,
        "out": args.out,
    });
    screen.result("", &object)
}

fn sample(args: &SampleArgs) -> Outcome<Partition> {
    if args.lower.len() != args.upper.len() {
        return Err(Failure::input(
            format!("--lower has {} numbers, --upper {}", args.lower.len(), args.upper.len()),
            "give one per dimension to both",
        ));
    }
    for (name, numbers) in [("--lower", &args.lower), ("--upper", &args.upper)] {
        if let Some(x) = numbers.iter().find(|x| !x.is_finite()) {
            return Err(Failure::input(format!("{name} has {x}"), "give finite numbers"));
        }
    }
    for (name, numbers) in [("--weights", &args.weights), ("--through", &args.through)] {
        if let Some(numbers) = numbers.as_ref().filter(|n| n.len() != args.lower.len()) {
            return Err(Failure::input(
                format!("{name} has {} numbers, the box {} dimensions", numbers.len(), args.lower.len()),
                "give one per dimension",
            ));
        }
    }
    let bounds = Bounds::new(&args.lower, &args.upper)?;
    let measure = match &args.weights {
        None => BuiltInMeasure::Uniform,
        Some(weights) => BuiltInMeasure::Weighted(Weights::new(weights.clone())?),
    };
    Ok(Mondrian::with_measure(bounds, measure, NodeKey::root(args.seed, 0))?.until(args.lifetime.0)?)
}

fn picture(args: &SampleArgs) -> Picture {
    let mut picture = Picture::new().size(args.size).paint(args.paint).times(args.times);
    if let Some(axes) = &args.axes {
        picture = picture.axes(axes[0], axes[1]);
    }
    if let Some(point) = &args.through {
        picture = picture.through(point);
    }
    picture
}

/// The format of a drawing: determined before any work is done.
enum Form {
    Svg,
    Png,
}

impl Form {
    fn plan(out: &Path, screen: Screen) -> Outcome<Self> {
        let ending = out.extension().map(|e| e.to_string_lossy().to_lowercase());
        match ending.as_deref() {
            Some("svg") => Ok(Self::Svg),
            Some("png") => Ok(Self::Png),
            None if out == Path::new("-") && screen.json => {
                Err(Failure::input("--json and a drawing cannot both go to standard output", "give --out a file name"))
            }
            None if out == Path::new("-") => Ok(Self::Svg),
            _ => Err(Failure::input(
                format!("{}: a drawing is SVG or PNG", out.display()),
                "end the name of --out in .svg or .png",
            )),
        }
    }

    fn write(&self, drawing: &Drawing, args: &SampleArgs, out: &Path) -> Outcome<()> {
        match self {
            Self::Svg if out == Path::new("-") => crate::screen::print_line(&drawing.to_svg()),
            Self::Svg => crate::save::write_file(out, drawing.to_svg().as_bytes()),
            Self::Png => crate::save::write_file(out, &pixels::png(drawing, args.size)?),
        }
    }
}
