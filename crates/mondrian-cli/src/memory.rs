//! The memory limit: `--max-memory`, or a share of the free memory.

/// Share of the memory that is free when the program starts.
const SHARE: f64 = 0.8;

/// Bytes of a size such as `8GB`, `512 MiB` or `1000000`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
    let unit = match text[digits.len()..].trim().trim_end_matches('b') {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        "ki" => 1024.0,
        "mi" => 1024.0 * 1024.0,
        "gi" => 1024.0 * 1024.0 * 1024.0,
        "ti" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return Err("a size is a number of bytes, or a text such as 8GB or 512MiB".to_owned()),
    };
    match digits.parse::<f64>() {
        Ok(number) if number > 0.0 && number * unit < 2.0_f64.powi(63) => Ok((number * unit) as u64),
        _ => Err("a size is a number of bytes above 0, or a text such as 8GB or 512MiB".to_owned()),
    }
}

/// Four fifths of the free memory, if the system reports it.
pub(crate) fn share_of_free() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let free = line.trim().trim_end_matches("kB").trim().parse::<f64>().ok()? * 1024.0;
    // A limit on this process alone.
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"));
    let own = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    Some((SHARE * free.min(own.unwrap_or(f64::INFINITY))) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_nonsense_is_refused() {
        assert_eq!(size("8GB"), Ok(8_000_000_000));
        assert_eq!(size(" 512 MiB "), Ok(512 << 20));
        assert_eq!(size("1000"), Ok(1000));
        assert!(["", "GB", "-1GB", "8XB", "inf", "nan", "1e40"].iter().all(|text| size(text).is_err()));
    }
}
