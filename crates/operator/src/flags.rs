//! Flags of `bigfleet-operator` (§1).
//!
//! Each can be set by environment: `BIGFLEET_` and its name in capitals.

use std::{path::PathBuf, time::Duration};

use bigfleet_in_cluster::flags::ClusterFlags;
use bigfleet_net::{
    Error as NetError, duration,
    flags::{DiagnosticFlags, LogFlags, MetricsFlags, TlsFlags, path_parser},
    grpc, values,
};
use clap::{ArgAction, Args, Parser, builder::BoolishValueParser};

use crate::hold::DemandSource;

/// HTTP port of an operator.
pub const METRICS_PORT: u16 = 8770;

/// Parallel acknowledgements, and what 0 and less mean.
const ACK_CONCURRENCY: usize = 16;

/// Between two roll-ups, and what 0 means.
const ROLLUP_INTERVAL: Duration = Duration::from_secs(10);

/// Reports the demand of one cluster to its shard, and gives and takes nodes as the shard says.
#[derive(Clone, Debug, Parser)]
#[command(name = "bigfleet-operator", version)]
pub struct OperatorFlags {
    /// Stable id of this cluster, never to be changed: 1 to 253 of A-Z a-z 0-9 . _ -
    #[arg(long, value_name = "ID", value_parser = cluster_id)]
    pub cluster_id: String,

    /// host:port of one shard, and not of a name that stands for several
    #[arg(long, value_name = "ADDR")]
    pub shard_addr: String,

    /// `--metrics-addr`.
    #[command(flatten)]
    pub metrics: MetricsFlags<METRICS_PORT>,

    /// `--kubeconfig`, `--qps`, `--burst`, `--leader-elect`.
    #[command(flatten)]
    pub cluster: ClusterFlags,

    /// Demand.
    #[command(flatten)]
    pub demand: DemandFlags,

    /// Bootstrap.
    #[command(flatten)]
    pub bootstrap: BootstrapFlags,

    /// Nodes.
    #[command(flatten)]
    pub nodes: NodeFlags,

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

/// Roll-ups, acknowledgements, and what pods are told.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Demand")]
pub struct DemandFlags {
    /// Acknowledgements written at once; 0 and less mean 16
    #[arg(
        long, value_name = "N", default_value_t = ACK_CONCURRENCY as i64,
        allow_negative_numbers = true
    )]
    pub ack_concurrency: i64,

    /// Time between two roll-ups; 0 means 10s
    #[arg(
        long, value_name = "DURATION", default_value = "0", value_parser = rollup_interval,
        allow_hyphen_values = true
    )]
    pub rollup_interval: Duration,

    /// Who writes CapacityRequests: upc (the pod controller), external (others), or auto (the pod
    /// controller if its Lease exists). Roll-ups are held while the pod controller is down
    #[arg(long, value_name = "SOURCE", default_value = "auto", value_parser = demand_source)]
    pub demand_source: DemandSource,

    /// Tell waiting pods why they wait, by conditions and events
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value = "true", default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    pub pod_status: bool,
}

/// `--bootstrap-…`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Bootstrap")]
pub struct BootstrapFlags {
    /// Template of the user data that makes a machine join; empty serves a stub
    #[arg(long, value_name = "FILE", default_value = "", value_parser = path_parser())]
    pub bootstrap_template_file: PathBuf,

    /// How long a blob may be used
    #[arg(long, value_name = "DURATION", default_value = "600s", value_parser = values::positive)]
    pub bootstrap_ttl: Duration,

    /// Join tokens kept ready for {{ .BootstrapToken }}; 0 for none
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub bootstrap_tokens: usize,

    /// API server that machines join at, for {{ .APIServer }}; needed with --bootstrap-tokens
    #[arg(long, value_name = "URL", default_value = "")]
    pub bootstrap_api_server: String,

    /// CA bundle of that server, for {{ .CABundle }} [default: that of the service account]
    #[arg(long, value_name = "FILE", default_value = "", value_parser = path_parser())]
    pub bootstrap_ca_file: PathBuf,
}

/// `--node-cleanup`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Nodes")]
pub struct NodeFlags {
    /// Delete Nodes that stay NotReady after their machine left
    #[arg(
        long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
        require_equals = true, default_value = "true", default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    pub node_cleanup: bool,
}

impl BootstrapFlags {
    /// What is given and does nothing.
    #[must_use]
    pub fn idle(&self) -> Option<&'static str> {
        let given = |path: &PathBuf| !path.as_os_str().is_empty();
        let joins = !self.bootstrap_api_server.is_empty() || given(&self.bootstrap_ca_file);
        if self.bootstrap_tokens == 0 {
            let idle = "--bootstrap-api-server and --bootstrap-ca-file do nothing without \
                        --bootstrap-tokens: a template that names .APIServer or .CABundle fails";
            return joins.then_some(idle);
        }
        let idle = "--bootstrap-tokens does nothing without --bootstrap-template-file: the stub \
                    carries no token";
        (!given(&self.bootstrap_template_file)).then_some(idle)
    }
}

fn cluster_id(text: &str) -> Result<String, String> {
    values::id(text, "cluster", "prod-eu-1")
}

fn rollup_interval(text: &str) -> Result<Duration, String> {
    if text.starts_with('-') {
        return Err("must not be negative; write for example 10s, or 0 for the default".to_owned());
    }
    duration::parse(text)
}

