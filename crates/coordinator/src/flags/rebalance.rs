//! `--rebalance-…`.

use std::time::Duration;

use bigfleet_net::{
    duration,
    values::{above_zero, fraction, positive},
};
use clap::Args;

use super::Error;
use crate::rebalance::{REPORT_INTERVAL, Settings};

/// How machines move between shards that share a provider.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Rebalancing, between shards that share a provider")]
pub struct RebalanceFlags {
    /// Time between two passes; 0 disables
    #[arg(long, value_name = "DURATION", default_value = "50s", value_parser = duration::parse)]
    pub rebalance_interval: Duration,

    /// Dearest kind of move: 1 idle machines, 2 also speculative slots, 3 also drains
    #[arg(
        long, value_name = "TIER", default_value_t = 3,
        value_parser = clap::value_parser!(u8).range(1..=3)
    )]
    pub rebalance_max_tier: u8,

    /// Time for which a pair of shards rests after a move of one type and zone; longer than the
    /// interval and the report interval of 10s together
    #[arg(long, value_name = "DURATION", default_value = "80s", value_parser = positive)]
    pub rebalance_cooldown: Duration,

    /// Share of its idle machines that a donor keeps
    #[arg(long, value_name = "SHARE", default_value = "0.10", value_parser = fraction)]
    pub rebalance_donor_margin: f64,

    /// Share of a shortfall that a donor must be able to close
    #[arg(long, value_name = "SHARE", default_value = "0.10", value_parser = fraction)]
    pub rebalance_min_benefit: f64,

    /// Most machines of one pass
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = above_zero)]
    pub rebalance_max_machines: usize,
}

impl RebalanceFlags {
    pub(super) fn check(&self) -> Result<(), Error> {
        let least = self.rebalance_interval.saturating_add(REPORT_INTERVAL);
        if !self.rebalance_interval.is_zero() && self.rebalance_cooldown <= least {
            return Err(Error::CooldownTooShort { least });
        }
        Ok(())
    }

    /// What the flags ask for, if anything.
    #[must_use]
    pub fn settings(&self) -> Option<Settings> {
        (!self.rebalance_interval.is_zero()).then(|| Settings {
            interval: self.rebalance_interval,
            max_tier: self.rebalance_max_tier,
            cooldown: self.rebalance_cooldown,
            donor_margin: self.rebalance_donor_margin,
            min_benefit: self.rebalance_min_benefit,
            max_machines: u32::try_from(self.rebalance_max_machines).unwrap_or(u32::MAX),
        })
    }
}
