//! The wall clock: for names and for people, never for a decision.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time since 1970, as this machine believes.
pub(crate) fn since_epoch() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    #[cfg(test)]
    let now = wandering::seen(now);
    now
}

/// A wall clock that has jumped, forth or back, each time that somebody looks at it.
#[cfg(test)]
pub(crate) mod wandering {
    use std::{cell::RefCell, time::Duration};

    use crate::consensus::Entropy;

    const HOUR: Duration = Duration::from_secs(3_600);

    thread_local! {
        static JUMPS: RefCell<Option<Entropy>> = const { RefCell::new(None) };
    }

    /// From now on, on this thread.
    pub(crate) fn begin(seed: u64) {
        JUMPS.set(Some(Entropy::seeded(seed)));
    }

    pub(super) fn seen(now: Duration) -> Duration {
        let jump = JUMPS.with_borrow(|jumps| Some(jumps.as_ref()?.next() % (2 * HOUR.as_secs())));
        jump.map_or(now, |jump| now + Duration::from_secs(jump) - HOUR)
    }
}