fn demand_source(text: &str) -> Result<DemandSource, String> {
    let named = DemandSource::ALL.iter().find(|source| source.label() == text);
    named.copied().ok_or_else(|| "must be auto, upc or external".to_owned())
}

/// Flags that contradict each other.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not to be dialled.
    #[error("--shard-addr: {0}")]
    ShardAddr(NetError),
    /// Tokens are of no use without the server they are for.
    #[error("--bootstrap-tokens needs --bootstrap-api-server: the server that machines join at")]
    NoApiServer,
}

impl OperatorFlags {
    /// Refuses what contradicts itself, and warns of what is unwise.
    pub fn check(&self) -> Result<(), Error> {
        grpc::check_address(&self.shard_addr).map_err(Error::ShardAddr)?;
        let bootstrap = &self.bootstrap;
        if bootstrap.bootstrap_tokens > 0 && bootstrap.bootstrap_api_server.is_empty() {
            return Err(Error::NoApiServer);
        }
        Ok(())
    }

    /// Time between two roll-ups.
    #[must_use]
    pub fn rollup_interval(&self) -> Duration {
        match self.demand.rollup_interval {
            Duration::ZERO => ROLLUP_INTERVAL,
            given => given,
        }
    }

    /// Acknowledgements at once.
    #[must_use]
    pub fn ack_concurrency(&self) -> usize {
        match usize::try_from(self.demand.ack_concurrency) {
            Ok(0) | Err(_) => ACK_CONCURRENCY,
            Ok(given) => given,
        }
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_net::flags::try_parse_from;

    use super::*;

    fn parse(more: &[&str]) -> Result<OperatorFlags, String> {
        let must = ["--cluster-id=c", "--shard-addr=shard-0:7780"];
        let given = |flag: &str| {
            let name = flag.split('=').next().unwrap_or_default();
            more.iter().any(|one| one.starts_with(name))
        };
        let must = must.iter().filter(|flag| !given(flag));
        let args = ["bigfleet-operator"].iter().chain(must).chain(more).copied();
        try_parse_from(args).map_err(|error| error.to_string())
    }

    #[test]
    fn the_defaults_are_those_of_the_specification() {
        let flags = parse(&[]).unwrap();
        assert!(flags.check().is_ok());
        assert_eq!(flags.metrics.metrics_addr.to_string(), ":8770");
        assert_eq!((flags.cluster.qps, flags.cluster.burst), (50, 100));
        assert!(flags.cluster.leader_elect && flags.cluster.kubeconfig.is_none());
        assert_eq!(flags.ack_concurrency(), 16);
        assert_eq!(flags.rollup_interval(), Duration::from_secs(10));
        assert_eq!(flags.demand.demand_source, DemandSource::Auto);
        assert!(flags.demand.pod_status && flags.nodes.node_cleanup);
        assert_eq!(flags.bootstrap.bootstrap_ttl, Duration::from_secs(600));
        assert_eq!(flags.bootstrap.bootstrap_tokens, 0);
        assert!(!flags.tls.require_tls);
    }

    #[test]
    fn odd_values_mean_the_default_and_bad_ones_are_refused() {
        for (odd, expected) in [("0", 16), ("-3", 16), ("64", 64)] {
            let flags = parse(&["--ack-concurrency", odd]).unwrap();
            assert_eq!(flags.ack_concurrency(), expected);
        }
        let flags = parse(&["--rollup-interval=500ms"]).unwrap();
        assert_eq!(flags.rollup_interval(), Duration::from_millis(500));
        for (bad, text) in [
            (&["--rollup-interval", "-5s"][..], "must not be negative"),
            (&["--cluster-id", "a/b"], "must consist of"),
            (&["--demand-source=upd"], "must be auto, upc or external"),
            (&["--bootstrap-ttl=0"], "must be above 0"),
        ] {
            let error = parse(bad).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn contradictions_are_told() {
        let flags = parse(&["--bootstrap-tokens=5"]).unwrap();
        assert!(matches!(flags.check(), Err(Error::NoApiServer)));
        for (given, idle) in [
            (&["--bootstrap-template-file=/t"][..], None),
            (&["--bootstrap-api-server=https://a"], Some("without --bootstrap-tokens")),
            (&["--bootstrap-ca-file=/ca"], Some("without --bootstrap-tokens")),
            (
                &["--bootstrap-tokens=1", "--bootstrap-api-server=https://a"],
                Some("without --bootstrap-template-file"),
            ),
            (
                &[
                    "--bootstrap-tokens=1",
                    "--bootstrap-api-server=https://a",
                    "--bootstrap-template-file=/t",
                ],
                None,
            ),
        ] {
            let told = parse(given).unwrap().bootstrap.idle();
            assert_eq!(told.is_some(), idle.is_some(), "{given:?}");
            assert!(told.unwrap_or_default().contains(idle.unwrap_or_default()), "{told:?}");
        }
        let flags = parse(&["--shard-addr=nowhere"]).unwrap();
        assert!(matches!(flags.check(), Err(Error::ShardAddr(_))));
        let without = try_parse_from::<OperatorFlags>(["bigfleet-operator"]).unwrap_err();
        assert!(without.to_string().contains("--cluster-id"));
    }
}
