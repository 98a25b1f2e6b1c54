//! `ShardObserve`: sessions, explanations, questions and streams (wire chapter §5.1).

use std::time::Duration;

use bigfleet_model::MachineState;
use bigfleet_provider::fake::Fake;
use bigfleet_scripted::{cluster::Shape, operator::Operator};
use bigfleet_shard::Options;
use bigfleet_wire::v1alpha1::{
    CapacityNeed, ExplainNeedRequest, ListSessionsRequest, UnmetDetail, UnmetReason,
    WatchDecisionsRequest, WatchSummaryRequest, WhatIfRequest,
};
use tonic::Code;

use crate::{
    readers::explain,
    rig::{Rig, offer, pods_of, slow},
};

const GI: i64 = 1 << 30;

fn served() -> Shape {
    Shape::new(10_000, GI).priority(1000)
}

fn starved() -> Shape {
    Shape::new(9000, GI)
}

/// One machine that two want.
async fn contested() -> (Rig, Operator, Operator) {
    let fake = Fake::new(slow());
    fake.add_idle("m-1", &offer("big", "z1", 16)).expect("let in");
    let rig = Rig::over(Options::default(), fake, 1).await;
    let (a, b) = (rig.operator("a").await, rig.operator("b").await);
    a.roll_up(pods_of("a", 1, &served())).await.expect("accepted");
    rig.until("served", |rig| rig.count(MachineState::Configured) == 1).await;
    b.roll_up(pods_of("b", 1, &starved())).await.expect("accepted");
    rig.pass(25).await;
    (rig, a, b)
}

#[tokio::test(start_paused = true)]
async fn an_explanation_names_who_took_the_machines() {
    let (rig, _a, _b) = contested().await;
    let mut observe = rig.observe().await;
    let answer = observe.explain_need(explain("b", &starved())).await.expect("known").into_inner();
    assert!(answer.cycle > 0 && answer.computed_at_unix_nanos > 0);
    assert_eq!((answer.rank, answer.rank_of), (2, 2));
    let [ahead] = &answer.ahead[..] else { panic!("{:?}", answer.ahead) };
    assert_eq!((ahead.cluster_id.as_str(), ahead.priority, ahead.machines_taken), ("a", 1000, 1));
    assert_eq!(ahead.profile_fingerprint, served().profile().fingerprint().as_str());
    let funnel = answer.funnel.expect("a funnel");
    assert_eq!((funnel.matching, funnel.usable, funnel.bound_elsewhere), (1, 1, 1));
    let view = answer.need.expect("a view");
    assert_eq!(view.unmet_reason(), UnmetReason::PriorityStarved);
    assert!(view.age_cycles_unmet >= 2 && view.matching_supply.is_some());
    assert!(answer.decisions.is_empty(), "nothing was done for it");

    let answer = observe.explain_need(explain("a", &served())).await.expect("known").into_inner();
    assert_eq!((answer.rank, answer.ahead.len()), (1, 0));
    let decisions = answer.decisions.iter();
    let decisions: Vec<_> = decisions.map(|one| (&*one.kind, &*one.outcome)).collect();
    assert_eq!(decisions, [("Bootstrap", "success"), ("Bootstrap", "decided")], "newest first");
    assert_eq!(answer.decisions[0].of_sequence, answer.decisions[1].sequence);

    let unknown = ExplainNeedRequest { cluster_id: "a".into(), ..explain("b", &starved()) };
    let refused = observe.explain_need(unknown).await.expect_err("no such need");
    assert_eq!(refused.code(), Code::NotFound);
    rig.stop().await;
}

fn question(cluster: &str, shape: &Shape) -> WhatIfRequest {
    let need = pods_of(cluster, 1, shape).pop();
    WhatIfRequest { cluster_id: cluster.to_owned(), need }
}

