//! Each machine is one shard's: from an empty start, over moves of domains and clusters,
//! and over kills (coordinator chapter §8, shard chapter §11, §14).

use std::collections::BTreeSet;

use bigfleet_scripted::{
    cluster::{Churn, Shape},
    member::{Member, Standing},
    operator::{Answer, State},
};
use bigfleet_wire::v1alpha1::{Machine, MoveClusterRequest};

use crate::{
    neighbourhood::{Neighbourhood, Sharer, TWO, met},
    rig::process::{PATIENCE, until},
    stock::four_and_four,
};

/// Nothing is lent here.
pub(crate) const NO_LOANS: &[&str] = &["--rebalance-interval=0"];

/// A pod that shares its machine with another.
pub(crate) fn half() -> Shape {
    Shape::new(4_000, 8 << 30)
}

/// So many pods run: what a cluster knew before it was scaled does not count.
fn met_with(pods: usize) -> impl FnMut(&Standing) -> bool {
    move |now| met(now) && now.live == pods
}

pub(crate) fn zones(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

impl Neighbourhood {
    async fn move_cluster(&self, cluster: &str, from: &str, to: &str) {
        let request = MoveClusterRequest {
            cluster_id: cluster.to_owned(),
            from_shard_id: from.to_owned(),
            to_shard_id: to.to_owned(),
        };
        self.ask(|mut leader| {
            let request = request.clone();
            async move { leader.move_cluster(request).await }
        })
        .await;
    }
}

/// From an empty start each machine is changed by exactly one shard, by the provider's
/// account, although clusters are restless; then a domain moves while demand stands, and
/// nobody loses a machine by it.
#[tokio::test]
async fn coordinator_inv_i1_two_shards_share_a_provider() {
    let all = Neighbourhood::of_nobodys(&four_and_four(2), NO_LOANS, &["one", "two"]).await;
    let witness = all.witness();
    let (one, two) = (all.shard("one"), all.shard("two"));
    let first = one.member("c1", &half(), 4);
    let restless = [one.member("c3", &half(), 4), two.member("c2", &half(), 4)];
    all.assign("zone-a", "one").await;
    all.assign("zone-b", "two").await;
    for member in restless.iter().chain([&first]) {
        member.wait_for("met demand", met, PATIENCE).await.unwrap();
    }
    for member in &restless {
        member.cluster().set_churn(Churn { replaced: 20, scaled: 100 });
    }
    let calls = all.tap.calls().len();
    until("changes of machines", async || (all.tap.calls().len() > calls + 12).then_some(())).await;
    for member in &restless {
        member.cluster().set_churn(Churn::default());
        member.cluster().scale(0, 4);
        member.wait_for("met demand again", met_with(4), PATIENCE).await.unwrap();
    }
    let callers = all.tap.by_caller();
    assert!(callers["one"].is_disjoint(&callers["two"]), "{callers:?}");
    assert_eq!(all.zones_of("one").await, zones(&["zone-a"]), "{}", one.tail());
    assert_eq!(all.zones_of("two").await, zones(&["zone-b"]), "{}", two.tail());
    all.tap.nobody_meddles();

    let [_, second] = &restless;
    let before = ids(all.serving("c1").await);
    all.move_domain("zone-a", "one", "two").await;
    all.until_settled().await;
    // What is unbound there is the other's now, what is bound stays its cluster's.
    second.cluster().scale(0, 20);
    second.wait_for("more than one zone has", met_with(20), PATIENCE).await.unwrap();
    assert!(met(&first.standing()));
    assert_eq!(ids(all.serving("c1").await), before);
    assert_eq!(all.zones_of("two").await, zones(&["zone-a", "zone-b"]));
    witness.end().await;
}

fn ids(machines: Vec<Machine>) -> BTreeSet<String> {
    machines.into_iter().map(|machine| machine.id).collect()
}

/// A shard is killed with calls under way and its domain moves at once: the next process
/// lets go when the provider refuses what the dead one may have sent, and not before.
/// Then it is killed once more; what it owns outlives it.
#[tokio::test]
async fn fault_shard_killed_with_calls_in_flight_domain_moved_at_once() {
    let mut slow = four_and_four(2);
    slow.push("--latency={create: 1s, configure: 2s, drain: 1s, delete: 1s}".to_owned());
    let mut all = Neighbourhood::open(&slow, NO_LOANS, TWO).await;
    let witness = all.witness();
    let member = all.shard("one").member("c", &half(), 12);
    until("calls under way", async || (all.tap.calls().len() >= 4).then_some(())).await;
    all.kill("one").await;
    all.move_domain("zone-a", "one", "two").await;
    let waits = all.on_the_way().await.unwrap().releasing;
    assert_eq!(waits.len(), 1, "nobody has it while the dead one may be at work on it");
    all.start("one");
    all.until_settled().await;
    assert!(all.shard("one").holdings().held().is_some_and(|held| held.domains.is_empty()));
    // Machines that were bound by then are the cluster's; without a domain no more come.
    all.move_domain("zone-b", "two", "one").await;
    member.wait_for("met demand", met, PATIENCE).await.unwrap();
    all.until_settled().await;

    all.kill("one").await;
    let held = member.standing().machines;
    all.start("one");
    member.cluster().scale(0, 16);
    let more = |now: &Standing| met(now) && now.machines > held;
    member.wait_for("more machines", more, PATIENCE).await.unwrap();
    witness.end().await;
    refuses_to_start_alone(all).await;
}

/// With its file and without the flag it would take what is its neighbours'.
async fn refuses_to_start_alone(mut all: Neighbourhood) {
    all.kill("one").await;
    let one: &Sharer = all.shard("one");
    let provider = format!("--provider-addr={}", all.tap.address());
    let mut alone = one.site.spawn_shard(&["--id=one", &provider]);
    assert!(!alone.ended().await.success());
    assert!(alone.tail().contains("--shared-provider"), "{}", alone.tail());
}

/// MoveCluster: the operator is pointed elsewhere first, hears who has it, and is served
/// once it is moved.
#[tokio::test]
async fn a_cluster_moves_with_its_machines() {
    let all = Neighbourhood::open(&four_and_four(2), NO_LOANS, TWO).await;
    let witness = all.witness();
    let member = all.shard("one").member("c", &half(), 6);
    member.wait_for("met demand", met, PATIENCE).await.unwrap();
    let before = ids(all.serving("c").await);
    {
        let mut operator = member.operator().await;
        operator.set_addr(&all.shard("two").site.shard);
        operator.abort().await;
    }
    until("the holder's name", async || {
        refusal(&member).await.filter(|text| text.contains("cluster bound to shard one"))
    })
    .await;
    all.move_cluster("c", "one", "two").await;
    until("nothing more to refuse", async || refusal(&member).await.is_none().then_some(())).await;
    member.wait_for("met demand", met, PATIENCE).await.unwrap();
    all.until_settled().await;
    assert_eq!(ids(all.serving("c").await), before, "the same machines, and no more");
    member.cluster().scale(0, 10);
    let more = |now: &Standing| met(now) && now.machines > before.len();
    member.wait_for("more machines", more, PATIENCE).await.unwrap();
    assert_eq!(all.zones_of("two").await, zones(&["zone-b"]));
    witness.end().await;
}

/// Whoever gains a domain dies while its owner lets go, and when it has just arrived.
#[tokio::test]
async fn fault_the_gainer_is_killed_while_a_domain_moves() {
    let mut all = Neighbourhood::open(&four_and_four(2), NO_LOANS, TWO).await;
    let witness = all.witness();
    let member = all.shard("two").member("c", &half(), 4);
    member.wait_for("met demand", met, PATIENCE).await.unwrap();
    all.move_domain("zone-a", "one", "two").await;
    all.kill("two").await;
    all.start("two");
    all.until_settled().await;
    all.move_domain("zone-a", "two", "one").await;
    all.until_settled().await;
    all.move_domain("zone-a", "one", "two").await;
    until("it is written down", async || {
        let held = all.shard("two").holdings();
        held.held().is_some_and(|held| held.domains.len() == 2).then_some(())
    })
    .await;
    all.kill("two").await;
    all.start("two");
    all.until_settled().await;
    member.cluster().scale(0, 20);
    member.wait_for("more than one zone has", met_with(20), PATIENCE).await.unwrap();
    assert_eq!(all.zones_of("two").await, zones(&["zone-a", "zone-b"]));
    all.tap.nobody_meddles();
    witness.end().await;
}

/// A cluster moves, and first whoever loses it dies, then whoever has just gained it.
#[tokio::test]
async fn fault_both_are_killed_while_a_cluster_moves() {
    let mut all = Neighbourhood::open(&four_and_four(2), NO_LOANS, TWO).await;
    let witness = all.witness();
    let member = all.shard("one").member("c", &half(), 6);
    member.wait_for("met demand", met, PATIENCE).await.unwrap();
    let before = ids(all.serving("c").await);
    {
        let mut operator = member.operator().await;
        operator.set_addr(&all.shard("two").site.shard);
        operator.abort().await;
    }
    all.move_cluster("c", "one", "two").await;
    all.kill("one").await;
    all.start("one");
    until("it is written down", async || {
        let held = all.shard("two").holdings();
        held.holds_cluster(&"c".into()).then_some(())
    })
    .await;
    all.kill("two").await;
    all.start("two");
    all.until_settled().await;
    member.wait_for("met demand", met, PATIENCE).await.unwrap();
    assert_eq!(ids(all.serving("c").await), before, "the same machines, and no more");
    witness.end().await;
}

/// What the last answer to a roll-up said, if it was refused.
async fn refusal(member: &Member) -> Option<String> {
    let last = |state: &State| state.answers.values().next_back().cloned();
    match member.operator().await.read(last) {
        Some(Answer::Rejected(text)) => Some(text),
        _ => None,
    }
}
