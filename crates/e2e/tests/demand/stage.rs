//! A cluster with both processes, and a scripted shard at the other end of the session.

use std::path::Path;

use bigfleet_crds::CapacityRequest;
use bigfleet_e2e::{
    agent::Habits,
    cluster::Cluster,
    fleet::{Fleet, Part},
    wait::PATIENCE,
    workload::Workload,
};
use bigfleet_net::tls::Security;
use bigfleet_scripted::shard::{Heard, Shard};
use bigfleet_testkit::proxy::Proxy;
use bigfleet_wire::v1alpha1::{CapacityNeed, ClusterCapacityNeeds};
use kube::{Api, api::ListParams};
use serde_json::json;

pub(crate) const CLUSTER: &str = "c-1";

/// The label by which the needs of a row are told from those of others.
const ROW: &str = "example.com/row";

pub(crate) struct Stage {
    pub(crate) operator: Part,
    pub(crate) fleet: Fleet,
    pub(crate) shard: Shard,
    /// Between both processes and the API server.
    pub(crate) proxy: Proxy,
    pub(crate) cluster: Cluster,
}

impl Stage {
    /// All but the pod controller; none where it must be skipped.
    pub(crate) async fn start_or_skip(operator: &[&str]) -> Option<Self> {
        let mut cluster = Cluster::start_or_skip(Habits::drawn()).await?;
        let server = format!("127.0.0.1:{}", cluster.plane().apiserver_port());
        let proxy = Proxy::start(server).unwrap();
        let shard = Shard::start(&Security::Plaintext).await.unwrap();
        let fleet = Fleet::new();
        let operator = start_operator(&fleet, &cluster, &proxy, shard.addr(), operator).await;
        let stage = Self { operator, fleet, shard, proxy, cluster };
        stage.until_session().await;
        Some(stage)
    }

    pub(crate) async fn until_session(&self) {
        let stands = |heard: &Heard| heard.live_sessions() == 1;
        self.shard.wait_for("a session", stands, PATIENCE).await.unwrap();
    }

    /// Another operator in the place of the first.
    pub(crate) async fn restart_operator(&mut self, more: &[&str]) {
        crate::site::stop(&mut self.operator).await;
        let ended = |heard: &Heard| heard.live_sessions() == 0;
        self.shard.wait_for("the end of the session", ended, PATIENCE).await.unwrap();
        let addr = self.shard.addr();
        self.operator = start_operator(&self.fleet, &self.cluster, &self.proxy, addr, more).await;
        self.until_session().await;
    }

    pub(crate) async fn pod_controller(&self, more: &[&str]) -> Part {
        let config = self.cluster.pod_controller_kubeconfig(Some(self.proxy.addr().port()));
        let mut part = self.fleet.pod_controller("upc-0", &config, more).await;
        part.until_ready().await;
        part
    }

    /// Waits until the needs of a row in the newest roll-up are as wanted, and returns them.
    pub(crate) async fn until_needs(
        &self,
        row: &str,
        wanted: &'static str,
        condition: impl Fn(&[CapacityNeed]) -> bool,
    ) -> Vec<CapacityNeed> {
        let newest = |heard: &Heard| heard.roll_ups().last().map(|roll_up| needs_of(roll_up, row));
        let holds = |heard: &Heard| newest(heard).is_some_and(|needs| condition(&needs));
        self.shard.wait_for(wanted, holds, PATIENCE).await.unwrap();
        newest(&self.shard.heard()).unwrap()
    }

    /// Processors of a row in every roll-up so far, in milli.
    pub(crate) fn history(&self, row: &str) -> Vec<i64> {
        self.shard.heard().roll_ups().map(|roll_up| milli_cpu(&needs_of(roll_up, row))).collect()
    }

    pub(crate) async fn requests(&self, namespace: &str) -> Vec<CapacityRequest> {
        let api = Api::<CapacityRequest>::namespaced(self.cluster.client(), namespace);
        api.list(&ListParams::default()).await.unwrap().items
    }
}

async fn start_operator(
    fleet: &Fleet,
    cluster: &Cluster,
    proxy: &Proxy,
    shard: &str,
    more: &[&str],
) -> Part {
    let config = cluster.operator_kubeconfig(Some(proxy.addr().port()));
    let mut operator = launch(fleet, &config, shard, more).await;
    operator.until_ready().await;
    operator
}

/// An operator that need not become ready.
pub(crate) async fn launch(fleet: &Fleet, config: &Path, shard: &str, more: &[&str]) -> Part {
    let addr = format!("--shard-addr={shard}");
    fleet.operator("operator-0", config, &[&[addr.as_str()], more].concat()).await
}

/// A workload of a row, in the namespace of that name.
pub(crate) fn of_row(row: &str, name: &str) -> Workload {
    Workload::new(row, name).field("nodeSelector", json!({ROW: row}))
}

/// What of a roll-up is a row's.
pub(crate) fn needs_of(roll_up: &ClusterCapacityNeeds, row: &str) -> Vec<CapacityNeed> {
    let its = |need: &&CapacityNeed| {
        need.requirements.iter().any(|one| one.key == ROW && one.values == [row])
    };
    roll_up.needs.iter().filter(its).cloned().collect()
}

/// Processors that needs ask for, in milli.
pub(crate) fn milli_cpu(needs: &[CapacityNeed]) -> i64 {
    let texts = needs.iter().filter_map(|need| need.aggregate_resources.get("cpu"));
    texts.map(|text| milli(text)).sum()
}

fn milli(text: &str) -> i64 {
    let (digits, factor) = match text.chars().last() {
        Some('m') => (&text[..text.len() - 1], 1),
        Some('k') => (&text[..text.len() - 1], 1_000_000),
        _ => (text, 1_000),
    };
    digits.parse::<i64>().unwrap_or_else(|_| panic!("{text} processors")) * factor
}
