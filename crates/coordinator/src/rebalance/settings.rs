//! What the flags say of rebalancing.

use std::time::Duration;

/// How often shards report unless they are told otherwise.
pub const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// `--rebalance-…`.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Time between two passes.
    pub interval: Duration,
    /// Dearest kind of move.
    pub max_tier: u8,
    /// How long a pair of shards rests after a move of one type and zone.
    pub cooldown: Duration,
    /// Share of its machines that a donor keeps.
    pub donor_margin: f64,
    /// Share of a shortfall that a donor must be able to close.
    pub min_benefit: f64,
    /// Most machines of one pass.
    pub max_machines: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(50),
            max_tier: 3,
            cooldown: Duration::from_secs(80),
            donor_margin: 0.10,
            min_benefit: 0.10,
            max_machines: 1_000,
        }
    }
}

impl Settings {
    /// What a donor of so many can give: never its last one.
    pub(super) fn surplus(&self, has: u32) -> u32 {
        let keeps = (self.donor_margin * f64::from(has)).ceil() as u32;
        has.saturating_sub(keeps.max(1))
    }
}
