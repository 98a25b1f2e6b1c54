//! Instants: RFC 3339, nanoseconds, UTC.

use jiff::Timestamp;

/// What stands for an instant that never was.
pub(super) const NEVER: &str = "0001-01-01T00:00:00Z";

/// Unix nanoseconds as text. All of them are within the years that can be written.
pub(super) fn text(unix_nanos: i64) -> String {
    let instant = Timestamp::from_nanosecond(unix_nanos.into()).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{instant:.9}")
}

/// Unix nanoseconds; none if it is not an instant that fits.
pub(super) fn unix_nanos(text: &str) -> Option<i64> {
    if text.is_empty() || text == NEVER {
        return Some(0);
    }
    i64::try_from(text.parse::<Timestamp>().ok()?.as_nanosecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instant_returns() {
        for nanos in [0, 1, -1, 1_700_000_000_000_000_001, i64::MAX, i64::MIN] {
            assert_eq!(unix_nanos(&text(nanos)), Some(nanos), "{}", text(nanos));
        }
        assert_eq!(text(1_500_000_000), "1970-01-01T00:00:01.500000000Z");
        assert_eq!(unix_nanos("1970-01-01T01:00:00+01:00"), Some(0));
        assert_eq!(unix_nanos(NEVER), Some(0));
        assert_eq!(unix_nanos("yesterday"), None);
        assert_eq!(unix_nanos("9999-01-01T00:00:00Z"), None);
    }
}
