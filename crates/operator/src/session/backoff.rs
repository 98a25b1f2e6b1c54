//! How long to wait before the next dial.

use std::time::Duration;

use tonic::Code;

const FIRST: Duration = Duration::from_millis(500);
const LAST: Duration = Duration::from_secs(30);

/// A session that lived this long and was greeted back was a good one.
const GOOD: Duration = Duration::from_secs(60);

/// How a session ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// The shard's status, if it was the shard that ended it.
    pub(super) code: Option<Code>,
    /// Whether the greeting was answered.
    pub(super) greeted: bool,
    /// From dialling on.
    pub(super) lived: Duration,
}

/// Doubles from half a second to half a minute; a good session resets it.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: FIRST }
    }
}

impl Backoff {
    /// The time to wait after a session ended like this; `random` is of [0, 1].
    pub(super) fn after(&mut self, end: &End, random: f64) -> Duration {
        if end.greeted && end.lived >= GOOD {
            self.next = FIRST;
        }
        let wait = self.next.mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0);
        self.next = LAST.min(self.next * 2);
        match end.code {
            // Another operator has our place, or we have none: dialling at once would
            // only take turns with it.
            Some(Code::Aborted | Code::PermissionDenied) => LAST,
            _ => wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(code: Option<Code>, greeted: bool, seconds: u64) -> End {
        End { code, greeted, lived: Duration::from_secs(seconds) }
    }

    #[test]
    fn it_doubles_up_to_half_a_minute_and_a_good_session_resets_it() {
        let mut backoff = Backoff::default();
        let bad = end(None, false, 0);
        let waits: Vec<u128> = (0..8).map(|_| backoff.after(&bad, 1.0).as_millis()).collect();
        assert_eq!(waits, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        // Neither a short session nor a long one that was never greeted is a good one.
        assert_eq!(backoff.after(&end(None, true, 59), 1.0), LAST);
        assert_eq!(backoff.after(&end(None, false, 600), 1.0), LAST);
        assert_eq!(backoff.after(&end(None, true, 60), 1.0), FIRST);
        assert_eq!(backoff.after(&bad, 1.0), 2 * FIRST);
    }

    #[test]
    fn jitter_is_of_the_upper_half() {
        for (random, millis) in [(0.0, 250), (0.5, 375), (1.0, 500), (7.0, 500), (-1.0, 250)] {
            let wait = Backoff::default().after(&end(None, false, 0), random);
            assert_eq!(wait.as_millis(), millis);
        }
    }

    #[test]
    fn a_refusal_waits_the_whole_time() {
        for code in [Code::Aborted, Code::PermissionDenied] {
            assert_eq!(Backoff::default().after(&end(Some(code), true, 99), 0.0), LAST);
        }
        let other = end(Some(Code::Unavailable), false, 0);
        assert_eq!(Backoff::default().after(&other, 1.0), FIRST);
    }
}
