//! How a fake behaves.

use std::time::Duration;

use crate::protocol::{Caps, FencePolicy, Kind};

/// One value for each kind of mutation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerKind<T> {
    /// Of Create.
    pub create: T,
    /// Of Configure.
    pub configure: T,
    /// Of Drain.
    pub drain: T,
    /// Of Delete.
    pub delete: T,
}

impl<T: Copy> PerKind<T> {
    /// The same for all four.
    pub const fn all(value: T) -> Self {
        Self { create: value, configure: value, drain: value, delete: value }
    }

    /// Of this kind.
    pub const fn of(&self, kind: Kind) -> T {
        match kind {
            Kind::Create => self.create,
            Kind::Configure => self.configure,
            Kind::Drain => self.drain,
            Kind::Delete => self.delete,
        }
    }
}

/// How a [`Fake`](super::Fake) behaves. By default every transition waits to be
/// completed, as at a real provider.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FakeOptions {
    /// An ack shows the target already.
    pub instant_transitions: bool,
    /// These kinds wait to be completed even so; `configure` models a node that
    /// is not Ready yet.
    pub staged: PerKind<bool>,
    /// These kinds wait for so long, if longer than zero, and then complete by
    /// themselves as time goes on.
    pub latency: PerKind<Duration>,
    /// Of all random choices; 0 is a fixed one.
    pub seed: u64,
    /// Without it every Delete is refused, as where capacity is fixed.
    pub support_delete: bool,
    /// Failures per second and configured machine; real ones have 1.16e-8 to
    /// 1.16e-7 (1 % a day).
    pub failure_rate: f64,
    /// How strict the fence is.
    pub fence: FencePolicy,
    /// Largest Configure.
    pub caps: Caps,
    /// How many calls the log holds; older ones are forgotten.
    pub call_log: usize,
}

impl Default for FakeOptions {
    fn default() -> Self {
        Self {
            instant_transitions: false,
            staged: PerKind::all(false),
            latency: PerKind::all(Duration::ZERO),
            seed: 0,
            support_delete: true,
            failure_rate: 0.0,
            fence: FencePolicy::default(),
            caps: Caps::default(),
            call_log: 10_000,
        }
    }
}

impl FakeOptions {
    /// Every ack shows the target.
    pub fn instant() -> Self {
        Self { instant_transitions: true, ..Self::default() }
    }

    /// How often time has to go on for latencies to be kept.
    pub(super) fn tick(&self) -> Duration {
        let (shortest, longest) = (Duration::from_millis(100), Duration::from_millis(500));
        let latencies = Kind::ALL.map(|kind| self.latency.of(kind));
        let least = latencies.into_iter().filter(|latency| !latency.is_zero()).min();
        least.unwrap_or(longest).clamp(shortest, longest)
    }

    pub(super) fn waits(&self, kind: Kind) -> bool {
        !self.instant_transitions || self.staged.of(kind) || !self.latency.of(kind).is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ticker_follows_the_shortest_latency_within_bounds() {
        for (millis, tick) in [(0, 500), (1, 100), (250, 250), (9000, 500)] {
            let create = Duration::from_millis(millis);
            let latency = PerKind { create, ..PerKind::default() };
            let options = FakeOptions { latency, ..FakeOptions::default() };
            assert_eq!(options.tick(), Duration::from_millis(tick), "{millis} ms");
        }
    }

    #[test]
    fn a_kind_is_instant_only_if_nothing_says_otherwise() {
        let instant = FakeOptions::instant();
        assert!(Kind::ALL.iter().all(|kind| !instant.waits(*kind)));
        assert!(Kind::ALL.iter().all(|kind| FakeOptions::default().waits(*kind)));
        let staged = PerKind { drain: true, ..PerKind::default() };
        assert!(FakeOptions { staged, ..instant }.waits(Kind::Drain));
        let latency = PerKind { delete: Duration::from_millis(1), ..PerKind::default() };
        assert!(FakeOptions { latency, ..instant }.waits(Kind::Delete));
    }
}
