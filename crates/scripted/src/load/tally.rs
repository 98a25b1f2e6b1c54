//! What all sessions of a load add to.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bigfleet_net::grpc::code_name;
use tonic::Status;

use super::quantiles::{Counts, Quantiles};

/// One number that only grows.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn one(&self) {
        self.add(1);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Durations of many sessions.
#[derive(Debug, Default)]
pub(super) struct Durations(Mutex<Counts>);

impl Durations {
    pub(super) fn record(&self, duration: Duration) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).record(duration);
    }

    fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Counts::default();
    }

    pub(super) fn quantiles(&self) -> Quantiles {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).quantiles()
    }
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) opened: Count,
    pub(super) ended: Count,
    pub(super) sent: Count,
    pub(super) accepted: Count,
    pub(super) held: Count,
    pub(super) rejected: Count,
    pub(super) superseded: Count,
    pub(super) unanswered: Count,
    pub(super) stray: Count,
    pub(super) dropped: Count,
    pub(super) bootstraps: Count,
    pub(super) reclaims: Count,
    pub(super) other_frames: Count,
    pub(super) hello: Durations,
    pub(super) latency: Durations,
    pub(super) behind: Durations,
    failures: Mutex<Failures>,
}

#[derive(Debug, Default)]
struct Failures {
    by_code: BTreeMap<&'static str, u64>,
    first: Option<String>,
}

impl Tally {
    /// Counts roll-ups from nothing, as if none had been sent. An answer that is
    /// still under way counts when it comes.
    pub(super) fn begin_anew(&self) {
        let counts = [
            &self.sent,
            &self.accepted,
            &self.held,
            &self.rejected,
            &self.superseded,
            &self.unanswered,
            &self.stray,
            &self.dropped,
            &self.bootstraps,
            &self.reclaims,
            &self.other_frames,
        ];
        counts.into_iter().for_each(Count::forget);
        self.latency.forget();
        self.behind.forget();
    }

    pub(super) fn alive(&self) -> u64 {
        self.opened.get().saturating_sub(self.ended.get())
    }

    pub(super) fn answered(&self) -> u64 {
        self.accepted.get() + self.held.get() + self.rejected.get()
    }

    pub(super) fn failed(&self, status: &Status) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        *failures.by_code.entry(code_name(status.code())).or_default() += 1;
        failures.first.get_or_insert_with(|| status.to_string());
    }

    /// A refused roll-up is no failure of its session, but the text is wanted.
    pub(super) fn refused(&self, text: &str) {
        self.rejected.one();
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.first.get_or_insert_with(|| text.to_owned());
    }

    /// How sessions failed by code, and the first text.
    pub(super) fn failures(&self) -> (BTreeMap<&'static str, u64>, Option<String>) {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        (failures.by_code.clone(), failures.first.clone())
    }
}
