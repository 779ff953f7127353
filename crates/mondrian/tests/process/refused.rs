//! Bad input: typed errors that carry the values.

use mondrian::process::{Bounds, BuiltInMeasure, InfiniteMondrian, Mondrian, NodeKey, Partition, Weights, poisson};
use mondrian::{Error, Lifetime, Points};

fn square() -> Partition {
    Partition::sample(&[0.0, 0.0], &[1.0, 1.0], Lifetime::new(2.0).unwrap(), 0).unwrap()
}

fn not_inside(dim: usize, inner: (f64, f64), outer: (f64, f64)) -> Error {
    Error::NotInside { dim, inner_lower: inner.0, inner_upper: inner.1, outer_lower: outer.0, outer_upper: outer.1 }
}

#[test]
fn boxes_and_lifetimes() {
    let one = Lifetime::new(1.0).unwrap();
    assert_eq!(
        Partition::sample(&[0.0, 3.0], &[1.0, 2.0], one, 0).unwrap_err(),
        Error::InvertedBox { dim: 1, lower: 3.0, upper: 2.0 }
    );
    assert!(matches!(Partition::sample(&[f64::NAN], &[1.0], one, 0), Err(Error::NotFinite { what: "lower", .. })));
    assert!(matches!(Partition::sample(&[0.0], &[f64::INFINITY], one, 0), Err(Error::NotFinite { what: "upper", .. })));
    assert!(matches!(Partition::sample(&[], &[], one, 0), Err(Error::Empty { .. })));
    assert!(matches!(Lifetime::new(-1.0), Err(Error::InvalidParameter { value: -1.0, .. })));
    assert!(Lifetime::new(f64::NAN).is_err());
    assert!(matches!(poisson(2.0, 1.0, one, 0, BuiltInMeasure::Uniform), Err(Error::InvertedBox { .. })));
    assert!(matches!(InfiniteMondrian::new(0, one, 0), Err(Error::Empty { .. })));
}

#[test]
fn an_absurd_size_is_refused_with_the_expected_number() {
    let ten = Lifetime::new(10.0).unwrap();
    let refused = Partition::sample(&[0.0; 10], &[1.0; 10], ten, 0).unwrap_err();
    assert_eq!(refused, Error::TooLarge { what: "cells of the partition", expected: 11_f64.powi(10), limit: 5e7 });
    assert!(refused.to_string().contains("2.594e10"), "{refused}");
    let endless = Partition::sample(&[0.0], &[1.0], Lifetime::INFINITE, 0).unwrap_err();
    assert!(matches!(endless, Error::TooLarge { expected: f64::INFINITY, .. }));
    let far = InfiniteMondrian::new(1, ten, 0).unwrap();
    assert!(matches!(far.restrict(&[1e300], &[1e300]), Err(Error::TooLarge { .. })));
    let wide = InfiniteMondrian::new(usize::MAX, ten, 0).unwrap();
    assert!(matches!(wide.restrict(&[0.0], &[1.0]), Err(Error::LengthMismatch { expected: usize::MAX, found: 1, .. })));
}

#[test]
fn windows_extensions_and_points_in_the_wrong_place() {
    let square = square();
    assert_eq!(square.restrict(&[0.0, 0.5], &[1.0, 1.5]).unwrap_err(), not_inside(1, (0.5, 1.5), (0.0, 1.0)));
    assert_eq!(square.extend(&[0.5, 0.0], &[2.0, 2.0], None).unwrap_err(), not_inside(0, (0.0, 1.0), (0.5, 2.0)));
    assert!(matches!(square.restrict(&[0.0], &[1.0]), Err(Error::LengthMismatch { expected: 2, found: 1, .. })));
    let outside = [0.5, 0.5, 0.5, 1.5];
    let points = Points::row_major(&outside, 2).unwrap();
    assert_eq!(square.cell_of(points).unwrap_err(), not_inside(1, (1.5, 1.5), (0.0, 1.0)));
    assert!(matches!(square.cell_of(Points::row_major(&outside, 4).unwrap()), Err(Error::LengthMismatch { .. })));
    assert!(matches!(square.crossings(&[0.5, f64::NAN], 0), Err(Error::NotInside { dim: 1, .. })));
    assert!(matches!(square.crossings(&[0.5, 0.5], 2), Err(Error::InvalidParameter { name: "dim", .. })));
    assert!(matches!(square.crossings(&[0.5], 0), Err(Error::LengthMismatch { .. })));
    let late = Lifetime::new(2.5).unwrap();
    assert!(matches!(square.at(late), Err(Error::InvalidParameter { name: "time", value: 2.5, .. })));
    let weights = BuiltInMeasure::Weighted(Weights::new(vec![1.0]).unwrap());
    let bounds = Bounds::new(&[0.0, 0.0], &[1.0, 1.0]).unwrap();
    assert!(matches!(
        Mondrian::with_measure(bounds, weights, NodeKey::root(0, 0)),
        Err(Error::LengthMismatch { expected: 1, found: 2, .. })
    ));
}

#[test]
fn one_sample_is_not_extended_for_ever() {
    let mut process = Mondrian::new(Bounds::new(&[0.0], &[1.0]).unwrap(), NodeKey::root(0, 0));
    for step in 1..=64 {
        process = process.extend(Bounds::new(&[0.0], &[1.0 + f64::from(step)]).unwrap(), None).unwrap();
    }
    assert!(process.until(Lifetime::new(3.0).unwrap()).unwrap().n_cuts() > 100);
    let refused = process.extend(Bounds::new(&[0.0], &[100.0]).unwrap(), None).unwrap_err();
    assert_eq!(refused, Error::TooLarge { what: "extensions of one sample", expected: 65.0, limit: 64.0 });
}

#[test]
fn a_tampered_file_is_refused() {
    let saved = serde_json::to_string(&square()).unwrap();
    let load = |text: &str| serde_json::from_str::<Partition>(text);
    assert!(load(&saved).is_ok());
    for (from, to) in [
        (r#""lifetime":2.0"#, r#""lifetime":-2.0"#),
        (r#""lifetime":2.0"#, r#""lifetime":1e9"#),
        (r#""bounds":[[0.0,0.0],[1.0,1.0]]"#, r#""bounds":[[0.0,0.0],[1.0,2.0]]"#),
        (r#""boxes":[[[0.0,0.0],[1.0,1.0]]]"#, r#""boxes":[]"#),
        (r#""boxes":[[[0.0,0.0],[1.0,1.0]]]"#, r#""boxes":[[[0.0,0.0],[1.0,1.0]],[[0.5,0.5],[1.0,1.0]]]"#),
        (r#""layers":[]"#, r#""layers":[{"restricted":{"window":[[0.0,0.0],[2.0,1.0]]}}]"#),
        (r#""uniform""#, r#"{"weighted":[1.0]}"#),
    ] {
        let tampered = saved.replace(from, to);
        assert_ne!(tampered, saved, "{from} is not in {saved}");
        assert!(load(&tampered).is_err(), "{tampered}");
    }
}