#[tokio::test(start_paused = true)]
async fn a_question_is_answered_without_an_effect() {
    let (rig, _a, _b) = contested().await;
    rig.fake.add_speculative("m-2", &offer("big", "z2", 4)).expect("let in");
    rig.pass(25).await;
    let mut observe = rig.observe().await;
    rig.fake.clear_calls();
    let small = Shape::new(2000, GI).priority(5);
    let answer = observe.what_if(question("b", &small)).await.expect("answered").into_inner();
    assert!(answer.satisfied && answer.victims.is_empty(), "{answer:?}");
    let [pick] = &answer.picks[..] else { panic!("{answer:?}") };
    assert_eq!((pick.machine_id.as_str(), answer.dollars_per_hour), ("m-2", 4.0));
    assert!(answer.cycle > 0 && answer.computed_at_unix_nanos > 0);

    let again = observe.what_if(question("b", &small)).await.expect_err("too soon");
    assert_eq!(again.code(), Code::ResourceExhausted);
    rig.pass(1).await;
    let urgent = Shape::new(12_000, GI).priority(2_000_000);
    let answer = observe.what_if(question("b", &urgent)).await.expect("answered").into_inner();
    assert!(!answer.satisfied);
    assert_eq!(answer.unmet_detail(), UnmetDetail::PreemptionUnderWay, "{answer:?}");
    let [victim] = &answer.victims[..] else { panic!("{answer:?}") };
    let told = (victim.machine_id.as_str(), victim.cluster_id.as_str(), victim.priority);
    assert_eq!(told, ("m-1", "a", 1000));

    rig.pass(1).await;
    let answer = observe.what_if(question("nobody", &small)).await.expect("answered").into_inner();
    assert_eq!((answer.satisfied, answer.unmet_detail()), (false, UnmetDetail::NoSession));
    rig.pass(60).await;
    assert!(rig.told().is_empty(), "asking does nothing: {}", rig.told());
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_question_passes_the_demand_gate() {
    let (rig, _a, _b) = contested().await;
    let mut observe = rig.observe().await;
    let bad = CapacityNeed { interruption_penalty_bucket: 99, ..CapacityNeed::default() };
    for (request, text) in [
        (
            WhatIfRequest { cluster_id: "b".into(), need: Some(bad) },
            "interruption_penalty_bucket: 99 out of range [0,27]",
        ),
        (WhatIfRequest { cluster_id: "b".into(), need: None }, "need: "),
        (question("", &starved()), "cluster_id: "),
    ] {
        let refused = observe.what_if(request).await.expect_err("refused");
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().starts_with(text), "{refused}");
    }
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn sessions_are_listed_with_or_without_a_stream() {
    let (rig, mut a, b) = contested().await;
    let mut bad = pods_of("b", 1, &starved());
    bad[0].interruption_penalty_bucket = 99;
    b.roll_up(bad).await.expect("answered");
    let mut observe = rig.observe().await;
    let all = observe.list_sessions(ListSessionsRequest::default()).await.expect("an answer");
    let all = all.into_inner().sessions;
    let told: Vec<_> = all.iter().map(|one| (&*one.cluster_id, one.connected, one.needs)).collect();
    assert_eq!(told, [("a", true, 1), ("b", true, 1)]);
    for session in &all {
        assert!(session.connected_since_unix_nanos > 0 && session.last_rollup_unix_nanos > 0);
        assert_eq!(session.protocol_version, "v1alpha1");
        assert!(session.features.iter().any(|feature| feature == "need-status"));
        assert!(session.peer.starts_with("127.0.0.1:"), "{}", session.peer);
    }
    assert!(all[0].last_rejection.is_empty());
    assert!(all[1].last_rejection.contains("interruption_penalty_bucket"));
    a.abort().await;
    rig.until("gone", |rig| rig.metrics.active_sessions.get() == 1).await;
    let one = ListSessionsRequest { cluster_id: "a".into() };
    let one = observe.list_sessions(one).await.expect("an answer").into_inner().sessions;
    assert_eq!(one.len(), 1);
    assert!(!one[0].connected && one[0].needs == 1, "its demand stays");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn summaries_come_with_every_cycle() {
    let (rig, _a, _b) = contested().await;
    let mut observe = rig.observe().await;
    let watch = observe.watch_summary(WatchSummaryRequest {}).await.expect("a stream");
    let mut watch = watch.into_inner();
    let mut last = 0;
    for _ in 0..4 {
        let frame = watch.message().await.expect("a frame").expect("it goes on");
        assert!(frame.cycle > last, "{} after {last}", frame.cycle);
        last = frame.cycle;
        assert_eq!((frame.shard_epoch, frame.sessions), (1, 2));
        assert_eq!((frame.needs, frame.needs_unmet), (2, 1));
        assert_eq!(frame.shortfalls["other"], 1, "priority 0");
        assert_eq!(frame.dollars_per_hour["on_demand"], 16.0);
        let [count] = &frame.machines[..] else { panic!("{:?}", frame.machines) };
        assert_eq!(count.count, 1);
        for phase in ["reconcile", "snapread", "phase1", "phase2", "phase3", "emit", "execute"] {
            assert!(frame.phase_micros.contains_key(phase), "{phase}");
        }
        assert!(frame.last_reconcile_unix_nanos > 0 && frame.computed_at_unix_nanos > 0);
        assert!(!frame.actuation_paused && !frame.dry_run && !frame.fenced);
    }
    let series = "bigfleet_shard_observe_watchers{method=\"WatchSummary\"}";
    assert_eq!(rig.sample(series), 1.0);
    drop(watch);
    rig.until("gone", |rig| rig.sample(series) == 0.0).await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn decisions_are_told_with_what_became_of_them() {
    let (rig, a, _b) = contested().await;
    let mut observe = rig.observe().await;
    let oldest = WatchDecisionsRequest { after_sequence: -1, ..Default::default() };
    let watch = observe.watch_decisions(oldest.clone()).await.expect("a stream");
    let mut watch = watch.into_inner();
    let decided = watch.message().await.expect("a record").expect("it goes on");
    assert_eq!(
        (&*decided.kind, &*decided.outcome, decided.of_sequence),
        ("Bootstrap", "decided", 0)
    );
    assert_eq!((&*decided.machine_id, &*decided.cluster_id), ("m-1", "a"));
    let outcome = watch.message().await.expect("a record").expect("it goes on");
    assert_eq!((&*outcome.outcome, outcome.of_sequence), ("success", decided.sequence));

    // A frame says how far there is to read.
    let frames = observe.watch_summary(WatchSummaryRequest {}).await.expect("a stream");
    let mut frames = frames.into_inner();
    loop {
        let frame = frames.message().await.expect("a frame").expect("it goes on");
        assert!(frame.last_decision_sequence <= outcome.sequence, "{frame:?}");
        if frame.last_decision_sequence == outcome.sequence {
            break;
        }
    }

    // From now on, and only what is asked for.
    let reclaims = WatchDecisionsRequest { kinds: vec!["Reclaim".into()], ..Default::default() };
    let watch = observe.watch_decisions(reclaims).await.expect("a stream");
    let mut watch = watch.into_inner();
    a.roll_up(vec![]).await.expect("accepted");
    let reclaim = watch.message().await.expect("a record").expect("it goes on");
    assert_eq!((&*reclaim.kind, &*reclaim.outcome), ("Reclaim", "decided"));
    assert!(reclaim.sequence > outcome.sequence && !reclaim.gap);

    let resumed = WatchDecisionsRequest { after_sequence: decided.sequence, ..oldest };
    let watch = observe.watch_decisions(resumed).await.expect("a stream");
    let next = watch.into_inner().message().await.expect("a record").expect("it goes on");
    assert_eq!(next.sequence, outcome.sequence);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_watcher_is_ended() {
    let options = Options { cycle_interval: Duration::from_secs(1), ..Options::default() };
    let rig = Rig::over(options, Fake::new(slow()), 1).await;
    rig.pass(5).await;
    let mut observe = rig.narrow_observe().await;
    let watch = observe.watch_summary(WatchSummaryRequest {}).await.expect("a stream");
    let mut watch = watch.into_inner();
    rig.pass(120).await;
    let mut frames = 0;
    let ended = loop {
        match watch.message().await {
            Ok(Some(_)) => frames += 1,
            Ok(None) => panic!("ended well after {frames} frames"),
            Err(status) => break status,
        }
    };
    assert_eq!(ended.code(), Code::ResourceExhausted, "{ended}");
    assert!(frames < 60, "{frames} frames were kept for it");
    let series = "bigfleet_shard_observe_dropped_total{method=\"WatchSummary\"}";
    assert_eq!(rig.sample(series), 1.0);
    let series = "bigfleet_shard_observe_watchers{method=\"WatchSummary\"}";
    rig.until("its place is free", |rig| rig.sample(series) == 0.0).await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stopping_shard_sends_its_watchers_away() {
    let (rig, _a, _b) = contested().await;
    let mut observe = rig.observe().await;
    let watch = observe.watch_decisions(WatchDecisionsRequest::default()).await.expect("a stream");
    let mut watch = watch.into_inner();
    let ended = tokio::spawn(async move { watch.message().await });
    tokio::task::yield_now().await;
    rig.stop().await;
    let ended = ended.await.expect("no panic").expect_err("ended");
    assert_eq!(ended.code(), Code::Unavailable, "{ended}");
}
