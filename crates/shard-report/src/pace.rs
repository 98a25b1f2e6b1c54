//! When the next report is due.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// Less than this between two reports would be a loop, whoever asks for it.
const SHORTEST: Duration = Duration::from_millis(100);
/// A shard that is silent for longer counts as expired (coordinator chapter §7).
const LONGEST_ASKED: Duration = Duration::from_secs(5 * 60);

/// A number that nobody else draws.
pub(crate) fn draw() -> u64 {
    RandomState::new().hash_one(())
}

/// The interval, a tenth more or less: shards that start together do not report
/// together.
pub(crate) fn jittered(interval: Duration, draw: u64) -> Duration {
    let share = u32::try_from(draw % 1_025).unwrap_or_default();
    (interval / 10 * 9 + interval / 5 * share / 1_024).max(SHORTEST)
}

/// What the coordinator asked for, within reason.
pub(crate) fn asked(after: Duration) -> Duration {
    after.clamp(SHORTEST, LONGEST_ASKED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_either_way() {
        let interval = Duration::from_secs(10);
        assert_eq!(jittered(interval, 0), Duration::from_secs(9));
        assert_eq!(jittered(interval, 512), interval);
        assert_eq!(jittered(interval, 1_024), Duration::from_secs(11));
        assert_ne!(jittered(interval, draw()), jittered(interval, draw()).max(interval * 2));
        assert_eq!(jittered(Duration::ZERO, 7), SHORTEST);
    }

    #[test]
    fn nobody_asks_for_a_loop_or_for_silence() {
        assert_eq!(asked(Duration::from_secs(1)), Duration::from_secs(1));
        assert_eq!(asked(Duration::from_millis(1)), SHORTEST);
        assert_eq!(asked(Duration::from_secs(u64::MAX)), LONGEST_ASKED);
    }
}
