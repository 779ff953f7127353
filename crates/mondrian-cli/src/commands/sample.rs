//! `mondrian sample`: a partition of a box, drawn.

use std::path::Path;

use mondrian::process::{Bounds, BuiltInMeasure, Mondrian, NodeKey, Partition, Picture, Weights};
use serde_json::json;

use crate::args::SampleArgs;
use crate::failure::{Failure, Outcome};
use crate::screen::Screen;

/// Cuts listed in the JSON object at most.
const LISTED: usize = 100_000;

pub(crate) fn run(args: &SampleArgs, screen: Screen) -> Outcome<()> {
    let partition = sample(args)?;
    let drawing = args.out.as_deref().map(|out| Drawing::plan(out, screen)).transpose()?;
    if let (Some(drawing), Some(out)) = (drawing, args.out.as_deref()) {
        let svg = picture(args).svg(&partition)?;
        drawing.write(&svg, args, out)?;
    }
    let text = format!(
        "{} cells by {} cuts at lifetime {} (seed {})",
        partition.n_cells(),
        partition.n_cuts(),
        partition.lifetime(),
        args.seed
    );
    screen.say(&text);
    if let Some(out) = args.out.as_deref().filter(|out| *out != Path::new("-")) {
        screen.say(format!("wrote {}", out.display()));
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
            "give one a dimension to both",
        ));
    }
    for (name, numbers) in [("--weights", &args.weights), ("--through", &args.through)] {
        if let Some(numbers) = numbers.as_ref().filter(|n| n.len() != args.lower.len()) {
            return Err(Failure::input(
                format!("{name} has {} numbers, the box {} dimensions", numbers.len(), args.lower.len()),
                "give one a dimension",
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

/// In which form a drawing is written: settled before any work is done.
enum Drawing {
    Svg,
    #[cfg(feature = "png")]
    Png,
}

impl Drawing {
    fn plan(out: &Path, screen: Screen) -> Outcome<Self> {
        let ending = out.extension().map(|e| e.to_string_lossy().to_lowercase());
        match ending.as_deref() {
            Some("svg") => Ok(Self::Svg),
            None if out == Path::new("-") && screen.json => {
                Err(Failure::input("--json and a drawing cannot both go to standard output", "give --out a file name"))
            }
            None if out == Path::new("-") => Ok(Self::Svg),
            #[cfg(feature = "png")]
            Some("png") => Ok(Self::Png),
            #[cfg(not(feature = "png"))]
            Some("png") => Err(Failure::input(
                format!("{}: this program was built without PNG", out.display()),
                "end the name in .svg, or build with --features png",
            )),
            _ => Err(Failure::input(
                format!("{}: a drawing is SVG or PNG", out.display()),
                "end the name of --out in .svg or .png",
            )),
        }
    }

    #[cfg_attr(not(feature = "png"), expect(unused_variables))]
    fn write(&self, svg: &str, args: &SampleArgs, out: &Path) -> Outcome<()> {
        match self {
            Self::Svg if out == Path::new("-") => crate::screen::print_line(svg),
            Self::Svg => crate::save::write_file(out, svg.as_bytes()),
            #[cfg(feature = "png")]
            Self::Png => crate::save::write_file(out, &to_png(svg, args.size)?),
        }
    }
}

/// The drawing in pixels. It has no text elements, so no fonts are needed.
#[cfg(feature = "png")]
fn to_png(svg: &str, size: f64) -> Outcome<Vec<u8>> {
    use resvg::{tiny_skia, usvg};
    let fail =
        |what: &dyn std::fmt::Display| Failure::Other(format!("the drawing cannot be turned into pixels: {what}"));
    let tree = usvg::Tree::from_str(svg, &usvg::Options::default()).map_err(|e| fail(&e))?;
    let longer = tree.size().width().max(tree.size().height());
    let scale = size as f32 / longer;
    let side = |length: f32| (length * scale).round().max(1.0) as u32;
    let mut pixels = tiny_skia::Pixmap::new(side(tree.size().width()), side(tree.size().height()))
        .ok_or_else(|| fail(&"it is too large"))?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| fail(&e))
}
