//! How many transitions are under way.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use prometheus_client::metrics::gauge::Gauge;

/// Counts them against a cap.
#[derive(Clone, Debug)]
pub(crate) struct InflightCap {
    cap: usize,
    count: Arc<AtomicUsize>,
    gauge: Gauge,
}

impl InflightCap {
    pub(crate) fn new(cap: usize, gauge: Gauge) -> Self {
        Self { cap, count: Arc::default(), gauge }
    }

    pub(crate) const fn cap(&self) -> usize {
        self.cap
    }

    /// One more, if there is room.
    pub(crate) fn enter(&self) -> Option<Inflight> {
        let room = |count: usize| (count < self.cap).then_some(count + 1);
        self.count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, room).ok()?;
        self.gauge.inc();
        Some(Inflight { owner: self.clone() })
    }

    /// One more, room or not: it was accepted before a restart.
    pub(crate) fn resume(&self) -> Inflight {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.gauge.inc();
        Inflight { owner: self.clone() }
    }
}

/// One transition under way; ends when dropped.
#[derive(Debug)]
pub(crate) struct Inflight {
    owner: InflightCap,
}

impl Drop for Inflight {
    fn drop(&mut self) {
        self.owner.count.fetch_sub(1, Ordering::SeqCst);
        self.owner.gauge.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cap_holds_and_leaving_makes_room() {
        let inflight = InflightCap::new(2, Gauge::default());
        let one = inflight.enter().unwrap();
        let _two = inflight.enter().unwrap();
        assert!(inflight.enter().is_none());
        let _resumed = inflight.resume();
        drop(one);
        assert!(inflight.enter().is_none(), "the resumed one still counts");
        assert_eq!(inflight.gauge.get(), 2);
    }
}
