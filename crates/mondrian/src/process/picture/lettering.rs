//! Letters drawn as strokes, so that a picture looks the same everywhere, with or without fonts installed.

/// A letter: its strokes on a grid where 0 is the top of a capital and 1 the line it stands on, and its width.
fn glyph(letter: char) -> (&'static str, f64) {
    match letter {
        '0' => ("M0 .3A.28 .3 0 0 1 .56 .3V.7A.28 .3 0 0 1 0 .7Z", 0.56),
        '1' => ("M.06 .2L.3 0V1", 0.42),
        '2' => ("M.02 .27A.26 .27 0 0 1 .54 .27C.54 .5 .2 .7 0 1H.56", 0.56),
        '3' => ("M.03 .17C.1 .06 .18 0 .28 0A.24 .24 0 0 1 .28 .48A.26 .26 0 0 1 .28 1C.15 1 .05 .93 0 .82", 0.54),
        '4' => ("M.43 1V0L0 .7H.58", 0.58),
        '5' => ("M.5 0H.1L.06 .45C.14 .38 .2 .36 .28 .36A.28 .32 0 0 1 .28 1C.14 1 .05 .94 0 .84", 0.56),
        '6' => ("M.47 .09C.41 .03 .35 0 .29 0C.1 0 0 .26 0 .66A.28 .34 0 1 0 .02 .55", 0.56),
        '7' => ("M0 0H.55L.2 1", 0.55),
        '8' => ("M.28 .47A.23 .235 0 1 1 .281 .47ZM.28 .47A.27 .265 0 1 0 .281 .47Z", 0.56),
        '9' => ("M.09 .91C.15 .97 .21 1 .27 1C.46 1 .56 .74 .56 .34A.28 .34 0 1 0 .54 .45", 0.56),
        '.' => ("M.06 .98V1", 0.12),
        '-' | '−' => ("M.04 .56H.42", 0.46),
        '=' => ("M.04 .44H.46M.04 .68H.46", 0.5),
        '+' => ("M.04 .56H.46M.25 .35V.77", 0.5),
        'a' => (
            "M.04 .48C.1 .41 .16 .38 .24 .38C.38 .38 .44 .46 .44 .58V1M.44 .66C.3 .64 0 .66 0 .84C0 .95 .08 1 .18 1C.32 1 .44 .9 .44 .78",
            0.46,
        ),
        'c' => ("M.46 .5C.42 .42 .35 .38 .26 .38C.1 .38 0 .52 0 .69C0 .86 .1 1 .26 1C.35 1 .42 .96 .46 .88", 0.46),
        'e' => ("M.02 .67H.48C.48 .5 .4 .38 .25 .38C.1 .38 0 .52 0 .69C0 .88 .1 1 .26 1C.36 1 .44 .95 .48 .88", 0.48),
        'i' => ("M.04 .38V1M.04 .13V.14", 0.08),
        'l' => ("M.04 0V1", 0.08),
        'm' => (
            "M0 .38V1M0 .56C.04 .42 .12 .38 .2 .38C.3 .38 .34 .44 .34 .56V1M.34 .56C.38 .42 .46 .38 .54 .38C.64 .38 .68 .44 .68 .56V1",
            0.68,
        ),
        'n' => ("M0 .38V1M0 .56C.04 .42 .14 .38 .24 .38C.36 .38 .42 .44 .42 .58V1", 0.42),
        'o' => ("M0 .69A.25 .31 0 1 1 .5 .69A.25 .31 0 1 1 0 .69Z", 0.5),
        't' => ("M.15 .12V.84C.15 .97 .22 1 .34 .98M0 .38H.32", 0.34),
        'x' => ("M0 .38L.44 1M.44 .38L0 1", 0.44),
        'λ' => ("M.02 .02C.14 0 .18 .06 .22 .16L.48 1M.27 .4L0 1", 0.48),
        _ => ("", 0.3),
    }
}

/// Space between letters, in heights of a capital.
const TRACKING: f64 = 0.2;

/// The width of a line of letters whose capitals are `size` high.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let letters: f64 = text.chars().map(|letter| glyph(letter).1 + TRACKING).sum();
    size * (letters - TRACKING).max(0.0)
}

/// The letters with their positions, from the left: strokes in units of the size, and the offset in pixels.
pub(crate) fn strokes(text: &str, size: f64) -> impl Iterator<Item = (&'static str, f64)> + '_ {
    text.chars().scan(0.0, move |x, letter| {
        let (path, advance) = glyph(letter);
        let here = *x;
        *x += size * (advance + TRACKING);
        Some((path, here))
    })
}

/// One step of a pen along a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PathStep {
    /// Move to this point, without a line.
    Move((f64, f64)),
    /// A straight line to this point.
    Line((f64, f64)),
    /// A cubic Bézier curve: two control points and the end.
    Cubic((f64, f64), (f64, f64), (f64, f64)),
    /// A straight line to where the pen was put down.
    Close,
}

impl PathStep {
    pub(crate) fn moved(self, place: impl Fn((f64, f64)) -> (f64, f64)) -> Self {
        match self {
            Self::Move(to) => Self::Move(place(to)),
            Self::Line(to) => Self::Line(place(to)),
            Self::Cubic(a, b, to) => Self::Cubic(place(a), place(b), place(to)),
            Self::Close => Self::Close,
        }
    }
}

