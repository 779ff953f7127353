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

/// Room between letters, in heights of a capital.
const TRACKING: f64 = 0.2;

/// The width of a line of letters whose capitals are `size` high.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let letters: f64 = text.chars().map(|letter| glyph(letter).1 + TRACKING).sum();
    size * (letters - TRACKING).max(0.0)
}

/// The letters with their places, from the left: strokes in units of the size, and the offset in pixels.
pub(super) fn strokes(text: &str, size: f64) -> impl Iterator<Item = (&'static str, f64)> + '_ {
    text.chars().scan(0.0, move |x, letter| {
        let (path, advance) = glyph(letter);
        let here = *x;
        *x += size * (advance + TRACKING);
        Some((path, here))
    })
}

/// A number for a reader: three significant digits.
pub(super) fn number(value: f64) -> String {
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
