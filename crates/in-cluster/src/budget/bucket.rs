use std::time::Duration;

use tokio::time::Instant;

use super::Lane;

/// Tokens as time: one is worth a period, and those at hand are the periods since `spent`.
#[derive(Debug)]
pub(super) struct Bucket {
    /// Time between two tokens; none without a limit.
    period: Duration,
    burst: u32,
    /// The part of the burst that later lanes leave alone.
    reserve: u32,
    /// The moment up to which all tokens were taken.
    spent: Instant,
    paused_until: Option<Instant>,
}

impl Bucket {
    /// Full at the start.
    pub(super) fn new(qps: u32, burst: u32, now: Instant) -> Self {
        let period = Duration::from_secs(1).checked_div(qps).unwrap_or(Duration::ZERO);
        let filled = period * burst;
        Self {
            period,
            burst,
            reserve: burst / 5,
            // A clock younger than the burst: start empty rather than not at all.
            spent: now.checked_sub(filled).unwrap_or(now),
            paused_until: None,
        }
    }

    /// Takes a token for a lane, if one is there for it.
    pub(super) fn take(&mut self, lane: Lane, now: Instant) -> bool {
        let full_since = now.checked_sub(self.period * self.burst).unwrap_or(self.spent);
        self.spent = self.spent.max(full_since);
        let ready = self.ready_at(lane, now) <= now;
        if ready {
            self.spent += self.period;
        }
        ready
    }

    /// When a token for this lane will be there, if nobody else takes it.
    pub(super) fn ready_at(&self, lane: Lane, now: Instant) -> Instant {
        let tokens = if lane.yields() { self.reserve + 1 } else { 1 };
        let filled = self.spent + self.period * tokens;
        match self.paused_until {
            Some(until) if lane != Lane::Lease && until > now => filled.max(until),
            _ => filled,
        }
    }

    pub(super) fn pause(&mut self, until: Instant) {
        self.paused_until = Some(self.paused_until.map_or(until, |earlier| earlier.max(until)));
    }
}
