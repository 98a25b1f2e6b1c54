//! Every knob of the table in §8.

use std::time::Duration;

use bigfleet_model::{
    CapacityType,
    MachineState::{self, *},
    Stamp,
};
use bigfleet_provider::{
    Error, FencedProvider, ListFilter,
    fake::{Bound, Fake, FakeOptions, Method, Offer, PerKind, Script, Seed},
    protocol::Kind,
};
use tonic::Code;

use crate::rig::{attempt, fake, mutate, soon, state};

fn offer() -> Offer {
    Offer {
        instance_type: "t".into(),
        zone: "z".into(),
        labels: [("l".into(), "v".into())].into(),
        resources: [("cpu".into(), "2".into())].into(),
        allocatable: [].into(),
        capacity_type: CapacityType::Spot,
        price_per_hour: 0.5,
        interruption_probability: 0.25,
    }
}

async fn create(fake: &Fake, id: &str) -> MachineState {
    state(&mutate(fake, &attempt(id, 1, 1), Kind::Create, id).await.unwrap())
}

#[tokio::test]
async fn instant_staged_and_latency() {
    let instant = FakeOptions::instant();
    assert_eq!(create(&fake(instant), "spec-0").await, Idle);
    let staged = PerKind { create: true, ..PerKind::default() };
    assert_eq!(create(&fake(FakeOptions { staged, ..instant }), "spec-0").await, Creating);

    let latency = PerKind { create: Duration::from_secs(2), ..PerKind::default() };
    let slow = fake(FakeOptions { latency, ..instant });
    slow.advance(Duration::from_secs(10));
    assert_eq!(create(&slow, "spec-0").await, Creating);
    slow.advance(Duration::from_millis(11_999));
    assert_eq!(slow.machine("spec-0").unwrap().state, Creating);
    slow.advance(Duration::from_secs(5));
    assert_eq!(slow.now(), Duration::from_millis(11_999), "time never goes back");
    slow.advance(Duration::from_secs(12));
    let machine = slow.machine("spec-0").unwrap();
    assert_eq!((machine.state, machine.host.unwrap().reference), (Idle, "spec-0".into()));
}

#[tokio::test(start_paused = true)]
async fn the_ticker_keeps_latencies_in_step_with_the_process() {
    let latency = PerKind::all(Duration::from_secs(3));
    let fake = fake(FakeOptions { latency, ..FakeOptions::default() });
    let ticker = tokio::spawn({
        let fake = fake.clone();
        async move { fake.run().await }
    });
    assert_eq!(create(&fake, "spec-0").await, Creating);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(fake.machine("spec-0").unwrap().state, Creating);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(fake.machine("spec-0").unwrap().state, Idle);
    ticker.abort();
}

#[tokio::test]
async fn work_that_was_overtaken_does_not_complete_later() {
    let latency = PerKind::all(Duration::from_secs(2));
    let fake = fake(FakeOptions { latency, ..FakeOptions::default() });
    create(&fake, "spec-0").await;
    assert!(fake.fail_machine("spec-0", "broke"));
    assert!(fake.repair_machine("spec-0"));
    // A new Create, one second later, is not ended by the old one's time.
    fake.advance(Duration::from_secs(1));
    let ack = mutate(&fake, &attempt("s", 1, 9), Kind::Create, "spec-0").await.unwrap();
    assert_eq!(ack.operation_id, "op-2");
    fake.advance(Duration::from_secs(2));
    assert_eq!(fake.machine("spec-0").unwrap().state, Creating);
    fake.advance(Duration::from_secs(3));
    assert_eq!(fake.machine("spec-0").unwrap().state, Idle);
}

#[tokio::test]
async fn fixed_capacity_refuses_every_delete() {
    let fake = fake(FakeOptions { support_delete: false, ..FakeOptions::instant() });
    for id in ["idle-0", "spec-0", "nobody"] {
        let error = mutate(&fake, &attempt("s", 1, 1), Kind::Delete, id).await.unwrap_err();
        assert!(matches!(error, Error::NotSupported(_)), "{error}");
    }
}

#[test]
fn machines_are_added_in_three_states() {
    let fake = Fake::new(FakeOptions::default());
    let bound = Bound { cluster: "c".into(), priority: 7, interruption: 1.5, reclamation: 2.0 };
    fake.add_speculative("s", &offer()).unwrap();
    fake.add_idle("i", &offer()).unwrap();
    fake.add_configured("c", &offer(), &bound).unwrap();
    fake.add_idle("", &offer()).unwrap_err();
    fake.add_idle("bad", &Offer { price_per_hour: -1.0, ..offer() }).unwrap_err();
    for (id, state, host) in
        [("s", Speculative, None), ("i", Idle, Some("i")), ("c", Configured, Some("c"))]
    {
        let machine = fake.machine(id).unwrap();
        assert_eq!(machine.state, state);
        assert_eq!(machine.host.as_ref().map(|host| &*host.reference), host);
        assert_eq!(machine.host.map(|host| host.provider), host.map(|_| "fake".to_owned()));
        assert_eq!(machine.class.instance_type, "t");
    }
    let configured = fake.machine("c").unwrap();
    assert_eq!(configured.cluster.as_deref(), Some("c"));
    let (stamp, malformed) = Stamp::from_metadata(&configured.shard_metadata);
    let stamp = stamp.unwrap();
    assert!(malformed.is_empty());
    assert_eq!((stamp.priority, stamp.interruption, stamp.reclamation), (Some(7), 1.5, 2.0));
    assert_eq!((fake.configured_count(), fake.speculative_count()), (1, 1));
}

