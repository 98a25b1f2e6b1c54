//! Each machine has one owner, and nobody else touches it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bigfleet_model::MachineState;
use bigfleet_net::tls::Security;
use bigfleet_provider::{
    Configure, Error, Identity, Provider, Secret, Stamped,
    fake::{Fake, LoggedCall, Method, Script},
};
use bigfleet_scripted::{
    cluster::{Churn, Cluster, Shape},
    member::Member,
    operator::{Answer, Operator, OperatorOptions},
};
use bigfleet_wire::v1alpha1::{QuotaSlice, ShardReport};

use crate::shared::rig::{
    Sharer, assignment, configured, machines, offer, pass, provider, touched, until,
};

/// Two shards, one provider, nothing to begin with: all machines are used, each by the
/// shard that has its domain.
#[tokio::test(start_paused = true)]
async fn coordinator_inv_i1_two_shards_share_a_provider_from_an_empty_start() {
    let fake = provider();
    let (one, two) = (Sharer::start(&fake, "one").await, Sharer::start(&fake, "two").await);
    let (first, second) = (one.operator("c1").await, two.operator("c2").await);
    pass(60).await;
    assert!(one.touched().is_empty() && two.touched().is_empty(), "nothing is anybody's");
    let refused = first.roll_up(machines("c1", 6)).await.expect("an answer");
    let Answer::Rejected(text) = refused else { panic!("{refused:?}") };
    assert!(text.contains("cluster bound to no shard yet"), "{text}");

    one.assign(assignment(5, &["a"], &["c1"])).await;
    two.assign(assignment(6, &["b"], &["c2"])).await;
    pass(30).await;
    for (operator, cluster) in [(&first, "c1"), (&second, "c2")] {
        let answer = operator.roll_up(machines(cluster, 6)).await.expect("an answer");
        assert_eq!(answer, Answer::Accepted);
    }
    until("both served", || {
        configured(&fake, "c1").len() == 6 && configured(&fake, "c2").len() == 6
    })
    .await;
    let of_zone = |zone: &str| -> BTreeSet<String> {
        let all = (0..4).flat_map(|n| [format!("idle-{zone}{n}"), format!("slot-{zone}{n}")]);
        all.collect()
    };
    assert!(one.touched().is_subset(&of_zone("a")), "{:?}", one.touched());
    assert!(two.touched().is_subset(&of_zone("b")), "{:?}", two.touched());
    for operator in [&first, &second] {
        operator.roll_up(vec![]).await.expect("an answer");
    }
    one.stop().await;
    two.stop().await;
}

/// An hour of restless clusters: no machine is changed by two, by the provider's account.
#[tokio::test(start_paused = true)]
async fn coordinator_inv_i1_an_hour_of_churn() {
    let fake = provider();
    let sharers = [Sharer::start(&fake, "one").await, Sharer::start(&fake, "two").await];
    let mut members = Vec::new();
    for (sharer, (zone, cluster)) in sharers.iter().zip([("a", "c1"), ("b", "c2")]) {
        let mut demand = Cluster::new(cluster, 7);
        demand.deploy(&Shape::new(4_000, 16 << 30), 5);
        demand.set_churn(Churn { replaced: 30, scaled: 200 });
        let options = OperatorOptions::new(cluster);
        let operator = Operator::new(&sharer.addr, &Security::Plaintext, options);
        members.push(Member::start(operator, demand, Duration::from_secs(5)));
        sharer.assign(assignment(5, &[zone], &[cluster])).await;
    }
    let mut callers: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut calls = 0;
    // The provider remembers a while.
    for _ in 0..60 {
        pass(60).await;
        for LoggedCall { token, machine, .. } in fake.calls() {
            let Some(token) = token.filter(|_| !machine.starts_with("epoch")) else { continue };
            callers.entry(machine).or_default().insert(token.shard_id.to_string());
            calls += 1;
        }
        fake.clear_calls();
    }
    assert!(callers.values().all(|callers| callers.len() == 1), "{callers:?}");
    assert!(callers.len() > 8 && calls > 200, "{} machines, {calls} calls", callers.len());
    drop(members);
    for sharer in sharers {
        sharer.stop().await;
    }
}

