//! One shard and one provider: their directories, their addresses, their
//! processes.

use std::{path::PathBuf, time::Duration};

use bigfleet_net::{grpc::connect_lazy, message_limits, rule::Rule, tls::Security};
use bigfleet_scripted::{
    cluster::{Cluster, Shape},
    member::Member,
    operator::{Operator, OperatorOptions},
};
use bigfleet_wire::v1alpha1::{
    ListFilter, Machine, capacity_provider_client::CapacityProviderClient,
};
use tempfile::TempDir;
use tonic::transport::Channel;

use crate::{
    process::{Process, flags, get, sum, sum_of, until},
    rig::{
        binaries::{bigfleet, provider_sim},
        ports::port,
    },
};

/// How often clusters live and report.
pub(crate) const STEP: Duration = Duration::from_millis(100);

/// A few machines at once.
pub(crate) const SMALL: &[&str] = &[
    "--tier={name: metal, type: epyc, capacity: BARE_METAL, count: 4, state: IDLE, \
     resources: {cpu: 8, memory: 32Gi}}",
    "--interruption-factor=0",
    "--require-token",
];

/// The only machine there is.
pub(crate) const ONE: &[&str] = &[
    "--tier={name: metal, type: epyc, capacity: BARE_METAL, count: 1, state: IDLE, \
     resources: {cpu: 8, memory: 32Gi}}",
    "--interruption-factor=0",
    "--require-token",
];

/// Where processes of a test are, whether they run or not.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) dir: TempDir,
    /// gRPC of the shard.
    pub(crate) shard: String,
    /// HTTP of the shard.
    pub(crate) shard_http: String,
    /// gRPC of the provider.
    pub(crate) provider: String,
    /// HTTP of the provider.
    pub(crate) provider_http: String,
    /// The provider's door for experimenters.
    pub(crate) admin: String,
}

impl Site {
    pub(crate) fn new() -> Self {
        let [shard, shard_http, provider, provider_http, admin] = std::array::from_fn(|_| port());
        let dir = TempDir::new().unwrap();
        Self { dir, shard, shard_http, provider, provider_http, admin }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.path("audit.jsonl")
    }

    /// What every shard of this site is started with, and these flags besides or
    /// instead.
    pub(crate) fn shard_args(&self, more: &[&str]) -> Vec<String> {
        let usual = [
            ("--listen", self.shard.clone()),
            ("--metrics-addr", self.shard_http.clone()),
            ("--id", "s-1".to_owned()),
            ("--provider-addr", self.provider.clone()),
            ("--cycle-interval", "200ms".to_owned()),
            ("--data-dir", self.path("data").display().to_string()),
            ("--audit-log", self.audit_log().display().to_string()),
        ];
        std::iter::once("shard".to_owned()).chain(flags(usual, more)).collect()
    }

    /// Starts a shard and waits for nothing.
    pub(crate) fn spawn_shard(&self, more: &[&str]) -> Process {
        Process::spawn(&bigfleet(), &self.shard_args(more), &self.path("shard.log"))
    }

    /// Starts a shard that is ready when this returns.
    pub(crate) async fn boot_shard(&self, more: &[&str]) -> Process {
        let mut shard = self.spawn_shard(more);
        self.until_ready(&mut shard).await;
        shard
    }

    pub(crate) async fn until_ready(&self, shard: &mut Process) {
        until("a shard that is ready", async || {
            assert!(shard.is_running(), "it ended: {}", shard.tail());
            self.readyz().await.filter(|(status, _)| *status == 200)
        })
        .await;
    }

    pub(crate) async fn readyz(&self) -> Option<(u16, String)> {
        get(&self.shard_http, "/readyz").await
    }

    /// Sum of a metric of the shard over all its labels; none before it is there.
    pub(crate) async fn metric(&self, name: &str) -> Option<f64> {
        sum(&get(&self.shard_http, "/metrics").await?.1, name)
    }

    /// Evictions withheld because the last good List is too old.
    pub(crate) async fn withheld_as_stale(&self) -> f64 {
        let metrics = get(&self.shard_http, "/metrics").await.expect("the shard answers").1;
        let name = "bigfleet_shard_action_execute_outcomes_total";
        sum_of(&metrics, name, &["\"stale_inventory\""]).unwrap_or_default()
    }

    /// Sum of a metric of the provider over those labels that hold all of `with`.
    pub(crate) async fn provider_metric(&self, name: &str, with: &[&str]) -> f64 {
        let metrics = get(&self.provider_http, "/metrics").await.expect("the provider answers").1;
        sum_of(&metrics, name, with).unwrap_or_default()
    }

    /// Starts a provider that serves when this returns.
    pub(crate) async fn boot_provider(&self, more: &[&str]) -> Process {
        let usual = [
            ("--addr", self.provider.clone()),
            ("--metrics-addr", self.provider_http.clone()),
            ("--admin-addr", self.admin.clone()),
            ("--state", self.path("state").display().to_string()),
            ("--log-level", "warn".to_owned()),
        ];
        let args: Vec<String> = flags(usual, more).collect();
        let mut provider = Process::spawn(provider_sim(), &args, &self.path("provider.log"));
        until("a provider that serves", async || {
            assert!(provider.is_running(), "it ended: {}", provider.tail());
            get(&self.provider_http, "/readyz").await.filter(|(status, _)| *status == 200)
        })
        .await;
        provider
    }

    /// A client of the provider, to look at the truth.
    pub(crate) fn provider_client(&self, security: &Security) -> Truth {
        let channel = connect_lazy(&self.provider, security, Rule::any_certificate()).unwrap();
        Truth(message_limits!(CapacityProviderClient::new(channel)))
    }

    /// A cluster with so many pods of half a machine each, alive.
    pub(crate) fn member(&self, cluster: &str, pods: usize) -> Member {
        self.member_at(&self.shard, cluster, pods, |_| {})
    }

    /// The same at another shard, with its operator prepared.
    pub(crate) fn member_at(
        &self,
        shard: &str,
        cluster: &str,
        pods: usize,
        prepare: impl FnOnce(&Operator),
    ) -> Member {
        let mut demand = Cluster::new(cluster, 0);
        demand.deploy(&Shape::new(4_000, 8 << 30), pods);
        let operator = Operator::new(shard, &Security::Plaintext, OperatorOptions::new(cluster));
        prepare(&operator);
        Member::start(operator, demand, STEP)
    }

    /// Mutations that the provider has been asked for.
    pub(crate) async fn mutations(&self) -> f64 {
        let mut all = 0.0;
        for method in ["Create", "Configure", "Drain", "Delete"] {
            let label = format!("method=\"{method}\"");
            all += self.provider_metric("bigfleet_provider_rpc_total", &[&label]).await;
        }
        all
    }

    /// Epoch in the data directory; 0 while there is none.
    pub(crate) fn epoch(&self) -> i64 {
        std::fs::read_to_string(self.path("data").join("epoch"))
            .map_or(0, |text| text.trim().parse().unwrap())
    }
}

/// What the provider says.
#[derive(Clone, Debug)]
pub(crate) struct Truth(CapacityProviderClient<Channel>);

impl Truth {
    /// All machines; none while nobody answers.
    pub(crate) async fn list(&mut self) -> Option<Vec<Machine>> {
        let list = self.0.list(ListFilter::default()).await.ok()?;
        Some(list.into_inner().machines)
    }
}
