//! Whether the shard is still there.
//!
//! HTTP/2 pings prove a connection and not a shard, and default servers punish them;
//! a Hello is legal at any time and always answered.

use std::time::Duration;

use tokio::time::Instant;

/// Nothing received for this long: ask.
const ASK: Duration = Duration::from_secs(20);

/// Nothing received for this long: gone.
const GONE: Duration = Duration::from_secs(60);

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing before this instant.
    Wait(Instant),
    /// Another Hello.
    Ask,
    /// The end.
    GiveUp,
}

/// When something was received, and when it was asked for.
#[derive(Debug)]
pub(super) struct Liveness {
    received: Instant,
    asked: Instant,
}

impl Liveness {
    /// From dialling on.
    pub(super) const fn new(now: Instant) -> Self {
        Self { received: now, asked: now }
    }

    /// A frame came.
    pub(super) fn received(&mut self, now: Instant) {
        self.received = now;
    }

    /// What is due. Asking is due once in each time of silence.
    pub(super) fn due(&mut self, now: Instant) -> Due {
        let gone = self.received + GONE;
        if now >= gone {
            return Due::GiveUp;
        }
        let ask = self.received.max(self.asked) + ASK;
        if now >= ask {
            self.asked = now;
            return Due::Ask;
        }
        Due::Wait(ask.min(gone))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_asked_about_and_then_given_up() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut liveness = Liveness::new(start);
        assert_eq!(liveness.due(at(19)), Due::Wait(at(20)));
        assert_eq!(liveness.due(at(20)), Due::Ask);
        assert_eq!(liveness.due(at(20)), Due::Wait(at(40)));
        liveness.received(at(21));
        assert_eq!(liveness.due(at(40)), Due::Wait(at(41)));
        assert_eq!(liveness.due(at(41)), Due::Ask);
        assert_eq!(liveness.due(at(61)), Due::Ask);
        assert_eq!(liveness.due(at(80)), Due::Wait(at(81)));
        assert_eq!(liveness.due(at(81)), Due::GiveUp);
    }
}
