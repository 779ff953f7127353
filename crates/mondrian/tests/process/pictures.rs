//! Pictures: every cell and cut is there, slices are restrictions, and bad requests are refused.

use mondrian::process::{Partition, Picture};
use mondrian::{Error, Lifetime};

fn sample(n_dims: usize, limit: f64, seed: u64) -> Partition {
    Partition::sample(&vec![0.0; n_dims], &vec![1.0; n_dims], Lifetime::new(limit).unwrap(), seed).unwrap()
}

fn count(svg: &str, element: &str) -> usize {
    svg.matches(element).count()
}

#[test]
fn every_cut_is_a_line_and_every_cell_a_field() {
    let partition = sample(2, 5.0, 3);
    let plain = partition.to_svg().unwrap();
    assert_eq!(count(&plain, "<line "), partition.n_cuts());
    let painted = Picture::new().paint(true).svg(&partition).unwrap();
    assert_eq!((count(&painted, "<line "), count(&painted, "<rect ")), (partition.n_cuts(), partition.n_cells()));
    // The three primaries are there, and most cells are not coloured.
    for colour in ["#c8201c", "#1c4596", "#f2c318"] {
        assert!(painted.contains(colour), "{colour}");
    }
    assert!(count(&painted, "fill=\"#f") > partition.n_cells() / 2);
    assert_eq!(painted, Picture::new().paint(true).svg(&sample(2, 5.0, 3)).unwrap());
}

#[test]
fn times_are_written_on_request() {
    let partition = sample(2, 2.0, 1);
    let first = partition.cuts().times()[0];
    let label = format!("aria-label=\"{first:.2}");
    assert!(!partition.to_svg().unwrap().contains(&label));
    assert!(Picture::new().times(true).svg(&partition).unwrap().contains(&label), "{label}");
}

#[test]
fn one_dimension_is_the_diagram_of_times() {
    let line = sample(1, 12.0, 1);
    let svg = line.to_svg().unwrap();
    assert_eq!(count(&svg, "<circle "), line.n_cuts());
    // A slice of more dimensions down to one is drawn the same way.
    let cube = sample(3, 4.0, 1);
    let slice = cube.restrict(&[0.5, 0.0, 0.5], &[0.5, 1.0, 0.5]).unwrap();
    assert_eq!(count(&slice.to_svg().unwrap(), "<circle "), slice.n_cuts());
}

#[test]
fn more_dimensions_are_shown_by_a_slice() {
    let cube = sample(4, 4.0, 2);
    let shown = Picture::new().axes(1, 3).through(&[0.2, 0.0, 0.7, 0.0]).svg(&cube).unwrap();
    let slice = cube.restrict(&[0.2, 0.0, 0.7, 0.0], &[0.2, 1.0, 0.7, 1.0]).unwrap();
    assert_eq!(shown, slice.to_svg().unwrap());
    assert_eq!(count(&shown, "<line "), slice.n_cuts());
    assert!(slice.n_cuts() > 3);
}

#[test]
fn trivial_samples_have_pictures_too() {
    for partition in [sample(1, 0.0, 0), sample(2, 0.0, 0), sample(3, 0.0, 0)] {
        for paint in [false, true] {
            assert!(Picture::new().paint(paint).times(true).svg(&partition).is_ok());
        }
    }
    let point = Partition::sample(&[1.0, 1.0], &[1.0, 1.0], Lifetime::INFINITE, 0).unwrap();
    assert!(!point.to_svg().unwrap().contains("NaN"));
}

#[test]
fn bad_requests_are_refused() {
    let cube = sample(3, 1.0, 0);
    let refused = |picture: Picture| picture.svg(&cube).unwrap_err();
    assert!(matches!(refused(Picture::new().axes(0, 3)), Error::InvalidParameter { name: "axes", value: 3.0, .. }));
    assert!(matches!(refused(Picture::new().axes(1, 1)), Error::InvalidParameter { name: "axes", .. }));
    assert!(matches!(refused(Picture::new().size(f64::NAN)), Error::InvalidParameter { name: "size", .. }));
    assert!(matches!(refused(Picture::new().through(&[0.5])), Error::LengthMismatch { expected: 3, found: 1, .. }));
    assert!(matches!(refused(Picture::new().through(&[0.5, 0.5, 1.5])), Error::NotInside { dim: 2, .. }));
}

#[test]
fn the_picture_of_the_readme_is_the_one_its_code_draws() {
    let sample = Partition::sample(&[0.0, 0.0], &[1.2, 1.0], Lifetime::new(4.5).unwrap(), 3).unwrap();
    let kept = include_str!("../../../../docs/pictures/painted.svg");
    assert_eq!(Picture::new().paint(true).svg(&sample).unwrap(), kept, "redraw with the example `picture`, seed 3");
}
