//! What a dashboard is told.

use std::{path::PathBuf, time::Duration};

use bigfleet_net::{listen::ListenAddr, tls::Security};

use crate::{AuthConfig, BasePath, Target};

/// The port of the web dashboard.
pub(crate) const PORT: u16 = 8080;

/// How long shards keep idle machines, as far as a dashboard can tell: a shard's own flags are not
/// on the wire, and whoever gives it others tells the dashboard the same. Zero is for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holds {
    /// On-demand ones.
    pub on_demand: Duration,
    /// Spot ones.
    pub spot: Duration,
}

/// Those of a shard that is given none.
impl Default for Holds {
    fn default() -> Self {
        Self { on_demand: Duration::from_secs(600), spot: Duration::from_secs(60) }
    }
}

/// Everything that a dashboard is told; a source that is empty is off.
#[derive(Clone, Debug)]
pub struct Config {
    /// HTTP address.
    pub listen: ListenAddr,
    /// Prometheus; before `scrape`.
    pub prometheus_url: Option<String>,
    /// Processes whose metrics are read here, where there is no Prometheus.
    pub scrape: Vec<Target>,
    /// Replicas of the coordinator.
    pub coordinator: Vec<String>,
    /// One context per managed cluster.
    pub kubeconfig: Option<PathBuf>,
    /// Grafana, for links.
    pub grafana_url: Option<String>,
    /// Identity towards coordinator and shards.
    pub security: Security,
    /// Under which path it is reached.
    pub base_path: BasePath,
    /// Who may look.
    pub auth: AuthConfig,
    /// How long shards keep idle machines.
    pub holds: Holds,
    /// Serve profiling.
    pub debug_endpoints: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: ListenAddr::all_interfaces(PORT),
            prometheus_url: None,
            scrape: Vec::new(),
            coordinator: Vec::new(),
            kubeconfig: None,
            grafana_url: None,
            security: Security::Plaintext,
            base_path: BasePath::default(),
            auth: AuthConfig::None,
            holds: Holds::default(),
            debug_endpoints: false,
        }
    }
}
