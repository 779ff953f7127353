//! Samples drawn from the command line.

use crate::harness::Place;

#[test]
fn a_picture_of_a_sample() {
    let place = Place::new();
    place.run("sample --lower 0,0 --upper 1,1 --lifetime 5 --seed 1 --out picture.svg").matches("sample");
    let svg = place.read("picture.svg");
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    let piped = place.run("sample --lower 0,0 --upper 1,1 --lifetime 5 --seed 1 --out - --quiet");
    assert_eq!(piped.succeeded().stdout.trim_end(), svg.trim_end());
    for options in ["--paint", "--times", "--size 300", "--weights 1,3"] {
        let ran = place.run(&format!("sample --lower 0,0 --upper 1,1 --lifetime 5 --seed 1 --out other.svg {options}"));
        ran.succeeded();
        assert_ne!(place.read("other.svg"), svg, "{options} changes the picture");
    }
    let slice = "sample --lower=-1,0,0 --upper 1,1,1 --lifetime 3 --axes 0,2 --through=-0.5,0.5,0.5 --out s.svg";
    place.run(slice).succeeded();
    let told = place.run("sample --lower 0,0 --upper 1,1 --lifetime 5 --seed 1 --json --quiet").succeeded().json();
    assert_eq!(told["n_cells"].as_u64(), told["n_cuts"].as_u64().map(|n| n + 1));
    assert_eq!(told["cuts"].as_array().map(Vec::len), told["n_cuts"].as_u64().map(|n| n as usize));
}

#[test]
fn samples_that_cannot_be() {
    let place = Place::new();
    let cases = [
        ("--lower 0,0 --upper 1 --lifetime 1", "--lower has 2 numbers"),
        ("--lower 0,2 --upper 1,1 --lifetime 1", "lower bound 2 is above upper bound 1"),
        ("--lower 0,0 --upper 1,1 --lifetime=-1", "--lifetime"),
        ("--lower 0,0 --upper 1,1 --lifetime inf", "finite"),
        ("--lower 0,0 --upper 1,nan --lifetime 1", "NaN"),
        ("--lower 0,0 --upper 1e9,1e9 --lifetime 1e9", "more than the limit"),
        ("--lower 0,0 --upper 1,1 --lifetime 1 --out picture.gif", "SVG or PNG"),
        ("--lower 0,0 --upper 1,1 --lifetime 1 --axes 0 --out p.svg", "two dimensions"),
        ("--lower 0,0 --upper 1,1 --lifetime 1 --axes 0,7 --out p.svg", "axes"),
        ("--lower 0,0 --upper 1,1 --lifetime 1 --weights 1 --out p.svg", "--weights has 1 numbers"),
        ("--lower 0,0 --upper 1,1 --lifetime 1 --out nowhere/p.svg", "folder does not exist"),
    ];
    for (arguments, what) in cases {
        place.run(&format!("sample {arguments}")).refused(2, &[what]);
    }
    assert!(place.files().is_empty(), "nothing is left behind");
}

/// The same drawings in pixels: of the size asked for, with letters and colours in them.
#[test]
fn pixels() {
    let place = Place::new();
    let draw = |name: &str, arguments: &str| {
        place.run(&format!("sample --lifetime 5 --seed 1 --size 360 --out {name} {arguments}")).succeeded();
        let png = tiny_skia::Pixmap::load_png(place.path(name)).expect("a PNG file");
        assert_eq!(png.width().max(png.height()), 360, "{arguments}");
        png
    };
    let dark = |png: &tiny_skia::Pixmap| png.pixels().iter().filter(|p| p.green() < 128).count();
    let plane = "--lower 0,0 --upper 2,1";
    let (lines, times) = (draw("lines.png", plane), draw("times.PNG", &format!("{plane} --times")));
    assert!(dark(&lines) > 2000, "a frame and cuts");
    assert_ne!(lines.data(), times.data(), "birth times are drawn");
    let red = |p: &tiny_skia::PremultipliedColorU8| p.red() > 150 && p.green() < 60;
    let painted = draw("painted.png", &format!("{plane} --paint"));
    assert!(painted.pixels().iter().any(red), "there is a red field");
    let line = draw("line.png", "--lower 0 --upper 1 --times");
    assert!(line.pixels().iter().any(red), "cuts are red dots");
    draw("slice.png", "--lower=-1,0,0 --upper 1,1,1 --axes 0,2 --through=-0.5,0.5,0.5 --times");
    let huge = "sample --lower 0,0 --upper 1,1 --lifetime 1 --size 100000 --out huge.png";
    place.run(huge).refused(2, &["100000 by 100000 pixels are too many", "--size"]);
}

#[test]
fn man_pages_and_completions_come_from_the_same_definitions() {
    let place = Place::new();
    let page = place.run("man").succeeded().stdout.clone();
    assert!(page.contains("mondrian\\-sample(1)"));
    assert!(place.run("man sample").succeeded().stdout.contains("picture.svg"));
    place.run("man nothing").refused(2, &["no command \"nothing\""]);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(place.run(&format!("completions {shell}")).succeeded().stdout.contains("lifetime"), "{shell}");
    }
    for command in ["", "tour", "sample", "fit", "predict", "describe", "inspect", "completions", "man"] {
        let help = place.run(&format!("{command} --help")).succeeded().stdout.clone();
        assert!(help.contains("Usage: mondrian"), "{command}");
        assert!(command.is_empty() || help.contains("Example"), "{command} has an example");
    }
}
