//! Clocks: every answer shows that of its server, to the second.

use jiff::fmt::rfc2822::DateTimeParser;

use super::finding::Findings;
use crate::when;

/// More than the rounding and a slow answer explain, in seconds.
const MOST: i64 = 5;

/// Compares the date of an answer with our clock.
pub(super) fn check(target: &str, date: Option<&str>, findings: &mut Findings) {
    let Some(skew) = date.and_then(|date| skew(date, when::now())) else { return };
    if skew.abs() > MOST {
        let way = if skew > 0 { "ahead of" } else { "behind" };
        findings.fault(
            "clock",
            target,
            format!("its clock is {}s {way} ours", skew.abs()),
            "let both machines follow a time server (chrony, ntpd) and compare `date -u`",
        );
    } else {
        findings.ok("clock", target, format!("within {MOST}s of ours"));
    }
}

/// By how many seconds a date is ahead.
fn skew(date: &str, now: i64) -> Option<i64> {
    let theirs = DateTimeParser::new().parse_timestamp(date).ok()?;
    Some(theirs.as_second() - now / when::SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_http_are_read() {
        let now = 784_111_777 * 1_000_000_000;
        assert_eq!(skew("Sun, 06 Nov 1994 08:49:37 GMT", now), Some(0));
        assert_eq!(skew("Sun, 06 Nov 1994 08:49:07 GMT", now), Some(-30));
        assert_eq!(skew("yesterday", now), None);
    }
}
