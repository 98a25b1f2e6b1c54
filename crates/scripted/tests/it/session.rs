//! Hello, roll-ups, bootstrap, and every way in which a session ends.

use std::time::Duration;

use bigfleet_model::MachineState as Known;
use bigfleet_net::{rule::Rule, tls::Security};
use bigfleet_scripted::{
    Error,
    operator::{Answer, Bootstrap, Operator, OperatorOptions},
};
use bigfleet_testkit::pki::Pki;
use bigfleet_wire::v1alpha1::{
    AvailableCapacityUpdate, BootstrapRequest, CapacityNeed, ClusterCapacityNeeds, MachineState,
    NeedStatusUpdate, NodeStateUpdate, OperatorMessage, ShardMessage,
    operator_message::Payload as Up, shard_message::Payload as Down,
};
use tonic::{Code, Status};

use crate::fake_shard::{Acks, FakeShard, Heard, PATIENCE, mtls, node};

async fn operator(shard: &FakeShard) -> Operator {
    let options = OperatorOptions::new("c");
    Operator::connect(&shard.addr, &Security::Plaintext, options).await.unwrap()
}

fn request(id: &str) -> Down {
    Down::BootstrapRequest(BootstrapRequest {
        request_id: id.to_owned(),
        machine_id: format!("m-{id}"),
        cluster_id: "c".to_owned(),
        ..Default::default()
    })
}

