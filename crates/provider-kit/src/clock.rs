//! Time of day that follows the runtime's clock, so that a test which moves the
//! one moves the other.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// Shared by all parts of one provider.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch: Duration,
    start: Instant,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self { epoch: epoch.unwrap_or_default(), start: Instant::now() }
    }

    /// Since the unix epoch.
    pub(crate) fn now(&self) -> Duration {
        self.epoch + self.start.elapsed()
    }

    /// The moment so long after a stored time; now, if that is over. Never further
    /// off than that, although the system's clock was set back in between.
    pub(crate) fn at(&self, stored: Duration, after: Duration) -> Instant {
        let left = stored.saturating_add(after).saturating_sub(self.now());
        Instant::now() + left.min(after).min(FAR)
    }
}

/// Far enough to be never, near enough to add to any instant.
pub(crate) const FAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_was_set_back_makes_nobody_wait_longer() {
        let (clock, minute) = (Clock::new(), Duration::from_secs(60));
        let left = |stored| clock.at(stored, minute) - Instant::now();
        assert_eq!(left(clock.now() - minute / 2), minute / 2);
        assert_eq!(left(clock.now() - minute * 2), Duration::ZERO);
        assert_eq!(left(clock.now() + minute * 60), minute);
        tokio::time::advance(minute).await;
        assert_eq!(left(clock.now() - minute / 2), minute / 2);
    }
}
