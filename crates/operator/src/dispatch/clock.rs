use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// A point of monotonic time: how long after the clock's start.
pub type Moment = Duration;

/// Monotonic time for everything that is measured, wall time for what is written down.
///
/// Both come from one place so that a test whose clock stands still moves them together.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
    /// The wall clock at the start, where wall time is to follow the monotonic clock.
    wall: Option<Timestamp>,
}

impl Clock {
    /// The machine's clocks.
    #[must_use]
    pub fn system() -> Self {
        Self { start: Instant::now(), wall: None }
    }

    /// A wall clock that began at `wall` and goes as the runtime's clock does.
    #[must_use]
    pub fn following(wall: Timestamp) -> Self {
        Self { start: Instant::now(), wall: Some(wall) }
    }

    /// Now, for measuring.
    #[must_use]
    pub fn now(&self) -> Moment {
        self.start.elapsed()
    }

    /// Now, for writing down.
    #[must_use]
    pub fn wall(&self) -> Timestamp {
        match self.wall {
            None => Timestamp::now(),
            Some(began) => began.saturating_add(self.now()).unwrap_or(began),
        }
    }

    /// Returns at that moment.
    pub async fn sleep_until(&self, moment: Moment) {
        tokio::time::sleep_until(self.start + moment).await;
    }
}
