//! The two clocks: one that never jumps, for everything that is decided or
//! waited for, and the wall's, for what people and peers read.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use bigfleet_engine::Time;
use tokio::time::Instant;

/// The shard's clocks.
#[derive(Debug)]
pub(crate) struct Clock {
    started: Instant,
    skew: AtomicI64,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { started: Instant::now(), skew: AtomicI64::new(0) }
    }

    /// When the process began.
    pub(crate) const fn started(&self) -> Instant {
        self.started
    }

    /// The engine's time: nanoseconds of a clock that never jumps.
    pub(crate) fn now(&self) -> Time {
        self.time_of(Instant::now())
    }

    /// Another instant on the engine's clock.
    pub(crate) fn time_of(&self, instant: Instant) -> Time {
        Time::default().after(instant.saturating_duration_since(self.started))
    }

    /// The instant of a time on the engine's clock.
    pub(crate) fn instant_of(&self, time: Time) -> Instant {
        self.started + time.since(Time::default())
    }

    /// Unix nanoseconds.
    pub(crate) fn wall(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let nanos = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
        nanos.saturating_add(self.skew.load(Ordering::Relaxed))
    }

    /// Unix nanoseconds of an instant, by today's wall clock.
    pub(crate) fn wall_of(&self, instant: Instant) -> i64 {
        let nanos = |span: std::time::Duration| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
        let now = Instant::now();
        self.wall()
            .saturating_add(nanos(instant.saturating_duration_since(now)))
            .saturating_sub(nanos(now.saturating_duration_since(instant)))
    }

    /// The wall's clock jumps; for tests.
    pub(crate) fn skew_wall(&self, nanos: i64) {
        self.skew.fetch_add(nanos, Ordering::Relaxed);
    }
}
