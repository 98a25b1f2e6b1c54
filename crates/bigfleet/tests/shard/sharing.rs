//! Shards that share one provider, with a real coordinator that says who owns what
//! (coordinator chapter §8, shard chapter §11, §14).

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_net::{grpc::connect_lazy, message_limits, rule::Rule, tls::Security};
use bigfleet_scripted::member::{Member, Standing};
use bigfleet_wire::v1alpha1::{
    AssignDomainRequest, ListShardsRequest, Machine, MoveClusterRequest, MoveDomainRequest,
    coordinator_client::CoordinatorClient,
};
use tonic::transport::Channel;

use crate::{
    judge::records,
    process::{PATIENCE, Process, flags, get, until},
    rig::{binaries::bigfleet, ports::port},
    site::Site,
};

/// Two zones of metal and of slots, on a provider that refuses older epochs.
const ZONES: &[&str] = &[
    "--region={name: r, zones: [{name: zone-a, racks: 1}, {name: zone-b, racks: 1}]}",
    "--tier={name: metal, type: epyc, capacity: BARE_METAL, count: 8, state: IDLE, \
     resources: {cpu: 8, memory: 32Gi}}",
    "--tier={name: slots, type: m8, capacity: ON_DEMAND, count: 8, state: SPECULATIVE, \
     price: 0.4, resources: {cpu: 8, memory: 32Gi}}",
    "--interruption-factor=0",
    "--require-token",
    "--strict-epoch",
];

const ZONE: &str = "topology.kubernetes.io/zone";

/// A coordinator alone, a provider, and shards that share it.
struct Neighbourhood {
    site: Site,
    _provider: Process,
    _coordinator: Process,
    address: String,
    rpc: CoordinatorClient<Channel>,
}

/// One shard of it.
struct Sharer {
    site: Site,
    id: &'static str,
    process: Process,
}

impl Neighbourhood {
    async fn new() -> Self {
        let site = Site::new();
        let provider = site.boot_provider(ZONES).await;
        let (address, http) = (port(), port());
        let usual = [
            ("--id", "c-0".to_owned()),
            ("--listen", address.clone()),
            ("--raft-bind", port()),
            ("--metrics-addr", http.clone()),
            ("--data-dir", site.path("coordinator").display().to_string()),
            ("--bootstrap", "true".to_owned()),
        ];
        let args = std::iter::once("coordinator".to_owned()).chain(flags(usual, &[]));
        let args: Vec<String> = args.collect();
        let log = site.path("coordinator.log");
        let mut coordinator = Process::spawn(&bigfleet(), &args, &log);
        until("a coordinator that leads", async || {
            assert!(coordinator.is_running(), "it ended: {}", coordinator.tail());
            get(&http, "/readyz").await.filter(|(status, _)| *status == 200)
        })
        .await;
        let channel = connect_lazy(&address, &Security::Plaintext, Rule::any_certificate());
        let rpc = message_limits!(CoordinatorClient::new(channel.unwrap()));
        Self { site, _provider: provider, _coordinator: coordinator, address, rpc }
    }

    fn shard(&self, id: &'static str) -> Sharer {
        self.shard_in(Site::new(), id)
    }

    fn shard_in(&self, site: Site, id: &'static str) -> Sharer {
        let process = site.spawn_shard(&[
            &format!("--id={id}"),
            &format!("--provider-addr={}", self.site.provider),
            &format!("--coordinator-addr={}", self.address),
            "--coordinator-heartbeat-interval=500ms",
            "--shared-provider",
        ]);
        Sharer { site, id, process }
    }

    /// Waits until so many shards are known.
    async fn until_registered(&mut self, shards: usize) {
        until("all shards registered", async || {
            let known = self.rpc.list_shards(ListShardsRequest {}).await.ok()?.into_inner();
            (known.shards.len() == shards).then_some(())
        })
        .await;
    }

    async fn assign(&mut self, zone: &str, shard: &str) {
        let request = AssignDomainRequest {
            topology_key: ZONE.to_owned(),
            topology_value: zone.to_owned(),
            shard_id: shard.to_owned(),
        };
        self.rpc.assign_domain(request).await.unwrap();
    }

    async fn machines(&self) -> Vec<Machine> {
        let mut truth = self.site.provider_client(&Security::Plaintext);
        until("a list", async || truth.list().await).await
    }

    /// Zones of the machines that a shard acted on.
    async fn zones_of(&self, sharer: &Sharer) -> BTreeSet<String> {
        let zones: BTreeMap<String, String> =
            self.machines().await.into_iter().map(|one| (one.id, one.zone)).collect();
        sharer.touched().into_iter().map(|machine| zones[&machine].clone()).collect()
    }
}

impl Sharer {
    /// Machines that it acted on.
    fn touched(&self) -> BTreeSet<String> {
        let records = records(&self.site.audit_log()).into_iter();
        records.map(|record| record.machine.to_string()).filter(|machine| !machine.is_empty()).collect()
    }