#[tokio::test]
async fn allocatable_changes_only_for_the_better() {
    let fake = fake(FakeOptions::default());
    let revision = async || fake.list(&ListFilter::default(), None).await.unwrap().revision;
    let before = revision().await;
    fake.set_allocatable("idle-0", [].into());
    fake.set_allocatable("nobody", [("cpu".into(), "1".into())].into());
    fake.set_allocatable("idle-0", [("cpu".into(), "abc".into())].into());
    assert_eq!(revision().await, before);
    fake.set_allocatable("idle-0", [("cpu".into(), "1".into())].into());
    let machine = fake.machine("idle-0").unwrap();
    assert_eq!(machine.class.allocatable.text()["cpu"], "1");
    let delta = ListFilter { since_revision: before, ..ListFilter::default() };
    assert_eq!(fake.list(&delta, None).await.unwrap().machines, [machine]);
}

#[tokio::test]
async fn a_planned_failure_waits_for_the_call_it_is_meant_for() {
    let fake = fake(FakeOptions::instant());
    let send = async |epoch, sequence, kind, id| {
        mutate(&fake, &attempt("s", epoch, sequence), kind, id).await.map_err(|error| error.code())
    };
    send(5, 1, Kind::Create, "spec-0").await.unwrap();
    fake.fail_next("spec-0", Idle, Error::Exhausted("planned".into()));
    // Neither fenced, nor replayed, nor unknown, nor another target.
    assert_eq!(send(1, 1, Kind::Create, "spec-0").await, Err(Code::FailedPrecondition));
    assert_eq!(send(5, 2, Kind::Create, "nobody").await, Err(Code::NotFound));
    send(5, 2, Kind::Create, "spec-0").await.unwrap();
    send(5, 3, Kind::Configure, "spec-0").await.unwrap();
    assert_eq!(send(5, 4, Kind::Drain, "spec-0").await, Err(Code::ResourceExhausted));
    assert_eq!(fake.machine("spec-0").unwrap().state, Configured);
    send(5, 5, Kind::Drain, "spec-0").await.unwrap();
    // Before the position is judged.
    fake.fail_next("spec-0", Speculative, Error::Unavailable("planned".into()));
    send(5, 6, Kind::Configure, "spec-0").await.unwrap();
    assert_eq!(send(5, 7, Kind::Delete, "spec-0").await, Err(Code::Unavailable));
    assert_eq!(send(5, 8, Kind::Delete, "spec-0").await, Err(Code::Internal));
}

#[test]
fn failing_shedding_and_picking() {
    let fake = fake(FakeOptions::default());
    assert!(!fake.fail_machine("nobody", "x"));
    assert!(fake.fail_machine("spec-9", "first"));
    assert!(fake.fail_machine("spec-9", "second"), "already failed");
    assert_eq!(fake.machine("spec-9").unwrap().last_error, "first");
    assert!(!fake.repair_machine("spec-8"));
    for (share, shed) in [(f64::NAN, 0), (-1.0, 0), (0.5, 4), (0.0, 0), (9.0, 5)] {
        assert_eq!(fake.shed_speculative(share), shed, "{share}");
        if shed == 4 {
            assert!(fake.machine("spec-3").is_none() && fake.machine("spec-4").is_some());
        }
    }
    assert_eq!(fake.random(Speculative), None);
    let picks: Vec<_> = (0..40).map(|_| fake.random(Idle).unwrap()).collect();
    let twin = crate::rig::fake(FakeOptions::default());
    assert!(picks.iter().any(|pick| *pick != picks[0]));
    assert_eq!(picks, (0..40).map(|_| twin.random(Idle).unwrap()).collect::<Vec<_>>());
}

#[test]
fn machines_fail_by_themselves_at_their_rate() {
    let options = FakeOptions { failure_rate: 0.001, seed: 9, ..FakeOptions::default() };
    let fake = Fake::new(options);
    let (clusters, configured_per_cluster) = (1, 1000);
    fake.seed(&Seed { clusters, configured_per_cluster, ..Seed::default() }).unwrap();
    let seconds = 100;
    fake.advance(Duration::from_secs(seconds));
    let failed = fake.count(Failed);
    // 1000 · (1 − e^−0.1) ≈ 95, six standard deviations.
    assert!((40..150).contains(&failed), "{failed}");
    fake.advance(Duration::from_secs(seconds));
    assert_eq!(fake.count(Failed), failed, "a second takes its toll once");
}

