//! The latch of a process that has a successor (shard chapter §11).
//!
//! Whether a refusal proves a successor is decided elsewhere; here is what
//! follows from the proof. There is no way back: a restart would take a higher
//! epoch and fence the rightful successor, so a human decides.

use std::sync::{Mutex, OnceLock, PoisonError};

use bigfleet_net::readiness::Readiness;
use prometheus_client::metrics::{counter::Counter, gauge::Gauge};
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

/// Whether this process is fenced, and the only hand on its readiness.
#[derive(Debug)]
pub struct Fence {
    reason: OnceLock<String>,
    latched: CancellationToken,
    readiness: Readiness,
    /// Taken around changes of readiness: *fenced* must have the last word.
    turn: Mutex<()>,
    gauge: Gauge,
    false_alarms: Counter,
}

impl Fence {
    /// Not latched.
    #[must_use]
    pub fn new(readiness: Readiness, metrics: &Metrics) -> Self {
        metrics.fenced.set(0);
        Self {
            reason: OnceLock::new(),
            latched: CancellationToken::new(),
            readiness,
            turn: Mutex::new(()),
            gauge: metrics.fenced.clone(),
            false_alarms: metrics.fence_false_alarms.clone(),
        }
    }

    /// Somebody holds a higher epoch: send no mutation and no reclaim
    /// instruction from now on. The first reason stays.
    pub fn latch(&self, reason: impl Into<String>) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let reason = reason.into();
        if self.reason.set(reason.clone()).is_err() {
            return;
        }
        self.gauge.set(1);
        self.readiness.set_not_ready(format!(
            "fenced: {reason}; another process acts for this shard. Stop this one if that one \
             is right; do not restart it, it would fence its successor"
        ));
        tracing::error!(reason, "fenced: another process holds a higher epoch of this shard");
        self.latched.cancel();
    }

    /// Whether nothing may be sent any more.
    #[must_use]
    pub fn is_latched(&self) -> bool {
        self.latched.is_cancelled()
    }

    /// Why, once latched.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }

    /// Returns when latched.
    pub async fn latched(&self) {
        self.latched.cancelled().await;
    }

    /// A fenced call went through with a fresh sequence number.
    pub fn false_alarm(&self) {
        self.false_alarms.inc();
    }

    /// The first reconcile has succeeded: ready, unless fenced.
    pub fn set_ready(&self) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.reason.get().is_none() {
            self.readiness.set_ready();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn latches_once_and_for_good() {
        let (metrics, readiness) = (Metrics::default(), Readiness::new("starting"));
        let fence = Fence::new(readiness.clone(), &metrics);
        fence.set_ready();
        assert!(readiness.is_ready() && !fence.is_latched());
        assert_eq!((fence.reason(), metrics.fenced.get()), (None, 0));

        fence.latch("machine m-1: epoch 8 is newer");
        fence.latch("machine m-2: epoch 9 is newer");
        fence.latched().await;
        assert!(fence.is_latched());
        assert_eq!(fence.reason(), Some("machine m-1: epoch 8 is newer"));
        assert_eq!(metrics.fenced.get(), 1);

        fence.set_ready();
        let text = readiness.state().unwrap_err();
        assert!(text.starts_with("fenced: machine m-1: epoch 8 is newer"), "{text}");
    }

    #[test]
    fn a_false_alarm_only_counts() {
        let (metrics, readiness) = (Metrics::default(), Readiness::new("starting"));
        let fence = Fence::new(readiness.clone(), &metrics);
        fence.set_ready();
        fence.false_alarm();
        assert_eq!(metrics.fence_false_alarms.get(), 1);
        assert!(!fence.is_latched() && readiness.is_ready());
    }
}