    fn member(&self, cluster: &str, pods: usize) -> Member {
        self.site.member(cluster, pods)
    }

    async fn holdings(&self, kind: &str) -> Option<f64> {
        let metrics = get(&self.site.shard_http, "/metrics").await?.1;
        let series = format!("bigfleet_shard_holdings{{holding=\"{kind}\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&series))?.trim().parse().ok()
    }
}

fn met(now: &Standing) -> bool {
    now.connected && now.demand_met
}

/// From an empty start each machine is acted on by exactly one shard; a domain moves
/// while demand stands, and nobody loses a machine by it.
#[tokio::test]
async fn coordinator_inv_i1_two_shards_share_a_provider() {
    let mut all = Neighbourhood::new().await;
    let (one, two) = (all.shard("one"), all.shard("two"));
    all.until_registered(2).await;
    all.assign("zone-a", "one").await;
    all.assign("zone-b", "two").await;
    let (first, second) = (one.member("c1", 10), two.member("c2", 10));
    first.wait_for("met demand", met, PATIENCE).await.unwrap();
    second.wait_for("met demand", met, PATIENCE).await.unwrap();
    let expected = |zone: &str| BTreeSet::from([zone.to_owned()]);
    assert_eq!(all.zones_of(&one).await, expected("zone-a"), "{}", one.process.tail());
    assert_eq!(all.zones_of(&two).await, expected("zone-b"), "{}", two.process.tail());
    assert!(one.touched().is_disjoint(&two.touched()));

    let held = first.standing().machines;
    let request = MoveDomainRequest {
        topology_key: ZONE.to_owned(),
        topology_value: "zone-a".to_owned(),
        from_shard_id: "one".to_owned(),
        to_shard_id: "two".to_owned(),
    };
    all.rpc.move_domain(request).await.unwrap();
    // What is unbound there is the other's now, what is bound stays its cluster's.
    second.cluster().scale(0, 20);
    second.wait_for("more than one zone has", met, PATIENCE).await.unwrap();
    let now = first.standing();
    assert!(now.demand_met && now.machines == held, "{now:?}");
    let both: BTreeSet<String> = ["zone-a".to_owned(), "zone-b".to_owned()].into();
    assert_eq!(all.zones_of(&two).await, both);
    until("it let go", async || one.holdings("releasing").await.filter(|keys| *keys == 0.0)).await;
}

/// A shard is killed and comes back; what it owns outlives it, and its epoch is known.
#[tokio::test]
async fn a_killed_shard_owns_what_it_owned() {
    let mut all = Neighbourhood::new().await;
    let mut one = all.shard("one");
    all.until_registered(1).await;
    all.assign("zone-a", "one").await;
    let member = one.member("c", 4);
    member.wait_for("met demand", met, PATIENCE).await.unwrap();
    one.process.kill().await;
    let held = member.standing().machines;
    let again = all.shard_in(one.site, one.id);
    member.cluster().scale(0, 8);
    let more = |now: &Standing| met(now) && now.machines > held;
    member.wait_for("more machines", more, PATIENCE).await.unwrap();
    assert_eq!(all.zones_of(&again).await, BTreeSet::from(["zone-a".to_owned()]));
    // Its file without the flag: it would take what is its neighbours'.
    let file = again.site.path("data").join("assignment");
    assert!(file.exists());
}

/// MoveCluster: the operator is pointed elsewhere first, and served once it is moved.
#[tokio::test]
async fn a_cluster_moves_with_its_machines() {
    let mut all = Neighbourhood::new().await;
    let (one, two) = (all.shard("one"), all.shard("two"));
    all.until_registered(2).await;
    all.assign("zone-a", "one").await;
    all.assign("zone-b", "two").await;
    let member = one.member("c", 6);
    member.wait_for("met demand", met, PATIENCE).await.unwrap();
    let bound = |machines: Vec<Machine>| -> BTreeSet<String> {
        let bound = machines.into_iter().filter(|machine| machine.cluster == "c");
        bound.map(|machine| machine.id).collect()
    };
    let before = bound(all.machines().await);
    {
        let mut operator = member.operator().await;
        operator.set_addr(&two.site.shard);
        operator.abort().await;
    }
    let request = MoveClusterRequest {
        cluster_id: "c".to_owned(),
        from_shard_id: "one".to_owned(),
        to_shard_id: "two".to_owned(),
    };
    all.rpc.move_cluster(request).await.unwrap();
    let cycles = member.standing().steps;
    let later = |now: &Standing| met(now) && now.steps > cycles + 30;
    member.wait_for("met demand", later, PATIENCE).await.unwrap();
    assert_eq!(bound(all.machines().await), before, "the same machines, and no more");
    member.cluster().scale(0, 10);
    let more = |now: &Standing| met(now) && now.machines > before.len();
    member.wait_for("more machines", more, PATIENCE).await.unwrap();
    assert_eq!(all.zones_of(&two).await, BTreeSet::from(["zone-b".to_owned()]));
}
