//! Instants and ages as people read them.

use jiff::Timestamp;

/// In nanoseconds.
pub const SECOND: i64 = 1_000_000_000;

/// Soft state that is older is stale (experience chapter §1); the coordinator takes a
/// shard that has not reported for so long for lost.
pub const STALE: i64 = 30 * SECOND;

/// RFC 3339 in UTC, to the second; `—` for zero.
pub fn instant(unix_nanos: i64) -> String {
    exact(unix_nanos / SECOND * SECOND).unwrap_or_else(|| "—".to_owned())
}

/// RFC 3339 in UTC, as exact as it came; nothing for zero.
pub fn exact(unix_nanos: i64) -> Option<String> {
    let timestamp = Timestamp::from_nanosecond(unix_nanos.into()).ok()?;
    (unix_nanos != 0).then(|| timestamp.to_string())
}

/// Now, in unix nanoseconds.
pub fn now() -> i64 {
    i64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX)
}

/// How long ago: `12s`, `5m`, `3h`, `2d`; `—` for zero. What is ahead of our clock is
/// now.
pub fn age(now: i64, unix_nanos: i64) -> String {
    if unix_nanos == 0 { "—".to_owned() } else { span(now.saturating_sub(unix_nanos)) }
}

/// A length of time in its largest unit.
pub fn span(nanos: i64) -> String {
    let seconds = nanos.max(0) / SECOND;
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_utc_to_the_second() {
        assert_eq!(instant(1_700_000_000 * SECOND + 5), "2023-11-14T22:13:20Z");
        assert_eq!(exact(1_700_000_000 * SECOND + 5).unwrap(), "2023-11-14T22:13:20.000000005Z");
        assert_eq!((instant(0).as_str(), exact(0)), ("—", None));
    }

    #[test]
    fn ages_have_one_unit() {
        let now = 1_700_000_000 * SECOND;
        for (seconds, text) in
            [(0, "0s"), (119, "119s"), (120, "2m"), (7_200, "2h"), (172_800, "2d"), (-5, "0s")]
        {
            assert_eq!(age(now, now - seconds * SECOND), text);
        }
        assert_eq!(age(now, 0), "—");
    }
}
