//! How long a workload gets to leave (engine chapter §2).

use std::time::Duration;

/// A reclaim that nobody waits for.
pub const VOLUNTARY_GRACE: Duration = Duration::from_secs(600);

/// How far a preemptor stands above its victim. 0 if the victim's priority is
/// unknown, which gives it the longest grace.
pub fn priority_gap(preemptor: i32, victim: Option<i32>) -> i64 {
    victim.map_or(0, |victim| (i64::from(preemptor) - i64::from(victim)).max(0))
}

/// The wider the gap, the shorter the grace.
pub const fn drain_grace(gap: i64) -> Duration {
    Duration::from_secs(match gap {
        900_001.. => 10,
        500_001.. => 30,
        100_001.. => 120,
        _ => 600,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grace_shrinks_with_the_gap() {
        for (gap, seconds) in [
            (0, 600),
            (100_000, 600),
            (100_001, 120),
            (500_000, 120),
            (500_001, 30),
            (900_000, 30),
            (900_001, 10),
            (i64::MAX, 10),
        ] {
            assert_eq!(drain_grace(gap).as_secs(), seconds, "gap {gap}");
        }
    }

    #[test]
    fn the_gap_does_not_overflow() {
        assert_eq!(priority_gap(i32::MAX, Some(i32::MIN)), i64::from(u32::MAX));
        assert_eq!(priority_gap(i32::MIN, Some(i32::MAX)), 0);
        assert_eq!(priority_gap(1_000_000, None), 0);
    }
}
