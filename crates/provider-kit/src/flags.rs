//! Flags of every provider binary (provider chapter §9).
//!
//! Each can be set by environment: `BIGFLEET_` and its name in capitals.

use std::{path::PathBuf, time::Duration};

pub use bigfleet_net::flags::{parse, try_parse_from};
use bigfleet_net::{
    duration,
    flags::{DiagnosticFlags, LogFlags, MetricsFlags, TlsFlags, path_parser},
    listen::ListenAddr,
};
use bigfleet_provider::protocol::{Caps, FencePolicy};
use clap::{ArgAction, Args, builder::BoolishValueParser};

use crate::config::{Config, Timeouts};

/// HTTP port of a provider.
pub const METRICS_PORT: u16 = 9090;

/// To flatten into a binary's own flags.
#[derive(Clone, Debug, Args)]
pub struct ProviderFlags {
    /// gRPC address
    #[arg(long, value_name = "ADDR", default_value = ":9000")]
    pub addr: ListenAddr,

    /// Name of this provider, in every host reference and, over mTLS, in its certificate
    /// as bigfleet://provider/<NAME>
    #[arg(long, value_name = "NAME", default_value = "provider")]
    pub provider: String,

    /// Directory of the state; empty keeps it in memory, which forgets bindings and
    /// fence marks with the process
    #[arg(long, value_name = "DIR", default_value = "", value_parser = path_parser())]
    pub state: PathBuf,

    /// Slots of a simulated backend
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub seed_count: usize,

    /// Simulate the backend; never done unasked
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value = "false", default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    pub use_fake_backend: bool,

    /// Timeouts of transitions.
    #[command(flatten)]
    pub timeouts: TimeoutFlags,

    /// Time between two comparisons with the backend
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = positive)]
    pub sweep_interval: Duration,

    /// How long a failed machine is kept as it is before it is repaired; 0 for ever
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = duration::parse)]
    pub failed_hold: Duration,

    /// What calls must carry and may carry.
    #[command(flatten)]
    pub calls: CallFlags,

    /// Report CONFIGURED although readiness cannot be observed
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value = "false", default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    pub allow_ungated_configure: bool,

    /// Serve gRPC reflection
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value = "true", default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    pub reflection: bool,

    /// `--metrics-addr`.
    #[command(flatten)]
    pub metrics: MetricsFlags<METRICS_PORT>,

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

/// `--{create,configure,drain,delete,transition}-timeout`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Timeouts")]
pub struct TimeoutFlags {
    /// Time for Create [default: 5m]
    #[arg(long, value_name = "DURATION", value_parser = positive)]
    pub create_timeout: Option<Duration>,

    /// Time for Configure, readiness included [default: 5m]
    #[arg(long, value_name = "DURATION", value_parser = positive)]
    pub configure_timeout: Option<Duration>,

    /// Least time for Drain; a grace gets up to 2m more than itself [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = positive)]
    pub drain_timeout: Option<Duration>,

    /// Time for Delete [default: 5m]
    #[arg(long, value_name = "DURATION", value_parser = positive)]
    pub delete_timeout: Option<Duration>,

    /// All four at once; one that is given by itself wins
    #[arg(long, value_name = "DURATION", value_parser = positive)]
    pub transition_timeout: Option<Duration>,
}

impl TimeoutFlags {
    /// What they come to.
    #[must_use]
    pub fn timeouts(&self) -> Timeouts {
        let default = self.transition_timeout.map_or_else(Timeouts::default, Timeouts::all);
        Timeouts {
            create: self.create_timeout.unwrap_or(default.create),
            configure: self.configure_timeout.unwrap_or(default.configure),
            drain: self.drain_timeout.unwrap_or(default.drain),
            delete: self.delete_timeout.unwrap_or(default.delete),
        }
    }
}

/// `--require-token`, `--strict-epoch`, `--max-…`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Calls")]
pub struct CallFlags {
    /// Refuse mutations without a fencing token; advised in production
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value = "false", default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    pub require_token: bool,

    /// Also refuse an epoch below the highest that a shard has shown on any machine;
    /// required where shards share a provider
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value = "false", default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    pub strict_epoch: bool,

    /// Transitions at once; more are answered RESOURCE_EXHAUSTED
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub max_inflight: usize,

    /// Largest bootstrap_blob
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20)]
    pub max_blob_bytes: usize,

    /// Largest shard_metadata, keys and values together
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 10)]
    pub max_metadata_bytes: usize,

    /// Most keys of shard_metadata
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub max_metadata_keys: usize,
}

impl ProviderFlags {
    /// The part that the kit is configured with.
    #[must_use]
    pub fn config(&self) -> Config {
        Config {
            provider: self.provider.clone(),
            timeouts: self.timeouts.timeouts(),
            sweep_interval: self.sweep_interval,
            failed_hold: self.failed_hold,
            fence: FencePolicy {
                require_token: self.calls.require_token,
                strict_epoch: self.calls.strict_epoch,
            },
            max_inflight: self.calls.max_inflight,
            arguments: Caps {
                blob_bytes: self.calls.max_blob_bytes,
                metadata_keys: self.calls.max_metadata_keys,
                metadata_bytes: self.calls.max_metadata_bytes,
            },
            allow_ungated_configure: self.allow_ungated_configure,
            ..Config::default()
        }
    }
}

/// A time that something may take.
fn positive(text: &str) -> Result<Duration, String> {
    let duration = duration::parse(text)?;
    if duration.is_zero() { Err("must be above 0".to_owned()) } else { Ok(duration) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Binary {
        #[command(flatten)]
        provider: ProviderFlags,
    }

    fn parse(args: &[&str]) -> Result<ProviderFlags, clap::Error> {
        let args = std::iter::once("binary").chain(args.iter().copied());
        bigfleet_net::flags::try_parse_from(args).map(|binary: Binary| binary.provider)
    }

    #[test]
    fn defaults_are_those_of_the_chapter() {
        let flags = parse(&[]).unwrap();
        assert_eq!(flags.addr.to_string(), ":9000");
        assert_eq!(flags.metrics.metrics_addr.to_string(), ":9090");
        assert_eq!(flags.seed_count, 32);
        assert!(flags.reflection && !flags.use_fake_backend && !flags.allow_ungated_configure);
        let (config, default) = (flags.config(), Config::default());
        assert_eq!(config.timeouts, default.timeouts);
        assert_eq!(config.sweep_interval, default.sweep_interval);
        assert_eq!(config.failed_hold, default.failed_hold);
        assert_eq!(config.arguments, default.arguments);
        assert_eq!(config.fence, default.fence);
        assert_eq!(config.max_inflight, 1024);
    }

    #[test]
    fn one_timeout_for_all_yields_to_one_of_its_own() {
        let flags = parse(&["--transition-timeout=2s", "--drain-timeout=1m"]).unwrap();
        let timeouts = flags.config().timeouts;
        assert_eq!(timeouts.create, Duration::from_secs(2));
        assert_eq!(timeouts.delete, Duration::from_secs(2));
        assert_eq!(timeouts.drain, Duration::from_secs(60));
        assert!(parse(&["--create-timeout=0"]).is_err());
        assert!(parse(&["--sweep-interval=5"]).is_err());
    }
}
