//! Flags of the in-process fake, for tests only.

use clap::Args;

use super::parse::not_negative;

/// `--seed-…` and what else only a fake can do.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "In-process fake (tests only)")]
pub struct SeedFlags {
    /// Idle machines at the start
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed_machines: usize,

    /// Speculative machines at the start
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed_speculative: usize,

    /// Spot machines at the start
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed_spot: usize,

    /// Machines at the start that serve each cluster
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed_configured_per_cluster: usize,

    /// Machines that fail per second
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = not_negative)]
    pub failure_rate_per_sec: f64,

    /// Seconds after which speculative machines are shed; 0 for never
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub speculative_shed_at_seconds: u64,

    /// Clusters of the whole fleet
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed_cluster_total: usize,

    /// Distance between the clusters of this shard
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed_cluster_stride: usize,

    /// Machines per machine asked for
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = not_negative)]
    pub seed_density_multiplier: f64,

    /// Share of speculative machines that stays when they are shed
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = not_negative)]
    pub speculative_shed_multiplier: f64,

    /// Kinds of machines; empty for the fake's own
    #[arg(long, value_name = "NAMES", default_value = "")]
    pub archetypes: String,
}

impl SeedFlags {
    /// Those given that a real provider cannot follow.
    pub(super) fn fake_only(&self) -> Vec<&'static str> {
        [
            ("--seed-machines", self.seed_machines > 0),
            ("--seed-speculative", self.seed_speculative > 0),
            ("--seed-spot", self.seed_spot > 0),
            ("--seed-configured-per-cluster", self.seed_configured_per_cluster > 0),
            ("--failure-rate-per-sec", self.failure_rate_per_sec > 0.0),
            ("--speculative-shed-at-seconds", self.speculative_shed_at_seconds > 0),
        ]
        .into_iter()
        .filter_map(|(name, given)| given.then_some(name))
        .collect()
    }
}
