//! The rules of §§1 and 2 as the fake shows them.

use bigfleet_model::MachineState::*;
use bigfleet_provider::{
    Attempt, Error, FencedProvider, ListFilter,
    fake::{Fake, FakeOptions},
    protocol::{FencePolicy, Kind, StateSet, Token},
};
use tokio::time::Instant;
use tonic::Code;

use crate::rig::{attempt, fake, for_cluster, mutate, state};

#[tokio::test]
async fn one_life_waits_at_every_transition_and_binds_and_unbinds_whole() {
    let fake = fake(FakeOptions::default());
    let id = "spec-0";
    let walk = [
        (Kind::Create, Creating, Idle),
        (Kind::Configure, Configuring, Configured),
        (Kind::Drain, Draining, Idle),
        (Kind::Delete, Deleting, Speculative),
    ];
    let mut ids = Vec::new();
    for (sequence, (kind, transitional, target)) in (1..).zip(walk) {
        let ack = mutate(&fake, &attempt("s", 1, sequence), kind, id).await.unwrap();
        assert_eq!(state(&ack), transitional);
        let machine = ack.machine.unwrap();
        let bound = matches!(transitional, Configuring | Draining);
        assert_eq!(machine.cluster.is_some(), bound);
        assert_eq!(!machine.shard_metadata.is_empty(), bound);
        assert_eq!(machine.host.is_some(), kind != Kind::Create);
        ids.push(ack.operation_id);
        assert!(fake.complete_staged(id));
        let machine = fake.get(&id.into(), None).await.unwrap();
        assert_eq!(machine.state, target);
        assert_eq!(machine.cluster.is_some(), target == Configured);
        assert_eq!(machine.shard_metadata.is_empty(), target != Configured);
        assert_eq!(machine.host.is_some(), target != Speculative);
        assert!(!fake.complete_staged(id));
    }
    assert_eq!(ids, ["op-1", "op-2", "op-3", "op-4"]);
}

#[tokio::test]
async fn a_repeat_gets_the_same_id_until_a_new_cycle_begins() {
    let fake = fake(FakeOptions::default());
    let mut sequence = 0;
    let mut send = async |kind| {
        sequence += 1;
        mutate(&fake, &attempt("s", 1, sequence), kind, "idle-0").await
    };
    let first = send(Kind::Configure).await.unwrap();
    assert_eq!(send(Kind::Configure).await.unwrap(), first, "while it runs");
    fake.complete_all_staged();
    let again = send(Kind::Configure).await.unwrap();
    assert_eq!((again.operation_id.clone(), state(&again)), (first.operation_id, Configured));
    let drained = send(Kind::Drain).await.unwrap();
    fake.complete_all_staged();
    assert_eq!(send(Kind::Drain).await.unwrap().operation_id, drained.operation_id);
    let next = send(Kind::Configure).await.unwrap();
    assert_eq!(state(&next), Configuring);
    assert_ne!(next.operation_id, again.operation_id);
}

#[tokio::test]
async fn equal_calls_at_once_are_one_operation() {
    let fake = fake(FakeOptions::default());
    let mut calls = tokio::task::JoinSet::new();
    for number in 1..=16 {
        let fake = fake.clone();
        calls.spawn(async move {
            // Each from a shard of its own: no fence between them.
            mutate(&fake, &attempt(&format!("s{number}"), 1, 1), Kind::Create, "spec-1").await
        });
    }
    let acks = calls.join_all().await.into_iter();
    let mut ids: Vec<String> = acks.map(|ack| ack.unwrap().operation_id).collect();
    ids.dedup();
    assert_eq!(ids, ["op-1"]);
}

/// Steps 2 to 6, each refusal with its code, and the record as it was.
#[tokio::test]
async fn refusals_have_the_codes_of_the_table_and_change_nothing() {
    let fake = fake(FakeOptions::default());
    fake.fail_machine("idle-9", "broke");
    let before: Vec<_> =
        fake.list(&ListFilter::default(), None).await.unwrap().machines.into_iter().collect();
    let fresh = attempt("fresh", 1, 1);
    let zombie = attempt("old", 1, 1);
    for id in ["spec-0", "idle-9", "nobody"] {
        // The mark moves although the call fails.
        assert!(mutate(&fake, &attempt("old", 5, 5), Kind::Drain, id).await.is_err());
    }
    let nobody = Attempt::new(Token::new("", 5, 0), None);
    for (attempt, kind, id, code) in [
        (&fresh, Kind::Create, "", Code::InvalidArgument),
        (&nobody, Kind::Create, "spec-0", Code::InvalidArgument),
        (&fresh, Kind::Create, "nobody", Code::NotFound),
        (&fresh, Kind::Configure, "spec-0", Code::Internal),
        (&fresh, Kind::Drain, "idle-0", Code::Internal),
        (&fresh, Kind::Delete, "conf-s0-c0-i0", Code::Internal),
        (&fresh, Kind::Create, "idle-9", Code::Internal),
        (&zombie, Kind::Create, "nobody", Code::FailedPrecondition),
        (&zombie, Kind::Create, "spec-0", Code::FailedPrecondition),
        (&zombie, Kind::Delete, "idle-9", Code::FailedPrecondition),
    ] {
        let error = mutate(&fake, attempt, kind, id).await.unwrap_err();
        assert_eq!(error.code(), code, "{kind} {id:?}: {error}");
    }
    assert_eq!(fake.list(&ListFilter::default(), None).await.unwrap().machines, before);
    let late = Attempt { deadline: Some(Instant::now()), ..attempt("late", 1, 1) };
    let error = mutate(&fake, &late, Kind::Create, "spec-0").await.unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded);
    assert_eq!(fake.machine("spec-0").unwrap().state, Speculative);
}

