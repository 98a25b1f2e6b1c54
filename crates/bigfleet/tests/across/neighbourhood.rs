//! A provider, a group of coordinators, and shards that share the one and report to the
//! other.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use bigfleet_net::tls::Security;
use bigfleet_scripted::{
    cluster::{Cluster, Shape},
    member::{Member, Standing},
    operator::{Operator, OperatorOptions},
};
use bigfleet_shard::holdings::Holdings;
use bigfleet_wire::v1alpha1::{
    AssignDomainRequest, ListTransfersRequest, ListTransfersResponse, Machine, MoveDomainRequest,
    TransferEntry, coordinator_client::CoordinatorClient,
};
use tonic::{Code, Status, transport::Channel};

use crate::{
    client::Client,
    rig::{
        binaries::{bigfleet, bigfleetctl},
        ports::port,
        process::{Process, flags, get, sum_of, until},
    },
    site::{STEP, Site},
    tap::Tap,
    witness::{Files, Witness, holdings, owners},
};

/// Replicas of the coordinator.
pub(crate) const REPLICAS: usize = 3;

/// Domains are zones here.
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";

/// Shards and their zones.
pub(crate) const TWO: &[(&str, &str)] = &[("one", "zone-a"), ("two", "zone-b")];
pub(crate) const THREE: &[(&str, &str)] =
    &[("one", "zone-a"), ("two", "zone-b"), ("three", "zone-c")];

/// Where a replica of the coordinator is, and its process while it runs.
struct Replica {
    id: String,
    grpc: String,
    raft: String,
    http: String,
    process: Option<Process>,
}

/// All of them.
pub(crate) struct Neighbourhood {
    /// Of the provider, with the directories of the coordinators.
    pub(crate) site: Site,
    _provider: Process,
    pub(crate) tap: Tap,
    replicas: Vec<Replica>,
    /// Flags of every replica besides the usual ones.
    also: Vec<String>,
    client: Client,
    pub(crate) shards: Vec<Sharer>,
}

/// One shard, whether it runs or not.
pub(crate) struct Sharer {
    pub(crate) site: Site,
    pub(crate) id: &'static str,
    pub(crate) process: Option<Process>,
}

impl Sharer {
    /// The file of what it owns.
    pub(crate) fn file(&self) -> PathBuf {
        self.site.path("data").join("assignment")
    }

    pub(crate) fn holdings(&self) -> Holdings {
        holdings(&self.file())
    }

    /// Reports of its process that a coordinator took.
    pub(crate) async fn reported(&self) -> f64 {
        let Some((_, metrics)) = get(&self.site.shard_http, "/metrics").await else { return 0.0 };
        let name = "bigfleet_shard_coordinator_reports_total";
        sum_of(&metrics, name, &["outcome=\"ok\""]).unwrap_or_default()
    }

    pub(crate) fn tail(&self) -> String {
        self.process.as_ref().map_or_else(String::new, Process::tail)
    }

    /// A cluster of this shard with so many pods of this shape.
    pub(crate) fn member(&self, cluster: &str, shape: &Shape, pods: usize) -> Member {
        let mut demand = Cluster::new(cluster, 0);
        demand.deploy(shape, pods);
        let options = OperatorOptions::new(cluster);
        let operator = Operator::new(&self.site.shard, &Security::Plaintext, options);
        Member::start(operator, demand, STEP)
    }
}

/// A pod that takes a machine for itself.
pub(crate) fn whole() -> Shape {
    Shape::new(8_000, 16 << 30)
}

/// Its pods run.
pub(crate) fn met(now: &Standing) -> bool {
    now.connected && now.demand_met
}

