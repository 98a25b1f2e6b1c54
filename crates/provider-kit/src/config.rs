//! What an operator can choose.

use std::time::Duration;

use bigfleet_provider::{
    mutant::{Mutant, active},
    protocol::{Caps as ArgumentCaps, FencePolicy, Kind},
};

use crate::clock::FAR;

/// A drain may last this much longer than its grace.
const DRAIN_MARGIN: Duration = Duration::from_secs(2 * 60);

/// Of one provider.
#[derive(Clone, Debug)]
pub struct Config {
    /// `HostRef.provider`; constant over the life of every host.
    pub provider: String,
    /// How long each kind may take.
    pub timeouts: Timeouts,
    /// Between two sweeps.
    pub sweep_interval: Duration,
    /// One `describe`.
    pub describe_timeout: Duration,
    /// How long FAILED stays before it is repaired; zero means for ever.
    pub failed_hold: Duration,
    /// How strict the fence is.
    pub fence: FencePolicy,
    /// Transitions at once.
    pub max_inflight: usize,
    /// Largest Configure.
    pub arguments: ArgumentCaps,
    /// Configured without having seen the node: the operator accepts it.
    pub allow_ungated_configure: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            provider: "provider".to_owned(),
            timeouts: Timeouts::default(),
            sweep_interval: Duration::from_secs(2 * 60),
            describe_timeout: Duration::from_secs(30),
            failed_hold: Duration::from_secs(15 * 60),
            fence: FencePolicy::default(),
            max_inflight: 1024,
            arguments: ArgumentCaps::default(),
            allow_ungated_configure: false,
        }
    }
}

/// Per kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Bringing a host.
    pub create: Duration,
    /// Bootstrap and readiness.
    pub configure: Duration,
    /// At least; a long grace gets more.
    pub drain: Duration,
    /// Destroying a host.
    pub delete: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let five = Duration::from_secs(5 * 60);
        Self { create: five, configure: five, drain: Duration::from_secs(10 * 60), delete: five }
    }
}

impl Timeouts {
    /// One for all four.
    #[must_use]
    pub const fn all(timeout: Duration) -> Self {
        Self { create: timeout, configure: timeout, drain: timeout, delete: timeout }
    }

    /// Of this kind, with this grace. A fixed bound would fail drains with a longer
    /// grace; the margin shrinks with the bound where an operator wants it short.
    #[must_use]
    pub fn of(self, kind: Kind, grace: Duration) -> Duration {
        let timeout = match kind {
            Kind::Create => self.create,
            Kind::Configure => self.configure,
            Kind::Delete => self.delete,
            Kind::Drain if active(Mutant::DrainTimeoutFixed) => self.drain,
            Kind::Drain => self.drain.max(grace.saturating_add(DRAIN_MARGIN.min(self.drain))),
        };
        timeout.min(FAR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_drain_outlasts_its_grace() {
        let timeouts = Timeouts::default();
        for (grace, timeout) in [(0, 10), (8, 10), (9, 11), (15, 17)] {
            assert_eq!(timeouts.of(Kind::Drain, MINUTE * grace), MINUTE * timeout);
        }
        assert_eq!(timeouts.of(Kind::Create, MINUTE * 60), MINUTE * 5);
        assert_eq!(timeouts.of(Kind::Drain, Duration::MAX), FAR);
        let short = Timeouts::all(Duration::from_secs(2));
        assert_eq!(short.of(Kind::Drain, Duration::ZERO), Duration::from_secs(2));
        assert_eq!(short.of(Kind::Drain, Duration::from_secs(15)), Duration::from_secs(17));
    }
}
