//! Dates as numbers: days since 1970-01-01, in Coordinated Universal Time where a time of day is given.

/// Milliseconds, microseconds or nanoseconds per day are multiples of this.
pub(crate) const SECONDS_PER_DAY: f64 = 86_400.0;

/// The days of a date in ISO 8601 form: `2024-02-29`, and with a time of day `2024-02-29T18:30:05.25+01:00` (a space
/// for the `T`, `Z` or nothing for the offset, no seconds). `None` for anything else.
pub(crate) fn days(text: &str) -> Option<f64> {
    let (date, rest) = text.split_at_checked(10)?;
    let mut parts = date.splitn(3, '-');
    let (year, month, day) = (digits(parts.next()?, 4)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    let day = day_number(year, month, day) as f64;
    if rest.is_empty() {
        return Some(day);
    }
    Some(day + seconds(rest.strip_prefix(['T', ' '])?)? / SECONDS_PER_DAY)
}

/// The date of a number of days, with the time of day where it is not midnight.
pub(crate) fn iso(days: f64) -> String {
    // Beyond the years with four digits of ISO 8601.
    if !(-719_528.0..2_932_897.0).contains(&days) {
        return format!("{days} days");
    }
    // To the nearest second: a double holds no more than microseconds here anyway.
    let seconds = (days * SECONDS_PER_DAY).round() as i64;
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, date) = civil(day);
    let text = format!("{year:04}-{month:02}-{date:02}");
    if second == 0 {
        return text;
    }
    format!("{text} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// The seconds since midnight, in universal time.
fn seconds(text: &str) -> Option<f64> {
    let offset_at = text.find(['Z', 'z', '+', '-']).unwrap_or(text.len());
    let (time, offset) = text.split_at(offset_at);
    let mut parts = time.splitn(3, ':');
    let (hour, minute) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let second: f64 = match parts.next() {
        None => 0.0,
        Some(part) if part.len() >= 2 && part.bytes().all(|b| b.is_ascii_digit() || b == b'.') => part.parse().ok()?,
        Some(_) => return None,
    };
    if hour > 24 || minute > 59 || !(0.0..61.0).contains(&second) {
        return None;
    }
    let east = match offset.as_bytes().first() {
        None => 0,
        Some(b'Z' | b'z') => (offset.len() == 1).then_some(0)?,
        Some(sign) => {
            let plain = offset[1..].replace(':', "");
            let (hours, minutes) = (plain.get(..2)?, plain.get(2..).filter(|m| !m.is_empty()).unwrap_or("00"));
            let minutes = 60 * digits(hours, 2)? + digits(minutes, 2)?;
            if *sign == b'-' { -minutes } else { minutes }
        }
    };
    Some((3600 * hour + 60 * minute - 60 * east) as f64 + second)
}

fn digits(text: &str, n: usize) -> Option<i64> {
    (text.len() == n && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the Gregorian calendar: years begin in March, so that the leap day is the last of a year.
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, month) = (year.div_euclid(400), (month + 9) % 12);
    let in_era = year.rem_euclid(400);
    let in_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719_468
}

/// Year, month and day of a day number; the inverse of [`day_number`].
fn civil(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let (era, in_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year + year / 4 - year / 100);
    let month = (5 * in_year + 2) / 153;
    let date = in_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_days() {
        for (text, expected) in [
            ("1970-01-01", Some(0.0)),
            ("1969-12-31", Some(-1.0)),
            ("2000-03-01", Some(11_017.0)),
            ("2024-02-29 06:00", Some(19_782.25)),
            ("2024-02-29T06:00:00Z", Some(19_782.25)),
            ("2024-02-29T06:00:00.000+06:00", Some(19_782.0)),
            ("2024-02-28T18:00:00-0600", Some(19_782.0)),
            ("2023-02-29", None),
            ("2024-13-01", None),
            ("24-01-01", None),
            ("2024-1-1", None),
            ("2024-02-29 25:00", None),
            ("2024-02-29x", None),
            ("", None),
            ("äääääääääää", None),
        ] {
            assert_eq!(days(text), expected, "{text}");
        }
    }

    #[test]
    fn days_are_dates() {
        for day in (-719_528..2_932_897).step_by(997) {
            assert_eq!(days(&iso(f64::from(day))), Some(f64::from(day)), "{}", iso(f64::from(day)));
        }
        assert_eq!(
            [iso(19_782.25), iso(-0.5), iso(1e9)],
            ["2024-02-29 06:00:00", "1969-12-31 12:00:00", "1000000000 days"]
        );
    }
}
