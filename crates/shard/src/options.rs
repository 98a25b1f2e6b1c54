//! What the library is started with.
//!
//! The rails are off here and on in the [flags](crate::flags): tests of
//! decisions see them raw, and nobody runs the binary without.

use std::{path::PathBuf, time::Duration};

use bigfleet_engine::ReleasePolicy;
use bigfleet_net::identity::Identity;

/// Everything about a shard but its surroundings.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Stable id.
    pub id: String,
    /// Time between two cycles.
    pub cycle_interval: Duration,
    /// Bound of one provider call.
    pub execute_timeout: Duration,
    /// Bound of the wait for a bootstrap blob.
    pub bootstrap_timeout: Duration,
    /// Workers.
    pub execute_concurrency: usize,
    /// Mutations at the provider at once.
    pub provider_max_inflight: usize,
    /// Machines per page of a List; 0 reads it as one.
    pub provider_list_page: u32,
    /// Identity that the provider's certificate must carry.
    pub provider_identity: Option<Identity>,
    /// Whether other shards use the provider, too.
    pub shared_provider: bool,
    /// Whether Lists ask only for changes.
    pub incremental_reconcile: bool,
    /// Most actions of a cycle.
    pub max_actions_per_cycle: Option<usize>,
    /// Share of a cluster's machines that a cycle may reclaim.
    pub reclaim_cap_fraction: Option<f64>,
    /// Whether roll-ups that wipe out demand are held.
    pub empty_rollup_guard: bool,
    /// What forces a mode of actuation.
    pub actuation: ActuationOptions,
    /// How long idle machines are kept that cost money.
    pub release: ReleasePolicy,
    /// Time between two capacity hints for one profile.
    pub available_capacity_interval: Duration,
    /// Cycles at the start that no histogram sees.
    pub metrics_warmup_cycles: u64,
    /// Whether every 20th cycle is probed.
    pub phase_attribution_log: bool,
    /// Whether an empty blob is used without asking an operator.
    pub local_bootstrap: bool,
}

/// A call without an answer may still arrive for so long, and for twice its own time.
const UNANSWERED: Duration = Duration::from_secs(60);

/// What is stronger than `SetActuation`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActuationOptions {
    /// The kill switch.
    pub paused: bool,
    /// Shadow mode.
    pub dry_run: bool,
    /// The kill switch while this file exists.
    pub pause_file: Option<PathBuf>,
}

impl Options {
    /// Workers that the library starts with.
    pub const EXECUTE_CONCURRENCY: usize = 64;
    /// Pace of capacity hints.
    pub const AVAILABLE_CAPACITY_INTERVAL: Duration = Duration::from_secs(5);

    /// How long after it was sent a call without an answer may still arrive.
    #[must_use]
    pub fn unanswered(&self) -> Duration {
        UNANSWERED.max(self.execute_timeout.saturating_mul(2))
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            id: "shard-0".to_owned(),
            cycle_interval: Duration::from_secs(10),
            execute_timeout: Duration::from_secs(30),
            bootstrap_timeout: Duration::from_secs(30),
            execute_concurrency: Self::EXECUTE_CONCURRENCY,
            provider_max_inflight: Self::EXECUTE_CONCURRENCY,
            provider_list_page: 0,
            provider_identity: None,
            shared_provider: false,
            incremental_reconcile: false,
            max_actions_per_cycle: None,
            reclaim_cap_fraction: None,
            empty_rollup_guard: false,
            actuation: ActuationOptions::default(),
            release: ReleasePolicy::default(),
            available_capacity_interval: Self::AVAILABLE_CAPACITY_INTERVAL,
            metrics_warmup_cycles: 0,
            phase_attribution_log: false,
            local_bootstrap: false,
        }
    }
}