/// The steps of a letter's path: the capital commands M, L, H, V, C, A and Z of SVG, arcs as Bézier curves.
pub(crate) fn path_steps(path: &str) -> Vec<PathStep> {
    let mut steps = Vec::new();
    let (mut pen, mut start) = ((0.0, 0.0), (0.0, 0.0));
    for (at, command) in path.char_indices().filter(|(_, c)| c.is_ascii_alphabetic()) {
        let rest = &path[at + 1..];
        let end = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let n: Vec<f64> = rest[..end].split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
        match (command, &n[..]) {
            ('M', [x, y]) => {
                (pen, start) = ((*x, *y), (*x, *y));
                steps.push(PathStep::Move(pen));
                continue;
            }
            ('L', [x, y]) => steps.push(PathStep::Line((*x, *y))),
            ('H', [x]) => steps.push(PathStep::Line((*x, pen.1))),
            ('V', [y]) => steps.push(PathStep::Line((pen.0, *y))),
            ('C', [a, b, c, d, x, y]) => steps.push(PathStep::Cubic((*a, *b), (*c, *d), (*x, *y))),
            ('A', [rx, ry, _, large, sweep, x, y]) => {
                arc(&mut steps, pen, (*rx, *ry), (*large != 0.0, *sweep != 0.0), (*x, *y));
            }
            _ => {
                debug_assert!(command == 'Z', "letters have no {command} with {} numbers", n.len());
                steps.push(PathStep::Close);
            }
        }
        pen = match steps.last() {
            Some(PathStep::Line(to) | PathStep::Cubic(_, _, to)) => *to,
            _ => start,
        };
    }
    steps
}

/// An elliptical arc by Bézier curves of at most a quarter turn (SVG's implementation notes on arcs: from ends to centre).
fn arc(steps: &mut Vec<PathStep>, from: (f64, f64), radii: (f64, f64), (large, sweep): (bool, bool), to: (f64, f64)) {
    // On the circle of radius 1 about the middle of the chord.
    let half = ((from.0 - to.0) / 2.0 / radii.0, (from.1 - to.1) / 2.0 / radii.1);
    let squared = half.0 * half.0 + half.1 * half.1;
    // Radii that are too small for the chord are enlarged.
    let grown = squared.sqrt().max(1.0);
    let (rx, ry) = (radii.0 * grown, radii.1 * grown);
    let away = (1.0 / squared - 1.0).max(0.0).sqrt() * if large == sweep { -1.0 } else { 1.0 };
    let centre = (from.0.midpoint(to.0) + rx * away * half.1, from.1.midpoint(to.1) - ry * away * half.0);
    let angle = |p: (f64, f64)| f64::atan2((p.1 - centre.1) / ry, (p.0 - centre.0) / rx);
    let first = angle(from);
    let mut turn = angle(to) - first;
    if sweep && turn <= 0.0 {
        turn += std::f64::consts::TAU;
    } else if !sweep && turn >= 0.0 {
        turn -= std::f64::consts::TAU;
    }
    let n = (turn.abs() / std::f64::consts::FRAC_PI_2 - 1e-9).ceil().max(1.0);
    let step = turn / n;
    let reach = 4.0 / 3.0 * (step / 4.0).tan();
    let place = |x: f64, y: f64| (centre.0 + rx * x, centre.1 + ry * y);
    for i in 0..n as usize {
        let (a, b) = (first + step * i as f64, first + step * (i + 1) as f64);
        let ((sa, ca), (sb, cb)) = (a.sin_cos(), b.sin_cos());
        steps.push(PathStep::Cubic(
            place(ca - reach * sa, sa + reach * ca),
            place(cb + reach * sb, sb - reach * cb),
            place(cb, sb),
        ));
    }
}

/// A number for a reader: three significant digits.
pub(crate) fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor();
    if !(-4.0..6.0).contains(&magnitude) {
        return format!("{value:.2e}");
    }
    let text = format!("{value:.*}", (2.0 - magnitude).max(0.0) as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arcs of letters go through where they must: the bowls of 0 touch the line above and the line they stand on.
    #[test]
    fn arcs_become_curves() {
        let reached = |letter: char| -> (f64, f64) {
            let ys = path_steps(glyph(letter).0).into_iter().filter_map(|step| match step {
                PathStep::Cubic(_, _, (_, y)) => Some(y),
                _ => None,
            });
            ys.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), y| (lo.min(y), hi.max(y)))
        };
        for letter in ['0', '8'] {
            let (top, bottom) = reached(letter);
            assert!(top.abs() < 0.01 && (bottom - 1.0).abs() < 0.01, "{letter}: {top} to {bottom}");
        }
        let mut quarter = Vec::new();
        arc(&mut quarter, (1.0, 0.0), (1.0, 1.0), (false, true), (0.0, 1.0));
        let [PathStep::Cubic(a, b, end)] = quarter[..] else { panic!("one curve: {quarter:?}") };
        let middle = (0.125 + 0.375 * (a.0 + b.0) + end.0 / 8.0, 0.375 * (a.1 + b.1) + end.1 / 8.0);
        assert!((middle.0.hypot(middle.1) - 1.0).abs() < 1e-3 && (middle.0 - middle.1).abs() < 1e-12);
    }

    #[test]
    fn numbers_have_three_digits() {
        let cases =
            [(0.0, "0"), (0.2345, "0.234"), (12.0, "12"), (-1.5, "-1.5"), (123_456.0, "123456"), (1e-7, "1.00e-7")];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
        assert!(number(1e300).chars().all(|letter| !glyph(letter).0.is_empty()));
    }
}
