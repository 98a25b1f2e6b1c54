//! A cluster, a shard with a simulated cloud, both processes inside the cluster, and a proxy on
//! every way between two of them.

use std::{path::PathBuf, time::Duration};

use bigfleet_crds::{CapacityRequest, UpcomingNode};
use bigfleet_e2e::{
    agent::Habits,
    cluster::Cluster,
    fleet::{Fleet, Part},
    tap::Tap,
    wait::within,
};
use bigfleet_testkit::proxy::Proxy;
use k8s_openapi::api::core::v1::Node;

/// What is other than usual about the processes of a test.
#[derive(Debug, Default)]
pub(crate) struct Flags {
    pub(crate) provider: Vec<String>,
    pub(crate) operator: Vec<String>,
    pub(crate) pod_controller: Vec<String>,
}

/// The ways between two processes, each named after who dials and whom.
pub(crate) struct Ways {
    pub(crate) operator_to_server: Proxy,
    pub(crate) pod_controller_to_server: Proxy,
    pub(crate) operator_to_shard: Proxy,
    pub(crate) shard_to_provider: Proxy,
}

pub(crate) struct Site {
    pub(crate) operator: Part,
    pub(crate) pod_controller: Part,
    pub(crate) shard: Part,
    pub(crate) provider: Part,
    pub(crate) ways: Ways,
    pub(crate) tap: Tap,
    pub(crate) fleet: Fleet,
    pub(crate) cluster: Cluster,
    flags: Flags,
    configs: Configs,
}

/// Made once, since making one asks the server.
struct Configs {
    operator: PathBuf,
    pod_controller: PathBuf,
}

impl Site {
    /// Everything up, in the order of an installation; none where it must be skipped.
    pub(crate) async fn start_or_skip(flags: Flags) -> Option<Self> {
        let mut cluster = Cluster::start_or_skip(Habits::drawn()).await?;
        let fleet = Fleet::new();
        let tap = Tap::start(fleet.shard_addr()).await;
        let server = format!("127.0.0.1:{}", cluster.plane().apiserver_port());
        let ways = Ways {
            operator_to_server: Proxy::start(&server).unwrap(),
            pod_controller_to_server: Proxy::start(&server).unwrap(),
            operator_to_shard: Proxy::start(tap.addr()).unwrap(),
            shard_to_provider: Proxy::start(fleet.provider_addr()).unwrap(),
        };
        cluster.allow_bootstrap_tokens();
        let configs = Configs {
            operator: cluster.operator_kubeconfig(Some(ways.operator_to_server.addr().port())),
            pod_controller: cluster
                .pod_controller_kubeconfig(Some(ways.pod_controller_to_server.addr().port())),
        };
        let mut provider = fleet.provider(&texts(&flags.provider)).await;
        provider.until_ready().await;
        let mut shard = start_shard(&fleet, &ways).await;
        shard.until_ready().await;
        let mut pod_controller = start_pod_controller(&fleet, &configs, &flags).await;
        pod_controller.until_ready().await;
        let mut operator = start_operator(&fleet, &configs, &ways, &flags).await;
        operator.until_ready().await;
        Some(Self {
            operator,
            pod_controller,
            shard,
            provider,
            ways,
            tap,
            fleet,
            cluster,
            flags,
            configs,
        })
    }

    /// Another shard in the place of the one that has ended.
    pub(crate) async fn start_shard(&mut self) {
        self.shard = start_shard(&self.fleet, &self.ways).await;
    }

    pub(crate) async fn start_operator(&mut self) {
        self.operator = start_operator(&self.fleet, &self.configs, &self.ways, &self.flags).await;
    }

    pub(crate) async fn start_pod_controller(&mut self) {
        self.pod_controller = start_pod_controller(&self.fleet, &self.configs, &self.flags).await;
    }

    /// Another pod controller, with other flags.
    pub(crate) async fn restart_pod_controller(&mut self, flags: &[&str]) {
        self.flags.pod_controller = flags.iter().map(|&flag| flag.to_owned()).collect();
        self.pod_controller.process().signal("TERM").await;
        assert!(self.pod_controller.process().ended().await.success(), "an orderly end");
        self.start_pod_controller().await;
        self.pod_controller.until_ready().await;
    }

    /// Waits until the cluster is as empty as it was.
    pub(crate) async fn until_empty(&self, limit: Duration) {
        within(limit, "no request, node or upcoming node is left", || async {
            self.cluster.count::<CapacityRequest>().await == 0
                && self.cluster.count::<UpcomingNode>().await == 0
                && self.cluster.count::<Node>().await == 0
        })
        .await;
    }

    /// A Deployment of pods with these requests, made as a person at a terminal makes one.
    pub(crate) fn create_deployment(&self, name: &str, replicas: u32, requests: Option<&str>) {
        let kubectl = |args: &[&str]| self.cluster.kubectl(args);
        let (file, replicas) = (self.fleet.path("deployment.yaml"), replicas.to_string());
        let path = file.display().to_string();
        let create =
            ["create", "deployment", name, "--image=none", "--replicas", replicas.as_str()];
        let Some(requests) = requests else {
            kubectl(&create);
            return;
        };
        let written = kubectl(&[&create[..], &["--dry-run=client", "--output=yaml"]].concat());
        std::fs::write(&file, written).unwrap();
        let set = ["set", "resources", "--local", "--filename", path.as_str(), "--requests"];
        let written = kubectl(&[&set[..], &[requests, "--output=yaml"]].concat());
        std::fs::write(&file, written).unwrap();
        kubectl(&["create", "--filename", &path]);
    }

    /// How many machines the cloud has that are somebody's, or on their way to or from somebody.
    pub(crate) async fn machines_away(&self) -> f64 {
        let count = async |series: &str| self.provider.metric(series).await.unwrap_or_default();
        let here = |state: &str| {
            format!("bigfleet_provider_machines{{state=\"{state}\",capacity_type=\"ON_DEMAND\"}}")
        };
        let all = count("bigfleet_provider_machines").await;
        all - count(&here("SPECULATIVE")).await - count(&here("IDLE")).await
    }
}

async fn start_shard(fleet: &Fleet, ways: &Ways) -> Part {
    let provider = format!("--provider-addr={}", ways.shard_to_provider.addr());
    fleet.shard(&[&provider]).await
}

async fn start_operator(fleet: &Fleet, configs: &Configs, ways: &Ways, flags: &Flags) -> Part {
    let shard = format!("--shard-addr={}", ways.operator_to_shard.addr());
    let more: Vec<&str> = [shard.as_str()].into_iter().chain(texts(&flags.operator)).collect();
    fleet.operator("operator-0", &configs.operator, &more).await
}

async fn start_pod_controller(fleet: &Fleet, configs: &Configs, flags: &Flags) -> Part {
    fleet.pod_controller("upc-0", &configs.pod_controller, &texts(&flags.pod_controller)).await
}

fn texts(flags: &[String]) -> Vec<&str> {
    flags.iter().map(String::as_str).collect()
}
