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

    /// The moment so long after a stored time; now, if that is over.
    pub(crate) fn at(&self, stored: Duration, after: Duration) -> Instant {
        let left = stored.saturating_add(after).saturating_sub(self.now());
        Instant::now() + left.min(FAR)
    }
}

/// Far enough to be never, near enough to add to any instant.
pub(crate) const FAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
