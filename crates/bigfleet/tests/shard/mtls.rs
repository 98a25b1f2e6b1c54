//! Who may call what (wire chapter §1), and certificates that change while
//! everybody works.

use std::sync::Arc;

use bigfleet_net::{
    grpc::connect,
    rule::Rule,
    tls::{Security, Tls},
};
use bigfleet_scripted::{
    cluster::{Churn, Cluster, Shape},
    member::{Member, Standing},
    operator::{Operator, OperatorOptions},
};
use bigfleet_testkit::pki::{LOOPBACK, Leaf, Material, Pki};
use bigfleet_wire::v1alpha1::{
    ActuationMode, ExplainNeedRequest, GetActuationRequest, GetMachineRequest, InspectNeedsRequest,
    ListMachinesRequest, ListSessionsRequest, SetActuationRequest, WatchDecisionsRequest,
    WatchSummaryRequest, WhatIfRequest, shard_admin_client::ShardAdminClient,
    shard_observe_client::ShardObserveClient, shard_read_client::ShardReadClient,
};
use tonic::{Code, Status, transport::Channel};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use crate::{
    process::PATIENCE,
    site::{SMALL, STEP, Site},
};

pub(crate) const SHARD: &str = "bigfleet://shard/s-1";
pub(crate) const PROVIDER: &str = "bigfleet://provider/sim";
pub(crate) const CLUSTER: &str = "bigfleet://cluster/own";

pub(crate) fn security(material: &Material) -> Security {
    Security::Mtls(Arc::new(Tls::load(&material.cert(), &material.key(), &material.ca()).unwrap()))
}

pub(crate) fn args<'a>(material: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    material.iter().map(String::as_str).chain(more.iter().copied()).collect()
}

