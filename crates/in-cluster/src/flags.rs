//! Flags that the processes inside a cluster share.

use std::path::PathBuf;

use bigfleet_net::flags::path_parser;
use clap::{ArgAction, Args, builder::BoolishValueParser};

use crate::{Budget, Error, Paced, client};

/// `--kubeconfig`, `--qps`, `--burst`, `--leader-elect`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterFlags {
    /// How to reach the cluster; default: $KUBECONFIG, else the pod's service account
    #[arg(long, value_name = "FILE", env = "BIGFLEET_KUBECONFIG", value_parser = path_parser())]
    pub kubeconfig: Option<PathBuf>,

    /// Calls a second to the API server; 0 trusts its own fairness
    #[arg(long, value_name = "N", env = "BIGFLEET_QPS", default_value_t = 50)]
    pub qps: u32,

    /// Calls at once after a quiet time
    #[arg(long, value_name = "N", env = "BIGFLEET_BURST", default_value_t = 100)]
    pub burst: u32,

    /// Let one replica act and the others wait
    #[arg(
        long,
        env = "BIGFLEET_LEADER_ELECT",
        value_name = "BOOL",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value = "true",
        default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    pub leader_elect: bool,
}

impl ClusterFlags {
    /// A client of the cluster, within the budget the flags give.
    pub async fn connect(&self, agent: &str) -> Result<Paced, Error> {
        let client = client::connect(self.kubeconfig.as_deref(), agent).await?;
        Ok(Paced::new(client, Budget::new(self.qps, self.burst)))
    }
}