#[tokio::test]
async fn another_cluster_is_not_a_replay() {
    let fake = fake(FakeOptions::instant());
    let id = "idle-0".into();
    fake.configure(&attempt("s", 1, 1), &id, for_cluster("a")).await.unwrap();
    let error = fake.configure(&attempt("s", 1, 2), &id, for_cluster("b")).await.unwrap_err();
    assert_eq!(error.code(), Code::AlreadyExists);
    assert_eq!(fake.machine("idle-0").unwrap().cluster.as_deref(), Some("a"));
    // Also where it was not this provider's operation that bound it.
    let conf = "conf-s0-c0-i0".into();
    let error = fake.configure(&attempt("s", 1, 1), &conf, for_cluster("b")).await.unwrap_err();
    assert_eq!(error.code(), Code::Internal);
}

#[tokio::test]
async fn the_fence_comes_before_the_recorded_id() {
    let fake = fake(FakeOptions::instant());
    let ack = mutate(&fake, &attempt("s", 5, 5), Kind::Create, "spec-0").await.unwrap();
    let stale = mutate(&fake, &attempt("s", 1, 1), Kind::Create, "spec-0").await.unwrap_err();
    assert!(matches!(stale, Error::Fenced(_)), "{stale}");
    let again = mutate(&fake, &attempt("s", 5, 6), Kind::Create, "spec-0").await.unwrap();
    assert_eq!(again.operation_id, ack.operation_id);
    // Reads carry no token and are never fenced.
    fake.get(&"spec-0".into(), None).await.unwrap();
}

#[tokio::test]
async fn policies_of_the_fence_are_the_fakes_too() {
    let fence = FencePolicy { require_token: true, strict_epoch: true };
    let fake = fake(FakeOptions { fence, ..FakeOptions::instant() });
    let zero = Attempt::new(Token::unfenced(), None);
    let error = mutate(&fake, &zero, Kind::Create, "spec-0").await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    let error = mutate(&fake, &attempt("s", 2, 1), Kind::Delete, "epoch.s").await.unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    let error = mutate(&fake, &attempt("s", 1, 9), Kind::Create, "spec-0").await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
}

#[tokio::test]
async fn a_forgotten_machine_is_forgotten_whole() {
    let fake = fake(FakeOptions::instant());
    mutate(&fake, &attempt("s", 5, 5), Kind::Create, "spec-0").await.unwrap();
    let machine = fake.machine("spec-0").unwrap();
    assert!(fake.remove_machine("spec-0"));
    assert!(!fake.remove_machine("spec-0"));
    assert_eq!(fake.get(&machine.id, None).await.unwrap_err().code(), Code::NotFound);
    let list = fake.list(&ListFilter::default(), None).await.unwrap();
    assert!(list.machines.iter().all(|one| one.id != machine.id));
    // Its marks went with it.
    let error = mutate(&fake, &attempt("s", 1, 1), Kind::Create, "spec-0").await.unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
}

#[tokio::test]
async fn filters_are_unions_and_no_state_matches_nothing() {
    let fake = fake(FakeOptions::default());
    let count = async |states: Option<StateSet>| {
        let filter = ListFilter { states, ..ListFilter::default() };
        fake.list(&filter, None).await.unwrap().machines.len()
    };
    assert_eq!(count(None).await, 22);
    assert_eq!(count(Some([Idle].into_iter().collect())).await, 10);
    assert_eq!(count(Some([Idle, Configured].into_iter().collect())).await, 12);
    assert_eq!(count(Some(StateSet::default())).await, 0);
}

#[test]
fn nothing_shows_the_secret() {
    let request = for_cluster("c");
    let shown = format!("{request:?} {request:#?}");
    assert!(!shown.contains("join-secret") && !shown.contains("106"), "{shown}");
    assert!(shown.contains("<11 secret bytes>"), "{shown}");
    assert_eq!(request.blob.expose(), b"join-secret");
    let fake = Fake::new(FakeOptions::default());
    assert!(format!("{fake:?}").contains("machines: 0"));
}