/// `--flag=value` each.
pub(crate) fn flags(material: &Material) -> Vec<String> {
    material.args().chunks(2).map(|pair| pair.join("=")).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rpc {
    Health,
    Session,
    SetActuation,
    GetActuation,
    InspectNeeds,
    WatchSummary,
    WatchDecisions,
    ListMachines,
    GetMachine,
    ListSessions,
    ExplainNeed,
    WhatIf,
}

use Rpc::{
    ExplainNeed, GetActuation, GetMachine, Health, InspectNeeds, ListMachines, ListSessions,
    Session, SetActuation, WatchDecisions, WatchSummary, WhatIf,
};

const ALL: [Rpc; 12] = [
    Health,
    Session,
    SetActuation,
    GetActuation,
    InspectNeeds,
    WatchSummary,
    WatchDecisions,
    ListMachines,
    GetMachine,
    ListSessions,
    ExplainNeed,
    WhatIf,
];

impl Rpc {
    /// Who is let in, and what becomes of its call.
    fn admits(self, identities: &[&str]) -> bool {
        match self {
            Health => true,
            Session => identities == [CLUSTER],
            SetActuation => identities == ["bigfleet://admin"],
            _ => identities == ["bigfleet://admin"] || identities == ["bigfleet://readonly"],
        }
    }

    fn admitted(self) -> Code {
        match self {
            GetMachine | ExplainNeed => Code::NotFound,
            WhatIf => Code::InvalidArgument,
            _ => Code::Ok,
        }
    }

    async fn call(self, site: &Site, security: &Security) -> Code {
        if self == Session {
            let options = OperatorOptions::new("own");
            let session = Operator::connect(&site.shard, security, options).await;
            return session.map_or_else(|status| status.code(), |_| Code::Ok);
        }
        let Ok(channel) = connect(&site.shard, security, Rule::any_shard()).await else {
            return Code::Unavailable;
        };
        self.over(channel).await.map_or_else(|status| status.code(), |()| Code::Ok)
    }

    async fn over(self, channel: Channel) -> Result<(), Status> {
        let mut admin = ShardAdminClient::new(channel.clone());
        let mut read = ShardReadClient::new(channel.clone());
        let mut observe = ShardObserveClient::new(channel.clone());
        let machine = || GetMachineRequest { machine_id: "nobody".to_owned() };
        let active = || SetActuationRequest {
            mode: ActuationMode::Active.into(),
            reason: "a test".to_owned(),
        };
        match self {
            Session => unreachable!("has a client of its own"),
            Health => drop(HealthClient::new(channel).check(HealthCheckRequest::default()).await?),
            SetActuation => drop(admin.set_actuation(active()).await?),
            GetActuation => drop(admin.get_actuation(GetActuationRequest {}).await?),
            InspectNeeds => drop(read.inspect_needs(InspectNeedsRequest::default()).await?),
            WatchSummary => drop(observe.watch_summary(WatchSummaryRequest::default()).await?),
            WatchDecisions => {
                drop(observe.watch_decisions(WatchDecisionsRequest::default()).await?);
            }
            ListMachines => drop(observe.list_machines(ListMachinesRequest::default()).await?),
            GetMachine => drop(observe.get_machine(machine()).await?),
            ListSessions => drop(observe.list_sessions(ListSessionsRequest::default()).await?),
            ExplainNeed => drop(observe.explain_need(ExplainNeedRequest::default()).await?),
            WhatIf => drop(observe.what_if(WhatIfRequest::default()).await?),
        }
        Ok(())
    }
}

#[tokio::test]
async fn every_call_by_every_identity() {
    let pki = Pki::new().unwrap();
    let site = Site::new();
    let [own, others] = [SHARD, PROVIDER].map(|identity| pki.material(&[identity]).unwrap());
    let _provider = site.boot_provider(&args(&flags(&others), SMALL)).await;
    let demands = format!("--provider-identity={PROVIDER}");
    let _shard = site.boot_shard(&args(&flags(&own), &[&demands])).await;

    let identities: &[&[&str]] = &[
        &["bigfleet://admin"],
        &["bigfleet://readonly"],
        &[CLUSTER],
        &["bigfleet://cluster/foreign"],
        &[SHARD],
        &["bigfleet://shard/s-2"],
        &["bigfleet://coordinator/n-1"],
        &[PROVIDER],
        &[],
        &[CLUSTER, "bigfleet://cluster/foreign"],
        &["bigfleet://admin", "bigfleet://readonly"],
    ];
    let mut denied = 0.0;
    for identity in identities {
        let material = pki.material(identity).unwrap();
        let security = security(&material);
        for rpc in ALL {
            let code = rpc.call(&site, &security).await;
            let admitted = rpc.admits(identity);
            let expected = if admitted { rpc.admitted() } else { Code::PermissionDenied };
            denied += f64::from(u8::from(!admitted));
            assert_eq!(code, expected, "{rpc:?} by {identity:?}");
        }
    }
    let rejected = site.metric("bigfleet_shard_session_identity_rejected_total").await;
    assert_eq!(rejected, Some(denied), "each of them is a security event");

    let other = Pki::new().unwrap();
    for identity in [&["bigfleet://admin"][..], &[CLUSTER]] {
        // It trusts our CA, but ours does not know it.
        let leaf = other.issue(identity, LOOPBACK).unwrap();
        let material = Material::write(&leaf, &pki.ca_pem()).unwrap();
        for rpc in ALL {
            // The shard hangs up; when its client learns of that is a matter of luck.
            let code = rpc.call(&site, &security(&material)).await;
            let cut = [Code::Unavailable, Code::Cancelled, Code::Unknown].contains(&code);
            assert!(cut, "{rpc:?} of another CA: {code:?}");
        }
    }
    for rpc in ALL {
        let code = rpc.call(&site, &Security::Plaintext).await;
        assert_ne!(code, Code::Ok, "{rpc:?} in plaintext");
    }
    let after = site.metric("bigfleet_shard_session_identity_rejected_total").await;
    assert_eq!(after, rejected, "they never get so far");
}

#[tokio::test]
async fn a_leaf_of_somebody_else_does_not_start() {
    let pki = Pki::new().unwrap();
    let site = Site::new();
    let wrong: &[&[&str]] =
        &[&["bigfleet://shard/s-2"], &["bigfleet://admin"], &[], &[SHARD, PROVIDER]];
    for identities in wrong {
        let material = pki.material(identities).unwrap();
        let mut shard = site.spawn_shard(&args(&flags(&material), &[]));
        assert_eq!(shard.ended().await.code(), Some(1), "{identities:?}: {}", shard.tail());
        let tail = shard.tail();
        assert!(tail.contains("must carry bigfleet://shard/s-1"), "{identities:?}: {tail}");
    }
    assert_eq!(site.epoch(), 0, "whoever is refused takes no epoch");
}

/// Everybody's certificates.
struct Holders {
    shard: Material,
    provider: Material,
    clusters: Vec<Material>,
}

impl Holders {
    fn new(pki: &Pki, clusters: usize) -> Self {
        let material = |identity: &str| pki.material(&[identity]).unwrap();
        let clusters = (0..clusters).map(|at| material(&Self::cluster(at))).collect();
        Self { shard: material(SHARD), provider: material(PROVIDER), clusters }
    }

    fn cluster(at: usize) -> String {
        format!("bigfleet://cluster/c{at}")
    }

    fn all(&self) -> impl Iterator<Item = (String, &Material)> {
        let processes = [(SHARD.to_owned(), &self.shard), (PROVIDER.to_owned(), &self.provider)];
        let clusters = self.clusters.iter().enumerate();
        processes.into_iter().chain(clusters.map(|(at, one)| (Self::cluster(at), one)))
    }

    fn reissue(&self, pki: &Pki) {
        for (identity, material) in self.all() {
            let leaf: Leaf = pki.issue(&[&identity], LOOPBACK).unwrap();
            material.replace_leaf(&leaf).unwrap();
        }
    }

    fn trust(&self, bundle: &str) {
        self.all().for_each(|(_, material)| material.replace_ca(bundle).unwrap());
    }
}

fn restless(site: &Site, at: usize, material: &Material) -> Member {
    let name = format!("c{at}");
    let mut cluster = Cluster::new(&name, at as u64);
    cluster.deploy(&Shape::new(4_000, 8 << 30), 4);
    cluster.set_churn(Churn { replaced: 0, scaled: 100 });
    let options = OperatorOptions::new(name).without_record();
    Member::start(Operator::new(&site.shard, &security(material), options), cluster, STEP)
}

/// All of them live on, on the sessions that they have.
async fn go_on(members: &[Member]) {
    let steps: Vec<u64> = members.iter().map(|member| member.standing().steps).collect();
    for (member, steps) in members.iter().zip(steps) {
        let later = |now: &Standing| now.steps > steps + 5 && now.connected;
        member.wait_for("more steps", later, PATIENCE).await.unwrap();
        assert_eq!(member.standing().sessions, 1, "a session was dropped");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_rotate_under_load_without_a_dropped_session() {
    const CLUSTERS: usize = 8;
    let fleet = "--tier={name: metal, type: epyc, capacity: BARE_METAL, count: 60, state: IDLE, \
                 resources: {cpu: 8, memory: 32Gi}}";
    let (old, new) = (Pki::new().unwrap(), Pki::new().unwrap());
    let holders = Holders::new(&old, CLUSTERS);
    let site = Site::new();
    let at_provider = flags(&holders.provider);
    let at_provider = args(&at_provider, &[fleet, "--interruption-factor=0"]);
    let mut provider = site.boot_provider(&at_provider).await;
    let demands = format!("--provider-identity={PROVIDER}");
    let mut shard = site.boot_shard(&args(&flags(&holders.shard), &[&demands])).await;
    let clusters = holders.clusters.iter().enumerate();
    let members: Vec<Member> =
        clusters.map(|(at, material)| restless(&site, at, material)).collect();
    for member in &members {
        member.wait_for("machines", |now| now.machines > 0, PATIENCE).await.unwrap();
    }

    // Who has nothing but this CA.
    let admin = |pki: &Pki| security(&pki.material(&["bigfleet://admin"]).unwrap());
    let steps: [(&str, &dyn Fn()); 4] = [
        ("new leaves", &|| holders.reissue(&old)),
        ("a second CA", &|| holders.trust(&(old.ca_pem() + &new.ca_pem()))),
        ("leaves of the new CA", &|| holders.reissue(&new)),
        ("without the old CA", &|| holders.trust(&new.ca_pem())),
    ];
    for (at, (what, step)) in steps.into_iter().enumerate() {
        step();
        go_on(&members).await;
        // New connections see what is in the files now.
        let expected =
            if at < 2 { [Code::Ok, Code::Unavailable] } else { [Code::Unavailable, Code::Ok] };
        for (pki, expected) in [&old, &new].into_iter().zip(expected) {
            assert_eq!(GetActuation.call(&site, &admin(pki)).await, expected, "{what}");
        }
    }
    // The shard dials with what it has now, too. Not with calls under way: one that
    // nobody answers would hold its machine for a minute.
    let served = async |pods: usize| {
        for member in &members {
            member.cluster().set_churn(Churn::default());
            member.cluster().scale(0, pods);
            let met = |now: &Standing| now.demand_met && now.machines == pods.div_ceil(2);
            member.wait_for("machines as asked for", met, PATIENCE).await.unwrap();
        }
    };
    served(4).await;
    provider.kill().await;
    let _provider = site.boot_provider(&at_provider).await;
    served(6).await;
    go_on(&members).await;
    assert!(shard.is_running());
}
