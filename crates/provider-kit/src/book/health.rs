//! Whether this provider is ready, and why not.

use std::sync::atomic::{AtomicBool, Ordering};

use bigfleet_net::readiness::Readiness;

/// Ready while it has started, can store and does not stop.
#[derive(Debug)]
pub(crate) struct Health {
    readiness: Readiness,
    stopping: AtomicBool,
}

impl Health {
    pub(crate) fn new(readiness: Readiness) -> Self {
        Self { readiness, stopping: AtomicBool::new(false) }
    }

    /// Started, or able to store again.
    pub(crate) fn well(&self) {
        if !self.is_stopping() {
            self.readiness.set_ready();
        }
    }

    /// The store fails.
    pub(crate) fn ill(&self, reason: &str) {
        if !self.is_stopping() {
            self.readiness.set_not_ready(reason);
        }
    }

    /// For good.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.readiness.set_not_ready("stopping");
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}
