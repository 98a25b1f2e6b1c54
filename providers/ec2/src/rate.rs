//! The pace of calls: halved when the API throttles, raised a little by each success.
//! Without it every retry meets the same wall as the call before.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

/// Calls a second, at most and at least.
const MOST: f64 = 1000.0;
const LEAST: f64 = 0.5;
/// What one success adds.
const STEP: f64 = 0.5;

/// Shared by all calls of one endpoint.
#[derive(Debug)]
pub(crate) struct Pace {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    per_second: f64,
    /// When the next call may go.
    next: Instant,
    /// One halving a burst: many calls in flight meet the same throttle.
    halved: Instant,
}

impl Default for Pace {
    fn default() -> Self {
        let now = Instant::now();
        Self { inner: Mutex::new(Inner { per_second: MOST, next: now, halved: now }) }
    }
}

impl Pace {
    /// Waits for this call's turn.
    pub(crate) async fn turn(&self) {
        let at = {
            let mut inner = self.lock();
            let at = inner.next.max(Instant::now());
            inner.next = at + Duration::from_secs_f64(1.0 / inner.per_second);
            at
        };
        sleep_until(at).await;
    }

    /// A call was served.
    pub(crate) fn served(&self) {
        let mut inner = self.lock();
        inner.per_second = (inner.per_second + STEP).min(MOST);
    }

    /// A call was throttled.
    pub(crate) fn throttled(&self) {
        let mut inner = self.lock();
        let now = Instant::now();
        if now >= inner.halved {
            inner.per_second = (inner.per_second / 2.0).max(LEAST);
            inner.halved = now + Duration::from_secs_f64(1.0 / inner.per_second);
        }
    }

    /// Calls a second at present.
    #[cfg(test)]
    fn per_second(&self) -> f64 {
        self.lock().per_second
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn throttling_slows_down_and_success_speeds_up_again() {
        let pace = Pace::default();
        for _ in 0..20 {
            pace.throttled();
            tokio::time::advance(Duration::from_secs(5)).await;
        }
        assert_eq!(pace.per_second(), LEAST);
        let begun = Instant::now();
        pace.turn().await;
        pace.turn().await;
        assert!(begun.elapsed() >= Duration::from_secs(2), "{:?}", begun.elapsed());
        for _ in 0..10_000 {
            pace.served();
        }
        assert_eq!(pace.per_second(), MOST);
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_of_throttles_halves_once() {
        let pace = Pace::default();
        (0..50).for_each(|_| pace.throttled());
        assert_eq!(pace.per_second(), MOST / 2.0);
    }
}
