//! How many mutations may be under way at the provider (§7).

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

/// One more is tried after so long without a sign of overload.
const RECOVERY: Duration = Duration::from_secs(10);

/// Halves when the provider has too much, and grows back slowly.
pub(crate) struct Limit {
    most: usize,
    state: Mutex<State>,
    freed: Notify,
}

struct State {
    allowed: usize,
    used: usize,
    /// Since when nothing changed the number allowed.
    since: Instant,
}

impl Limit {
    pub(crate) fn new(most: usize) -> Self {
        let most = most.max(1);
        let state = State { allowed: most, used: 0, since: Instant::now() };
        Self { most, state: Mutex::new(state), freed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place; it is free again when the answer is dropped.
    pub(crate) async fn acquire(&self) -> Permit<'_> {
        loop {
            let freed = self.freed.notified();
            {
                let mut state = self.lock();
                state.recover(self.most);
                if state.used < state.allowed {
                    state.used += 1;
                    return Permit(self);
                }
            }
            // Growth comes with time, not with a call.
            tokio::select! {
                () = freed => {}
                () = tokio::time::sleep(RECOVERY) => {}
            }
        }
    }

    /// The provider said that it has too much, or said nothing.
    pub(crate) fn overloaded(&self) {
        let mut state = self.lock();
        state.recover(self.most);
        state.allowed = (state.allowed / 2).max(1);
        state.since = Instant::now();
    }

    #[cfg(test)]
    fn allowed(&self) -> usize {
        let mut state = self.lock();
        state.recover(self.most);
        state.allowed
    }
}

impl State {
    fn recover(&mut self, most: usize) {
        let steps = self.since.elapsed().as_secs() / RECOVERY.as_secs();
        if steps > 0 {
            self.allowed = self.allowed.saturating_add(steps as usize).min(most);
            self.since += RECOVERY * u32::try_from(steps).unwrap_or(u32::MAX);
        }
    }
}

/// A place among the calls under way.
pub(crate) struct Permit<'a>(&'a Limit);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.lock().used -= 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn halves_and_grows_back_by_one() {
        let limit = Limit::new(16);
        limit.overloaded();
        assert_eq!(limit.allowed(), 8);
        (0..10).for_each(|_| limit.overloaded());
        assert_eq!(limit.allowed(), 1, "never none");
        tokio::time::advance(Duration::from_secs(25)).await;
        assert_eq!(limit.allowed(), 3);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(limit.allowed(), 4);
        tokio::time::advance(Duration::from_secs(1000)).await;
        assert_eq!(limit.allowed(), 16, "never more than asked for");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_finds_no_place_waits_for_one() {
        let limit = Limit::new(1);
        let first = limit.acquire().await;
        let second = limit.acquire();
        tokio::pin!(second);
        assert!(futures_util::poll!(&mut second).is_pending());
        drop(first);
        second.await;
    }
}
