//! Flags of `bigfleet shard` (shard chapter §17).
//!
//! Each can be set by environment: `BIGFLEET_` and its name in capitals.

mod parse;
mod seed;

use std::{path::PathBuf, time::Duration};

use bigfleet_engine::ReleasePolicy;
use bigfleet_net::{
    duration,
    flags::{DiagnosticFlags, LogFlags, MetricsFlags, TlsFlags, path_parser},
    identity::Identity,
    listen::ListenAddr,
};
use clap::{ArgAction, Args, builder::BoolishValueParser};
use parse::{above_zero, epoch_floor, fraction, positive, provider_identity, shard_id};
pub use seed::SeedFlags;

use crate::{
    data_dir::Opening,
    options::{ActuationOptions, Options},
};

/// HTTP port of a shard.
pub const METRICS_PORT: u16 = 8780;

/// The variable that switches `--phase-attribution-log` on, too.
const PHASE_DUMP: &str = "BIGFLEET_PHASEDUMP";

/// To parse by itself or to flatten into other flags.
#[derive(Clone, Debug, Args)]
pub struct ShardFlags {
    /// gRPC address
    #[arg(long, value_name = "ADDR", default_value = ":7780")]
    pub listen: ListenAddr,

    /// `--metrics-addr`.
    #[command(flatten)]
    pub metrics: MetricsFlags<METRICS_PORT>,

    /// Stable id of this shard: 1 to 253 of A-Z a-z 0-9 . _ -
    #[arg(long, value_name = "ID", default_value = "shard-0", value_parser = shard_id)]
    pub id: String,

    /// Directory of the epoch, the lock and the actuation mode
    #[arg(long, value_name = "DIR", default_value = "./data", value_parser = path_parser())]
    pub data_dir: PathBuf,

    /// Start at this epoch or above, after the data directory was lost
    #[arg(long, value_name = "N", default_value = "0", value_parser = epoch_floor)]
    pub epoch_floor: i64,

    /// Address under which others reach this shard [default: that of --listen]
    #[arg(long, value_name = "ADDR", default_value = "", hide_default_value = true)]
    pub advertise_addr: String,

    /// Time between two cycles
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = positive)]
    pub cycle_interval: Duration,

    /// The provider.
    #[command(flatten)]
    pub provider: ProviderFlags,

    /// The coordinator.
    #[command(flatten)]
    pub coordinator: CoordinatorFlags,

    /// Execution.
    #[command(flatten)]
    pub execute: ExecuteFlags,

    /// Rails.
    #[command(flatten)]
    pub rails: RailFlags,

    /// Time between two capacity hints for one profile; 0 means 5s
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = duration::parse)]
    pub available_capacity_interval: Duration,

    /// Observation.
    #[command(flatten)]
    pub observe: ObserveFlags,

    /// The in-process fake.
    #[command(flatten)]
    pub seed: SeedFlags,

    /// `--tls-…`.
    #[command(flatten)]
    pub tls: TlsFlags,

    /// `--log-…`.
    #[command(flatten)]
    pub log: LogFlags,

    /// `--debug-endpoints`, `--otlp-endpoint`.
    #[command(flatten)]
    pub diagnostics: DiagnosticFlags,
}

/// `--provider-…`, `--shared-provider`, `--incremental-reconcile`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Provider")]
pub struct ProviderFlags {
    /// Address of the provider; empty takes an in-process fake, for tests only
    #[arg(long, value_name = "ADDR", default_value = "")]
    pub provider_addr: String,

    /// Mutations at the provider at once [default: --execute-concurrency]
    #[arg(long, value_name = "N", value_parser = above_zero)]
    pub provider_max_inflight: Option<usize>,

    /// Machines per page of a List; 0 reads it as one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub provider_list_page: u32,

    /// Identity that the provider's certificate must carry, bigfleet://provider/NAME; empty
    /// takes any certificate of the CA
    #[arg(long, value_name = "URI", default_value = "", value_parser = provider_identity)]
    pub provider_identity: ProviderIdentity,

    /// Share the provider with other shards; the coordinator says who owns what
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value = "false", default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    pub shared_provider: bool,

    /// Ask only for changes; for providers that honour it
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value = "false", default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    pub incremental_reconcile: bool,
}

/// What `--provider-identity` demands, if anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderIdentity(pub Option<Identity>);

/// `--coordinator-…`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Coordinator")]
pub struct CoordinatorFlags {
    /// Addresses of the coordinator, separated by commas; empty for none
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    pub coordinator_addr: Vec<String>,

    /// Time between two reports
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = positive)]
    pub coordinator_heartbeat_interval: Duration,
}

/// `--execute-…`, `--bootstrap-timeout`, `--local-bootstrap`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Execution")]
pub struct ExecuteFlags {
    /// Actions at once
    #[arg(
        long, value_name = "N", default_value_t = Options::EXECUTE_CONCURRENCY,
        value_parser = above_zero
    )]
    pub execute_concurrency: usize,

    /// Time for one call of the provider
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = positive)]
    pub execute_timeout: Duration,

    /// Time for an operator to deliver a bootstrap blob
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = positive)]
    pub bootstrap_timeout: Duration,

    /// Use an empty blob without asking an operator; for tests only
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value = "false", default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    pub local_bootstrap: bool,
}

/// What stands between a decision and its execution.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Rails")]
pub struct RailFlags {
    /// Most actions of one cycle; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub max_actions_per_cycle: usize,

    /// Share of a cluster's machines that one cycle may reclaim, but at least one; 0 disables
    #[arg(long, value_name = "SHARE", default_value = "0.05", value_parser = fraction)]
    pub reclaim_cap_fraction: f64,