#[tokio::test(start_paused = true)]
async fn calls_are_logged_delayed_and_their_replies_lost() {
    let fake = fake(FakeOptions { call_log: 3, ..FakeOptions::default() });
    let create = Method::Mutate(Kind::Create);
    fake.script(Script { drop_ack: true, machine: Some("spec-1".into()), ..Script::next(create) });
    let delay = Duration::from_secs(5);
    fake.script(Script { delay, ..Script::next(create) });
    let started = tokio::time::Instant::now();
    assert_eq!(self::create(&fake, "spec-0").await, Creating);
    assert!(started.elapsed() >= delay);
    let lost = mutate(&fake, &attempt("s", 1, 1), Kind::Create, "spec-1").await.unwrap_err();
    assert!(lost.is_unanswered(), "{lost}");
    assert_eq!(fake.machine("spec-1").unwrap().state, Creating, "accepted all the same");
    fake.get(&"nobody".into(), None).await.unwrap_err();
    soon(fake.list(&ListFilter::default(), None)).await.unwrap();
    let calls = fake.calls();
    let told: Vec<_> =
        calls.iter().map(|call| (call.method, &*call.machine, call.outcome)).collect();
    assert_eq!(
        told,
        [
            (create, "spec-1", Code::Ok),
            (Method::Get, "nobody", Code::NotFound),
            (Method::List, "", Code::Ok)
        ]
    );
    assert!(calls[0].token.is_some() && calls[1].token.is_none());
    fake.clear_calls();
    assert!(fake.calls().is_empty());
}

#[test]
fn the_catalogue() {
    let fake = Fake::new(FakeOptions::default());
    let seed = Seed {
        idle: 31,
        speculative: 6,
        spot: 6,
        configured_per_cluster: 5,
        clusters: 7,
        stride: 3,
        shard: 1,
        gang_size: 4,
        density: 3,
    };
    fake.seed(&seed).unwrap();
    let told = |id: &str| {
        let machine = fake.machine(id).unwrap_or_else(|| panic!("{id}"));
        let class = &machine.class;
        format!(
            "{} {} {:?} {} {} {} {:?} {:?}",
            machine.state.wire_name(),
            class.instance_type,
            class.capacity_type,
            class.price_per_hour,
            class.interruption_probability,
            class.labels["topology.bigfleet/rack"],
            class.resources.text(),
            class.allocatable.text(),
        )
    };
    for (id, expected) in [
        (
            "idle-0",
            r#"IDLE a3-highgpu-8g BareMetal 0 0 zone-a-rack-0 {"nvidia.com/gpu": "8"} {"nvidia.com/gpu": "24"}"#,
        ),
        (
            "idle-1",
            r#"IDLE m6i.large BareMetal 0 0 zone-b-rack-1 {"cpu": "2", "memory": "8Gi"} {"cpu": "6", "memory": "24Gi"}"#,
        ),
        (
            "idle-22",
            r#"IDLE c6i.4xlarge BareMetal 0 0 zone-b-rack-2 {"cpu": "16", "memory": "32Gi"} {"cpu": "48", "memory": "96Gi"}"#,
        ),
        (
            "spec-3",
            r#"SPECULATIVE n2-standard-32 OnDemand 1 0.05 zone-a-rack-3 {"cpu": "32", "memory": "128Gi"} {"cpu": "96", "memory": "384Gi"}"#,
        ),
        (
            "spot-4",
            r#"SPECULATIVE r6i.xlarge Spot 0.3 0.1 zone-b-rack-4 {"cpu": "4", "memory": "32Gi"} {"cpu": "12", "memory": "96Gi"}"#,
        ),
        (
            "conf-s1-c4-i3",
            r#"CONFIGURED a3-highgpu-8g BareMetal 0 0 zone-a-rack-0 {"nvidia.com/gpu": "8"} {"nvidia.com/gpu": "24"}"#,
        ),
        (
            "conf-s1-c4-i4",
            r#"CONFIGURED a3-highgpu-8g BareMetal 0 0 zone-b-rack-1 {"nvidia.com/gpu": "8"} {"nvidia.com/gpu": "24"}"#,
        ),
    ] {
        assert_eq!(told(id), expected, "{id}");
    }
    // Clusters 1 and 4 of shard 1.
    assert_eq!(fake.configured_count(), 10);
    let bound = fake.machine("conf-s1-c1-i0").unwrap();
    assert_eq!(bound.cluster.as_deref(), Some("kwok-cluster-1"));
    let stamp = Stamp::from_metadata(&bound.shard_metadata).0.unwrap();
    assert_eq!(
        (stamp.priority, stamp.interruption, stamp.reclamation),
        (Some(1_000_000), 8192.0, 65536.0)
    );
}