impl Neighbourhood {
    /// A provider of these machines, coordinators with these flags besides the usual ones,
    /// and shards each with a zone of its own, which they have when this returns.
    pub(crate) async fn open(
        provider: &[String],
        coordinator: &[&str],
        shards: &[(&'static str, &str)],
    ) -> Self {
        let ids: Vec<&'static str> = shards.iter().map(|(shard, _)| *shard).collect();
        let all = Self::of_nobodys(provider, coordinator, &ids).await;
        for (shard, zone) in shards {
            all.assign(zone, shard).await;
        }
        until("shards that have their zones", async || {
            let held = |one: &Sharer| one.holdings().held().map_or(0, |held| held.domains.len());
            all.shards.iter().all(|one| held(one) == 1).then_some(())
        })
        .await;
        all
    }

    /// The same while nothing is anybody's.
    pub(crate) async fn of_nobodys(
        provider: &[String],
        coordinator: &[&str],
        shards: &[&'static str],
    ) -> Self {
        let site = Site::new();
        let provider: Vec<&str> = provider.iter().map(String::as_str).collect();
        let running = site.boot_provider(&provider).await;
        let tap = Tap::open(&site.provider).await;
        let replicas: Vec<Replica> = (0..REPLICAS)
            .map(|ordinal| {
                let [grpc, raft, http] = std::array::from_fn(|_| port());
                Replica { id: format!("c-{ordinal}"), grpc, raft, http, process: None }
            })
            .collect();
        let addresses = replicas.iter().map(|replica| replica.grpc.clone());
        let client = Client::new(addresses, &Security::Plaintext);
        let mut all = Self {
            site,
            _provider: running,
            tap,
            replicas,
            also: coordinator.iter().map(|&flag| flag.to_owned()).collect(),
            client,
            shards: Vec::new(),
        };
        (0..REPLICAS).for_each(|replica| all.start_replica(replica));
        until("a leader", async || all.client.shards().await.ok()).await;
        for &id in shards {
            all.shards.push(Sharer { site: Site::new(), id, process: None });
            all.start(id);
        }
        until("all shards registered", async || {
            let known = all.client.shards().await.ok()?;
            (known.len() == shards.len()).then_some(())
        })
        .await;
        all
    }

    fn addresses(&self) -> String {
        let all: Vec<&str> = self.replicas.iter().map(|replica| replica.grpc.as_str()).collect();
        all.join(",")
    }

    pub(crate) fn start_replica(&mut self, replica: usize) {
        let join = self.addresses();
        let place = &self.replicas[replica];
        let usual = [
            ("--id", place.id.clone()),
            ("--listen", place.grpc.clone()),
            ("--raft-bind", place.raft.clone()),
            ("--metrics-addr", place.http.clone()),
            ("--data-dir", self.site.path(&place.id).display().to_string()),
            ("--join-addr", join),
            ("--bootstrap", "true".to_owned()),
            // A leader is to stay one although the machine is busy.
            ("--raft-timer-scale", "2".to_owned()),
        ];
        let also: Vec<&str> = self.also.iter().map(String::as_str).collect();
        let args = std::iter::once("coordinator".to_owned()).chain(flags(usual, &also));
        let args: Vec<String> = args.collect();
        let log = self.site.path(&format!("{}.log", place.id));
        self.replicas[replica].process = Some(Process::spawn(&bigfleet(), &args, &log));
    }

    /// SIGKILLs whoever leads; which one that was.
    pub(crate) async fn kill_leader(&mut self) -> usize {
        let leader = self.leader().await;
        self.kill_replica(leader).await;
        leader
    }

    async fn kill_replica(&mut self, replica: usize) {
        let mut process = self.replicas[replica].process.take().expect("it runs");
        process.kill().await;
    }

    /// SIGKILLs every coordinator.
    pub(crate) async fn kill_coordinators(&mut self) {
        for replica in 0..REPLICAS {
            self.kill_replica(replica).await;
        }
    }

    pub(crate) async fn start_coordinators(&mut self) {
        (0..REPLICAS).for_each(|replica| self.start_replica(replica));
        self.leader().await;
    }

    async fn leader(&self) -> usize {
        until("a leader", async || {
            for (number, replica) in self.replicas.iter().enumerate() {
                if let Ok(status) = self.client.status(number).await
                    && status.leader_id == replica.id
                {
                    return Some(number);
                }
            }
            None
        })
        .await
    }

    /// Starts a shard, once more or for the first time.
    pub(crate) fn start(&mut self, id: &str) {
        self.start_reporting(id, "500ms");
    }

    /// The same with reports that are so far apart.
    pub(crate) fn start_reporting(&mut self, id: &str, every: &str) {
        let process = self.start_in(&self.shard(id).site, id, every);
        self.shard_mut(id).process = Some(process);
    }

    /// A process of a shard, with its files and ports there.
    pub(crate) fn start_in(&self, site: &Site, id: &str, every: &str) -> Process {
        site.spawn_shard(&[
            &format!("--id={id}"),
            &format!("--provider-addr={}", self.tap.address()),
            &format!("--coordinator-addr={}", self.addresses()),
            &format!("--coordinator-heartbeat-interval={every}"),
            "--shared-provider",
        ])
    }

    /// SIGKILLs a shard.
    pub(crate) async fn kill(&mut self, id: &str) {
        let mut process = self.shard_mut(id).process.take().expect("it runs");
        process.kill().await;
    }

    pub(crate) fn shard(&self, id: &str) -> &Sharer {
        self.shards.iter().find(|one| one.id == id).expect("a shard of this id")
    }

    fn shard_mut(&mut self, id: &str) -> &mut Sharer {
        self.shards.iter_mut().find(|one| one.id == id).expect("a shard of this id")
    }

    /// Asks whoever leads, until somebody does: a slow disk is enough to change that.
    pub(crate) async fn ask<T, F>(&self, mut call: impl FnMut(CoordinatorClient<Channel>) -> F) -> T
    where
        F: Future<Output = Result<T, Status>>,
    {
        until("a leader's answer", async || match self.client.ask(&mut call).await {
            Err(other) if matches!(other.code(), Code::FailedPrecondition | Code::Unavailable) => {
                None
            }
            answer => Some(answer.unwrap()),
        })
        .await
    }

    pub(crate) async fn assign(&self, zone: &str, shard: &str) {
        let request = AssignDomainRequest {
            topology_key: ZONE.to_owned(),
            topology_value: zone.to_owned(),
            shard_id: shard.to_owned(),
        };
        self.ask(|mut leader| {
            let request = request.clone();
            async move { leader.assign_domain(request).await }
        })
        .await;
    }

    pub(crate) async fn move_domain(&self, zone: &str, from: &str, to: &str) {
        let request = MoveDomainRequest {
            topology_key: ZONE.to_owned(),
            topology_value: zone.to_owned(),
            from_shard_id: from.to_owned(),
            to_shard_id: to.to_owned(),
        };
        self.ask(|mut leader| {
            let request = request.clone();
            async move { leader.move_domain(request).await }
        })
        .await;
    }

    /// What `bigfleetctl` prints.
    pub(crate) async fn ctl(&self, args: &[&str]) -> String {
        let mut command = tokio::process::Command::new(bigfleetctl());
        command.env_clear().env("HOME", self.site.path(""));
        let done = command.args(["--coordinator", &self.addresses()]).args(args).output().await;
        let done = done.unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    /// What is on its way; none while nobody leads.
    pub(crate) async fn on_the_way(&self) -> Option<ListTransfersResponse> {
        let request = ListTransfersRequest {};
        let call =
            self.client.ask(|mut leader| async move { leader.list_transfers(request).await });
        Some(call.await.ok()?.into_inner())
    }

    pub(crate) async fn transfers(&self) -> Option<Vec<TransferEntry>> {
        Some(self.on_the_way().await?.transfers)
    }

    /// Sum of a coordinator metric over all replicas and the labels that hold all of
    /// `with`.
    pub(crate) async fn metric(&self, name: &str, with: &[&str]) -> f64 {
        let mut all = 0.0;
        for replica in &self.replicas {
            let Some((_, metrics)) = get(&replica.http, "/metrics").await else { continue };
            all += sum_of(&metrics, name, with).unwrap_or_default();
        }
        all
    }

    /// What the provider says, without the tap.
    pub(crate) async fn machines(&self) -> Vec<Machine> {
        let mut truth = self.site.provider_client(&Security::Plaintext);
        until("a list", async || truth.list().await).await
    }

    /// Machines that serve a cluster.
    pub(crate) async fn serving(&self, cluster: &str) -> Vec<Machine> {
        let machines = self.machines().await;
        machines.into_iter().filter(|machine| machine.cluster == cluster).collect()
    }

    fn files(&self) -> Files {
        self.shards.iter().map(|one| (one.id, one.file())).collect()
    }

    /// Looks that no machine has two owners, from now on.
    pub(crate) fn witness(&self) -> Witness {
        Witness::start(self.files(), self.site.provider_client(&Security::Plaintext))
    }

    /// Nothing is on its way, and each machine has one owner. A machine that has moved and is
    /// not used may wait for half an hour with its recipient: while a donor is dead, another
    /// one may have given its own.
    pub(crate) async fn until_settled(&self) {
        let mut truth = self.site.provider_client(&Security::Plaintext);
        until("one owner for each machine", async || {
            let open = self.on_the_way().await?;
            let arrived = open.transfers.iter().all(|one| one.phase == "moved");
            (arrived && open.releasing.is_empty()).then_some(())?;
            let machines = truth.list().await?;
            let owners = owners(&self.files(), &machines);
            owners.values().all(|owners| owners.len() == 1).then_some(())
        })
        .await;
    }

    /// Who owns each machine.
    pub(crate) async fn owners(&self) -> BTreeMap<String, Vec<&'static str>> {
        owners(&self.files(), &self.machines().await)
    }

    /// Zones of the machines that a shard changed.
    pub(crate) async fn zones_of(&self, shard: &str) -> BTreeSet<String> {
        let machines = self.machines().await;
        let touched = self.tap.by_caller().remove(shard).unwrap_or_default();
        let of_his = machines.into_iter().filter(|machine| touched.contains(&machine.id));
        of_his.map(|machine| machine.zone).collect()
    }
}
