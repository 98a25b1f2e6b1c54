//! Durations as flags write them: `10s`, `5m`, `500ms`, `1h30m`.

use std::time::Duration;

const UNITS: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Reads a duration; use it as clap's `value_parser`.
///
/// Whole numbers with a unit, largest unit first, each at most once. `0`
/// needs no unit. Any other bare number is refused: nobody can tell whether
/// `10` means seconds or minutes.
pub fn parse(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let invalid = || format!("{text:?} is not a duration; write for example 10s, 5m or 1h30m");
    let mut rest = text;
    let mut units = UNITS.iter();
    let mut nanos: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest.split_at(digits);
        let letters = tail.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, tail) = tail.split_at(letters);
        if unit.is_empty() && tail.is_empty() && !number.is_empty() {
            return Err(format!("{text:?} needs a unit; write for example {number}s or {number}m"));
        }
        let number: u64 = number.parse().map_err(|_| invalid())?;
        let (_, factor) = units.find(|(name, _)| *name == unit).ok_or_else(invalid)?;
        nanos = number
            .checked_mul(*factor)
            .and_then(|part| nanos.checked_add(part))
            .ok_or_else(|| format!("{text:?} is too long a time"))?;
        rest = tail;
    }
    if text.is_empty() { Err(invalid()) } else { Ok(Duration::from_nanos(nanos)) }
}

/// Writes a duration so that [`parse`] reads it back.
#[must_use]
pub fn format(duration: Duration) -> String {
    let mut rest = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (unit, factor) in UNITS {
        if rest >= factor {
            text.push_str(&format!("{}{unit}", rest / factor));
            rest %= factor;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes() {
        for (text, millis) in [
            ("0s", 0),
            ("500ms", 500),
            ("10s", 10_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("1d2h3m4s5ms", 93_784_005),
        ] {
            let duration = Duration::from_millis(millis);
            assert_eq!(parse(text), Ok(duration), "{text}");
            assert_eq!(format(duration), text);
        }
        assert_eq!(parse("0"), Ok(Duration::ZERO));
        assert_eq!(parse("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("7us3ns"), Ok(Duration::from_nanos(7_003)));
    }

    #[test]
    fn bare_number_says_what_to_write() {
        assert_eq!(parse("10").unwrap_err(), "\"10\" needs a unit; write for example 10s or 10m");
        assert!(parse("1h30").unwrap_err().contains("needs a unit"));
    }

    #[test]
    fn refuses_the_rest() {
        for text in ["", "s", "ms", "-5s", "1.5h", "10 s", "10s ", "5x", "1m1h", "1s1s", "1M", "é"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("99999999999h").unwrap_err().contains("too long"));
        assert!(parse("99999999999999999999s").is_err());
    }
}