    /// Hold roll-ups that wipe out a cluster's demand
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value = "true", default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    pub empty_rollup_guard: bool,

    /// How long an idle on-demand machine is kept before it is given back; 0 for ever
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration::parse)]
    pub idle_hold_on_demand: Duration,

    /// How long an idle spot machine is kept before it is given back; 0 for ever
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration::parse)]
    pub idle_hold_spot: Duration,

    /// Decide, but do nothing
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value = "false", default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    pub actuation_paused: bool,

    /// Decide and log what would be done
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value = "false", default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    pub dry_run: bool,

    /// Do nothing while this file exists; looked at every cycle
    #[arg(long, value_name = "FILE", default_value = "", value_parser = path_parser())]
    pub pause_file: PathBuf,
}

/// `--audit-log`, `--metrics-warmup-cycles`, `--phase-attribution-log`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Diagnostics")]
pub struct ObserveFlags {
    /// File of decisions and their outcomes, as JSON lines; empty for none
    #[arg(long, value_name = "FILE", default_value = "", value_parser = path_parser())]
    pub audit_log: PathBuf,

    /// Cycles at the start that no histogram sees
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub metrics_warmup_cycles: u64,

    /// Log what each phase did, every 20th cycle
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value = "false", default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    pub phase_attribution_log: bool,
}

/// Flags that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The fake's flags with a real provider.
    #[error(
        "{flags}: only the in-process fake knows {them}; remove {them}, or remove --provider-addr",
        them = if flags.contains(' ') { "them" } else { "it" }
    )]
    FakeOnly {
        /// The flags.
        flags: String,
    },

    /// Nobody says who owns what.
    #[error(
        "--shared-provider: the coordinator says who owns what; give its addresses with \
         --coordinator-addr, or give this shard a provider of its own"
    )]
    SharedWithoutCoordinator,

    /// A provider that nobody else can reach.
    #[error(
        "--shared-provider: the in-process fake is this shard's alone; give --provider-addr, or \
         leave the flag out"
    )]
    SharedFake,

    /// Nothing to keep the epoch in.
    #[error("--data-dir: empty; give a directory that survives restarts")]
    NoDataDir,
}

impl ShardFlags {
    /// Refuses what contradicts itself.
    pub fn check(&self) -> Result<(), Error> {
        if self.data_dir.as_os_str().is_empty() {
            return Err(Error::NoDataDir);
        }
        let fake_only = self.seed.fake_only();
        if !self.provider.provider_addr.is_empty() && !fake_only.is_empty() {
            return Err(Error::FakeOnly { flags: fake_only.join(", ") });
        }
        if self.provider.shared_provider {
            if self.provider.provider_addr.is_empty() {
                return Err(Error::SharedFake);
            }
            if self.coordinators().next().is_none() {
                return Err(Error::SharedWithoutCoordinator);
            }
        }
        Ok(())
    }

    /// Address under which others reach this shard.
    #[must_use]
    pub fn advertised(&self) -> String {
        match &*self.advertise_addr {
            "" => self.listen.to_string(),
            given => given.to_owned(),
        }
    }

    /// Addresses of the coordinator; none if there is none.
    pub fn coordinators(&self) -> impl Iterator<Item = &str> {
        self.coordinator.coordinator_addr.iter().map(|addr| addr.trim()).filter(|a| !a.is_empty())
    }

    /// Where the audit log goes.
    #[must_use]
    pub fn audit_log(&self) -> Option<PathBuf> {
        given(&self.observe.audit_log)
    }

    /// How to open the data directory.
    #[must_use]
    pub fn opening(&self) -> Opening {
        Opening { epoch_floor: self.epoch_floor, shared_provider: self.provider.shared_provider }
    }

    /// What the library is started with.
    #[must_use]
    pub fn options(&self) -> Options {
        let concurrency = self.execute.execute_concurrency;
        let hints = self.available_capacity_interval;
        let (rails, provider) = (&self.rails, &self.provider);
        Options {
            id: self.id.clone(),
            cycle_interval: self.cycle_interval,
            execute_timeout: self.execute.execute_timeout,
            bootstrap_timeout: self.execute.bootstrap_timeout,
            execute_concurrency: concurrency,
            provider_max_inflight: provider.provider_max_inflight.unwrap_or(concurrency),
            provider_list_page: provider.provider_list_page,
            provider_identity: provider.provider_identity.0.clone(),
            shared_provider: provider.shared_provider,
            incremental_reconcile: provider.incremental_reconcile,
            max_actions_per_cycle: Some(rails.max_actions_per_cycle).filter(|most| *most > 0),
            reclaim_cap_fraction: Some(rails.reclaim_cap_fraction).filter(|share| *share > 0.0),
            empty_rollup_guard: rails.empty_rollup_guard,
            actuation: ActuationOptions {
                paused: rails.actuation_paused,
                dry_run: rails.dry_run,
                pause_file: given(&rails.pause_file),
            },
            release: ReleasePolicy {
                on_demand: rails.idle_hold_on_demand,
                spot: rails.idle_hold_spot,
            },
            available_capacity_interval: match hints.is_zero() {
                true => Options::AVAILABLE_CAPACITY_INTERVAL,
                false => hints,
            },
            metrics_warmup_cycles: self.observe.metrics_warmup_cycles,
            phase_attribution_log: self.observe.phase_attribution_log
                || std::env::var_os(PHASE_DUMP).is_some_and(|value| value == "1"),
            local_bootstrap: self.execute.local_bootstrap,
        }
    }
}

fn given(path: &std::path::Path) -> Option<PathBuf> {
    (!path.as_os_str().is_empty()).then(|| path.to_owned())
}

#[cfg(test)]
mod tests;