/// What is bound is its cluster's, wherever it stands; unbound, it is its domain's.
#[tokio::test(start_paused = true)]
async fn a_machine_that_is_drained_falls_to_the_holder_of_its_domain() {
    let fake = provider();
    let one = Sharer::start(&fake, "one").await;
    one.assign(assignment(5, &["a"], &["c"])).await;
    pass(30).await;
    let operator = one.operator("c").await;
    operator.roll_up(machines("c", 2)).await.expect("an answer");
    until("served", || configured(&fake, "c").len() == 2).await;
    let bound = configured(&fake, "c");

    // The domain moves away; the cluster keeps its machines.
    one.assign(assignment(6, &["b"], &["c"])).await;
    pass(60).await;
    assert_eq!(configured(&fake, "c"), bound, "nothing is drained");
    let shown = operator.read(|state| state.picture.count(MachineState::Configured));
    assert_eq!(shown, 2, "and the cluster is still told of them");

    fake.clear_calls();
    operator.roll_up(vec![]).await.expect("an answer");
    until("drained", || configured(&fake, "c").is_empty()).await;
    pass(1_200).await;
    let touched = one.touched();
    assert!(touched.iter().all(|id| bound.contains(id) || id.contains("-b")), "{touched:?}");
    // Idle, they are of a domain that is not ours: nobody deletes them.
    for id in &bound {
        assert_eq!(fake.machine(id).expect("there").state, MachineState::Idle, "{id}");
    }
    one.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_without_the_label_is_nobodys_and_counted() {
    let fake = provider();
    fake.add_idle("homeless", &offer("")).expect("an offer");
    let one = Sharer::start(&fake, "one").await;
    one.assign(assignment(5, &["a", "b"], &["c"])).await;
    pass(30).await;
    let operator = one.operator("c").await;
    operator.roll_up(machines("c", 40)).await.expect("an answer");
    until("all in use", || configured(&fake, "c").len() == 16).await;
    pass(60).await;
    assert!(!one.touched().contains("homeless"));
    assert_eq!(one.metric("bigfleet_shard_machines_without_owner "), 1.0);
    one.stop().await;
}

/// §14: a slice bounds what is bought; what the neighbours use of our domains counts.
#[tokio::test(start_paused = true)]
async fn a_slice_bounds_what_is_bought() {
    let fake = provider();
    let (one, two) = (Sharer::start(&fake, "one").await, Sharer::start(&fake, "two").await);
    let slice = |slice| QuotaSlice { provider: "fake".into(), region: "r".into(), slice };
    // Four are Idle already, and two may be bought besides.
    let mut ours = assignment(5, &["a"], &["c"]);
    ours.quota_slices = vec![slice(6)];
    one.assign(ours).await;
    two.assign(assignment(6, &["b"], &["d"])).await;
    pass(30).await;
    let operator = one.operator("c").await;
    operator.roll_up(machines("c", 8)).await.expect("an answer");
    until("as many as there may be", || configured(&fake, "c").len() == 6).await;
    pass(300).await;
    assert_eq!(configured(&fake, "c").len(), 6);
    let slots: Vec<String> = one.touched().into_iter().filter(|id| id.contains("slot")).collect();
    assert_eq!(slots, ["slot-a0", "slot-a1"], "the lowest ids");

    // The cluster goes to the neighbour, the machines stay drawn on our share.
    one.assign(assignment_with(7, &["a"], &[], slice(6))).await;
    two.assign(assignment(8, &["b"], &["c", "d"])).await;
    pass(60).await;
    let mine = one.operator("e").await;
    one.assign(assignment_with(9, &["a"], &["e"], slice(6))).await;
    pass(60).await;
    fake.clear_calls();
    mine.roll_up(machines("e", 2)).await.expect("an answer");
    pass(300).await;
    assert!(touched(&fake, "one").is_empty(), "{:?}", touched(&fake, "one"));
    one.assign(assignment_with(10, &["a"], &["e"], slice(7))).await;
    until("one more", || configured(&fake, "e").len() == 1).await;
    pass(300).await;
    assert_eq!(configured(&fake, "e").len(), 1);
    one.stop().await;
    two.stop().await;
}

/// Machines of a gained domain draw on the share before anybody has told how many they
/// are: nothing is bought until a List has, although it is slow.
#[tokio::test(start_paused = true)]
async fn nothing_is_bought_before_a_gained_domain_was_counted() {
    let fake = provider();
    let one = Sharer::start(&fake, "one").await;
    let slice = QuotaSlice { provider: "fake".into(), region: "r".into(), slice: 6 };
    one.assign(assignment_with(5, &["a"], &["c"], slice.clone())).await;
    pass(30).await;
    let operator = one.operator("c").await;
    operator.roll_up(machines("c", 4)).await.expect("an answer");
    until("what is Idle", || configured(&fake, "c").len() == 4).await;
    // Two may be bought for as long as its domain is the only one; with the four machines
    // of the other there are more than there may be.
    fake.clear_calls();
    fake.script(Script { reply_delay: Duration::from_secs(25), ..Script::next(Method::List) });
    one.assign(assignment_with(6, &["a", "b"], &["c"], slice)).await;
    operator.roll_up(machines("c", 8)).await.expect("an answer");
    until("what the other domain has", || configured(&fake, "c").len() == 8).await;
    pass(300).await;
    let touched = one.touched();
    assert!(!touched.iter().any(|id| id.contains("slot")), "{touched:?}");
    one.stop().await;
}

/// The machines of a cluster that moves away draw on the share at once, not only from the
/// next List on, which is slow.
#[tokio::test(start_paused = true)]
async fn what_has_just_left_draws_on_the_share() {
    let fake = provider();
    let one = Sharer::start(&fake, "one").await;
    let slice = QuotaSlice { provider: "fake".into(), region: "r".into(), slice: 6 };
    one.assign(assignment_with(5, &["a"], &["c", "e"], slice.clone())).await;
    pass(30).await;
    let served = one.operator("c").await;
    served.roll_up(machines("c", 6)).await.expect("an answer");
    until("the whole share", || configured(&fake, "c").len() == 6).await;
    let lacking = one.operator("e").await;
    lacking.roll_up(machines("e", 2)).await.expect("an answer");
    pass(60).await;
    fake.clear_calls();
    fake.script(Script { reply_delay: Duration::from_secs(25), ..Script::next(Method::List) });
    one.assign(assignment_with(6, &["a"], &["e"], slice)).await;
    pass(300).await;
    assert!(touched(&fake, "one").is_empty(), "{:?}", touched(&fake, "one"));
    one.stop().await;
}

/// A slot that fails keeps no place of the share from the next one, and does not hide,
/// when it may be tried again, that the share is used up.
#[tokio::test(start_paused = true)]
async fn what_is_lacking_is_told_although_a_slot_failed() {
    let fake = provider();
    let out_of_stock = Error::Internal("no stock".to_owned());
    fake.fail_next("slot-a0", MachineState::Idle, out_of_stock);
    let one = Sharer::start(&fake, "one").await;
    let slice = QuotaSlice { provider: "fake".into(), region: "r".into(), slice: 6 };
    one.assign(assignment_with(5, &["a"], &["c"], slice)).await;
    pass(30).await;
    let operator = one.operator("c").await;
    operator.roll_up(machines("c", 8)).await.expect("an answer");
    until("as many as there may be", || configured(&fake, "c").len() == 6).await;
    pass(120).await;
    let slots: Vec<String> = one.touched().into_iter().filter(|id| id.contains("slot")).collect();
    assert_eq!(slots, ["slot-a0", "slot-a1", "slot-a2"]);
    assert_eq!(fake.machine("slot-a0").expect("there").state, MachineState::Speculative);
    let age = |report: &ShardReport| report.shortfalls.first().map(|one| one.age_cycles);
    let before = age(&one.last_report().await).expect("a shortfall");
    pass(60).await;
    let after = age(&one.last_report().await).expect("still");
    assert!(after >= before + 3, "{before} {after}");
    one.stop().await;
}

fn assignment_with(
    version: i64,
    zones: &[&str],
    clusters: &[&str],
    slice: QuotaSlice,
) -> bigfleet_wire::v1alpha1::Assignment {
    let mut assignment = assignment(version, zones, clusters);
    assignment.quota_slices = vec![slice];
    assignment
}

/// A gained machine is acted on only from a List begun after the gain: one that began
/// before shows it as it was in other hands.
#[tokio::test(start_paused = true)]
async fn nothing_is_done_by_a_list_from_before_the_gain() {
    let fake = provider();
    let one = Sharer::start(&fake, "one").await;
    one.assign(assignment(5, &["a"], &["c"])).await;
    pass(30).await;
    let operator = one.operator("c").await;
    operator.roll_up(machines("c", 12)).await.expect("an answer");
    until("all of our domain", || configured(&fake, "c").len() == 8).await;
    let lists =
        |fake: &Fake| fake.calls().iter().filter(|call| call.method == Method::List).count();
    // Read, and on its way for a while.
    let reply_delay = Duration::from_secs(60);
    fake.script(Script { reply_delay, ..Script::next(Method::List) });
    let before = lists(&fake);
    until("a slow list", || lists(&fake) > before).await;
    // Its owner uses them once more, and lets go.
    let other = Stamped::new(fake.clone(), Identity::new("other", 1));
    for number in 0..4 {
        let request = Configure {
            cluster: "elsewhere".into(),
            blob: Secret::from(vec![]),
            metadata: Default::default(),
        };
        let machine = format!("idle-b{number}").into();
        Provider::configure(&other, &machine, request, None).await.expect("taken");
    }
    one.assign(assignment(6, &["a", "b"], &["c"])).await;
    until("slots of the gained domain", || configured(&fake, "c").len() == 12).await;
    let touched = one.touched();
    assert!(!touched.iter().any(|id| id.contains("idle-b")), "{touched:?}");
    one.stop().await;
}

/// The same of a machine that was known until then, because it served our cluster: whoever
/// had its domain may have used it since the List was read.
#[tokio::test(start_paused = true)]
async fn what_was_known_is_not_taken_from_a_list_from_before_the_gain_either() {
    let fake = provider();
    let one = Sharer::start(&fake, "one").await;
    one.assign(assignment(5, &["b"], &["c"])).await;
    pass(30).await;
    let operator = one.operator("c").await;
    operator.roll_up(machines("c", 1)).await.expect("an answer");
    until("served", || configured(&fake, "c").len() == 1).await;
    let bound = configured(&fake, "c").remove(0);
    one.assign(assignment(6, &["a"], &["c"])).await;
    operator.roll_up(machines("c", 20)).await.expect("an answer");
    until("all of the other domain", || configured(&fake, "c").len() == 9).await;
    // A List that arrives late and comes back later still.
    let (delay, reply_delay) = (Duration::from_secs(15), Duration::from_secs(30));
    let lists =
        |fake: &Fake| fake.calls().iter().filter(|call| call.method == Method::List).count();
    let before = lists(&fake);
    until("a list that ends", || lists(&fake) > before).await;
    fake.script(Script { delay, reply_delay, ..Script::next(Method::List) });
    let before = lists(&fake);
    let other = Stamped::new(fake.clone(), Identity::new("other", 1));
    let id = bound.as_str().into();
    pass(10).await;
    Provider::drain(&other, &id, Duration::ZERO, None).await.expect("taken");
    until("the list is read", || lists(&fake) > before).await;
    assert_eq!(fake.machine(&bound).expect("there").state, MachineState::Idle);
    let request = Configure {
        cluster: "elsewhere".into(),
        blob: Secret::from(vec![]),
        metadata: Default::default(),
    };
    Provider::configure(&other, &id, request, None).await.expect("taken");
    one.assign(assignment(7, &["a", "b"], &["c"])).await;
    fake.clear_calls();
    until("the rest of the gained domain", || configured(&fake, "c").len() == 8 + 7).await;
    let touched = one.touched();
    assert!(!touched.contains(&bound), "{touched:?}");
    one.stop().await;
}
