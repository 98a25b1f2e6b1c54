//! Join tokens, minted ahead of time.
//!
//! A rendering never waits: it takes a token that is ready, or fails. The rules
//! are in [`Core`], which knows no API server and no clock; [`Pool`] shares it
//! between renderings and [`mint`], which keeps it filled.

mod core;
pub mod mint;
mod token;

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

pub use self::core::{Core, Plan};
pub use token::Token;

/// Tokens that are ready. Taking one waits for nothing.
pub struct Pool {
    core: Mutex<Core>,
    started: Instant,
    /// Something was taken, so something may have to be minted.
    changed: Notify,
}

impl Pool {
    /// `size` tokens for blobs that live for `ttl`.
    #[must_use]
    pub fn new(size: usize, ttl: Duration) -> Self {
        Self {
            core: Mutex::new(Core::new(size, ttl)),
            started: Instant::now(),
            changed: Notify::new(),
        }
    }

    /// A token that nobody else gets; none if none is ready.
    pub fn take(&self) -> Option<Token> {
        let token = self.lock().take(self.now());
        self.changed.notify_one();
        token
    }

    /// Returns a token that was shown to nobody.
    pub fn give_back(&self, token: Token) {
        self.lock().give_back(token);
        self.changed.notify_one();
    }

    /// Tokens that could be taken now.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.lock().ready(self.now())
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("ready", &self.ready()).finish_non_exhaustive()
    }
}