#[tokio::test]
async fn says_hello_with_its_features() {
    let shard = FakeShard::start().await;
    let options = OperatorOptions::new("c").features(&["need-status"]);
    Operator::connect(&shard.addr, &Security::Plaintext, options).await.unwrap();
    operator(&shard).await;
    let features: Vec<_> = shard
        .heard()
        .frames
        .iter()
        .map(|(_, frame)| match frame {
            Up::Hello(hello) => (hello.protocol_version.clone(), hello.features.clone()),
            other => panic!("{other:?}"),
        })
        .collect();
    let of = |features: &[&str]| {
        ("v1alpha1".to_owned(), features.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(features, [of(&["need-status"]), of(&["final-reclaim-ack", "need-status"])]);
}

#[tokio::test]
async fn nobody_there_is_unavailable() {
    let options = OperatorOptions::new("c");
    let status = Operator::connect("127.0.0.1:1", &Security::Plaintext, options).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
}

#[tokio::test]
async fn each_roll_up_gets_its_own_answer() {
    let shard = FakeShard::start().await;
    let operator = operator(&shard).await;
    for (acks, answer) in [
        (Acks::Accept, Answer::Accepted),
        (Acks::Hold, Answer::Held),
        (Acks::Reject, Answer::Rejected("needs[0]: no".to_owned())),
    ] {
        shard.set_acks(acks);
        assert_eq!(operator.roll_up(vec![CapacityNeed::default()]).await.unwrap(), answer);
    }
    let times: Vec<i64> = shard
        .heard()
        .frames
        .iter()
        .filter_map(|(_, frame)| match frame {
            Up::Rollup(roll_up) => Some(roll_up.timestamp_unix_nanos),
            _ => None,
        })
        .collect();
    assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
}

#[tokio::test]
async fn a_roll_up_on_a_session_that_ends_tells_how() {
    let shard = FakeShard::start().await;
    let operator = operator(&shard).await;
    shard.set_acks(Acks::None);
    let answer = operator.roll_up(vec![]);
    let end = async {
        shard.find(|frame| matches!(frame, Up::Rollup(_)).then_some(())).await;
        shard.end_with(Status::aborted("replaced")).await;
    };
    let (answer, ()) = tokio::join!(answer, end);
    assert!(matches!(answer, Err(Error::Ended(status)) if status.code() == Code::Aborted));
    assert_eq!(operator.ended().unwrap().message(), "replaced");
    assert!(matches!(operator.roll_up(vec![]).await, Err(Error::Ended(_))));
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_never_holds_is_told_in_words() {
    let shard = FakeShard::start().await;
    let operator = operator(&shard).await;
    let error =
        operator.wait_for("a miracle", |_| false, Duration::from_secs(5)).await.unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("not within 5s: a miracle; session 1, ended: None"), "{text}");
}

#[tokio::test]
async fn keeps_frames_in_order_and_the_picture_they_make() {
    let shard = FakeShard::start().await;
    let operator = operator(&shard).await;
    shard.machine("a", MachineState::Creating).await;
    shard.machine("b", MachineState::Configured).await;
    shard.machine("a", MachineState::Configured).await;
    shard
        .send(Down::NodeStateUpdate(NodeStateUpdate {
            gone: true,
            ..node("b", MachineState::Idle)
        }))
        .await;
    shard.machine("", MachineState::Configured).await;
    shard.machine("z", MachineState::Unspecified).await;
    shard
        .send(Down::AvailableCapacity(AvailableCapacityUpdate {
            supersedes_key: "available:x".to_owned(),
            available_count: 3,
            ..Default::default()
        }))
        .await;
    shard
        .send(Down::NeedStatus(NeedStatusUpdate {
            supersedes_key: "need:x\0g".to_owned(),
            satisfied: true,
            ..Default::default()
        }))
        .await;
    shard.ack("resync").await;
    operator.wait_for("resync", |state| state.picture.resynced, PATIENCE).await.unwrap();
    let states: Vec<_> = operator
        .frames()
        .iter()
        .filter_map(|frame| match &frame.payload {
            Some(Down::NodeStateUpdate(update)) => Some(update.machine_id.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(states, ["a", "b", "a", "b", "", "z"]);
    operator.read(|state| {
        let picture = &state.picture;
        assert_eq!(picture.machines.keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!(picture.state("a"), Some(Known::Configured));
        assert_eq!(picture.machines["a"].capacity.to_wire()["memory"], "16Gi");
        assert_eq!(picture.available["available:x"].available_count, 3);
        assert!(picture.need("x", "g").unwrap().satisfied);
        assert_eq!(picture.ignored, 2);
        assert_eq!((state.received.node_states, state.received.acks, state.total()), (6, 2, 10));
    });
}

#[tokio::test]
async fn unrecorded_frames_are_counted_and_not_kept() {
    let shard = FakeShard::start().await;
    let options = OperatorOptions::new("c").without_record();
    let operator = Operator::connect(&shard.addr, &Security::Plaintext, options).await.unwrap();
    shard.machine("a", MachineState::Configured).await;
    operator.wait_for("a", |state| state.picture.schedulable("a"), PATIENCE).await.unwrap();
    assert!(operator.frames().is_empty());
}

#[tokio::test]
async fn answers_bootstrap_requests_by_its_policy() {
    let shard = FakeShard::start().await;
    let operator = operator(&shard).await;
    let response = async |id: &str| {
        shard
            .find(|frame| match frame {
                Up::BootstrapResponse(response) if response.request_id == id => {
                    Some(response.clone())
                }
                _ => None,
            })
            .await
    };
    shard.send(request("1")).await;
    shard.send(request("2")).await;
    let (one, two) = (response("1").await, response("2").await);
    assert!(!one.user_data.is_empty() && one.user_data != two.user_data);
    assert_eq!((one.ttl_seconds, one.error.as_str()), (0, ""));

    operator.on_bootstrap(|request| match request.machine_id.as_str() {
        "m-3" => Bootstrap::Deliver { blob: b"secret".to_vec(), ttl_seconds: 7 },
        "m-4" => Bootstrap::Refuse("bad template".to_owned()),
        "m-5" => Bootstrap::Silent,
        _ => Bootstrap::Unique,
    });
    for id in ["3", "4", "5", "6"] {
        shard.send(request(id)).await;
    }
    let three = response("3").await;
    assert_eq!((three.user_data.as_slice(), three.ttl_seconds), (&b"secret"[..], 7));
    let four = response("4").await;
    assert_eq!((four.user_data.as_slice(), four.error.as_str()), (&b""[..], "bad template"));
    // Answers keep the order of the stream, so 5 would have been there before 6.
    response("6").await;
    assert!(!shard.heard().frames.iter().any(|(_, frame)| {
        matches!(frame, Up::BootstrapResponse(response) if response.request_id == "5")
    }));
}

#[tokio::test]
async fn a_late_blob_comes_on_the_session_that_asked_or_not_at_all() {
    let shard = FakeShard::start().await;
    let mut operator = operator(&shard).await;
    operator.on_bootstrap(|request| match request.machine_id.as_str() {
        "m-late" => Bootstrap::Late(Duration::from_millis(30)),
        "m-lost" => Bootstrap::Late(Duration::from_millis(60)),
        _ => Bootstrap::Unique,
    });
    shard.send(request("late")).await;
    shard.send(request("prompt")).await;
    let answers = || blobs(&shard.heard());
    let late = |frame: &Up| matches!(frame, Up::BootstrapResponse(r) if r.request_id == "late");
    shard.find(|frame| late(frame).then_some(())).await;
    assert_eq!(answers(), ["prompt", "late"]);

    shard.send(request("lost")).await;
    let asked = |state: &bigfleet_scripted::operator::State| state.received.bootstrap_requests == 3;
    operator.wait_for("the request", asked, PATIENCE).await.unwrap();
    operator.reconnect().await.unwrap();
    operator.on_bootstrap(|_| Bootstrap::Late(Duration::from_millis(90)));
    shard.send(request("after")).await;
    shard.until(|heard| blobs(heard).contains(&"after".to_owned())).await;
    assert_eq!(answers(), ["prompt", "late", "after"]);
}

fn blobs(heard: &Heard) -> Vec<String> {
    let answers = heard.frames.iter().filter_map(|(_, frame)| match frame {
        Up::BootstrapResponse(response) => Some(response.request_id.clone()),
        _ => None,
    });
    answers.collect()
}

#[tokio::test]
async fn a_half_close_ends_ok() {
    let shard = FakeShard::start().await;
    let operator = operator(&shard).await;
    operator.disconnect();
    assert_eq!(operator.wait_ended(PATIENCE).await.unwrap().code(), Code::Ok);
    shard.until(|heard| matches!(heard.ends.get(&1), Some(Ok(())))).await;
    assert!(matches!(operator.say_hello(), Err(Error::Ended(_))));
}

#[tokio::test]
async fn an_abort_is_no_half_close() {
    let shard = FakeShard::start().await;
    let mut operator = operator(&shard).await;
    operator.abort().await;
    assert_eq!(operator.ended().unwrap().code(), Code::Cancelled);
    shard.until(|heard| matches!(heard.ends.get(&1), Some(Err(_)))).await;
}

#[tokio::test]
async fn a_dropped_operator_drops_its_connection() {
    let shard = FakeShard::start().await;
    drop(operator(&shard).await);
    shard.until(|heard| matches!(heard.ends.get(&1), Some(Err(_)))).await;
}

#[tokio::test]
async fn a_new_session_keeps_the_picture_until_it_is_complete() {
    let shard = FakeShard::start().await;
    let mut operator = operator(&shard).await;
    shard.machine("kept", MachineState::Configured).await;
    shard.machine("lost", MachineState::Configured).await;
    shard.ack("resync").await;
    operator.wait_for("resync", |state| state.picture.resynced, PATIENCE).await.unwrap();
    operator.abort().await;

    operator.reconnect().await.unwrap();
    operator.read(|state| {
        assert_eq!((state.session, state.picture.machines.len()), (2, 2));
        assert!(!state.picture.resynced && state.ended.is_none());
        assert_eq!(state.frames.len(), 1, "frames are those of this session");
    });
    shard.machine("kept", MachineState::Draining).await;
    shard.ack("resync").await;
    operator.wait_for("resync", |state| state.picture.resynced, PATIENCE).await.unwrap();
    operator.read(|state| {
        assert_eq!(state.picture.machines.keys().collect::<Vec<_>>(), ["kept"]);
        assert_eq!(state.picture.count(Known::Draining), 1);
    });
}

#[tokio::test]
async fn a_stalled_reader_fills_the_stream() {
    let shard = FakeShard::start().await;
    let options = OperatorOptions::new("c").window(16 << 10);
    let operator = Operator::connect(&shard.addr, &Security::Plaintext, options).await.unwrap();
    operator.stall();
    let before = operator.read(|state| state.received.node_states);
    // Far more than the window; the transport takes some of it.
    let big =
        NodeStateUpdate { last_error: "x".repeat(8 << 10), ..node("m", MachineState::Failed) };
    let mut sent = 0;
    let mut full_for = 0;
    while full_for < 1_000 {
        assert!(sent < 1_000, "the stream never fills");
        if shard.try_send(Down::NodeStateUpdate(big.clone())) {
            (sent, full_for) = (sent + 1, 0);
        } else {
            full_for += 1;
            tokio::task::yield_now().await;
        }
    }
    assert!(operator.read(|state| state.received.node_states) <= before + 1);
    operator.resume();
    let all = move |state: &bigfleet_scripted::operator::State| state.received.node_states >= sent;
    operator.wait_for("what had piled up", all, PATIENCE).await.unwrap();
}

#[tokio::test]
async fn says_whatever_the_script_wants() {
    let shard = FakeShard::start().await;
    let options = OperatorOptions::new("c");
    let first = Operator::dial(&shard.addr, &Security::Plaintext, options.clone()).await.unwrap();
    first.send_roll_up(ClusterCapacityNeeds::default()).unwrap();
    assert_eq!(first.wait_ended(PATIENCE).await.unwrap().code(), Code::InvalidArgument);

    let late = Operator::dial(&shard.addr, &Security::Plaintext, options).await.unwrap();
    late.say_hello().unwrap();
    late.wait_for("hello", |state| state.hellos == 1, PATIENCE).await.unwrap();
    late.send(OperatorMessage { payload: None }).unwrap();
    let forged = ClusterCapacityNeeds { cluster_id: "other".to_owned(), ..Default::default() };
    late.send_roll_up(forged).unwrap();
    shard
        .find(|frame| matches!(frame, Up::Rollup(r) if r.cluster_id == "other").then_some(()))
        .await;
    assert_eq!(shard.heard().empty_frames, 1);
    late.say_hello().unwrap();
    late.wait_for("hello again", |state| state.hellos == 2, PATIENCE).await.unwrap();
    shard.send(Down::Ack(Default::default())).await;
    late.next_frame(PATIENCE).await.unwrap();
    let last: Option<ShardMessage> = late.frames().pop();
    assert!(matches!(last.unwrap().payload, Some(Down::Ack(ack)) if ack.echo.is_empty()));
}

#[tokio::test]
async fn under_mtls_both_ends_are_who_they_say() {
    let pki = Pki::new().unwrap();
    let shard_material = pki.material(&["bigfleet://shard/s"]).unwrap();
    let shard = FakeShard::start_with(mtls(&shard_material)).await;
    let material = pki.material(&["bigfleet://cluster/c"]).unwrap();
    let security = mtls(&material);
    let operator =
        Operator::connect(&shard.addr, &security, OperatorOptions::new("c")).await.unwrap();
    assert_eq!(operator.roll_up(vec![]).await.unwrap(), Answer::Accepted);

    let forged = Operator::connect(&shard.addr, &security, OperatorOptions::new("d")).await;
    assert_eq!(forged.unwrap_err().code(), Code::PermissionDenied);

    let options = OperatorOptions { expect: Rule::admin(), ..OperatorOptions::new("c") };
    let picky = Operator::connect(&shard.addr, &security, options).await;
    assert_eq!(picky.unwrap_err().code(), Code::Unavailable);
}
