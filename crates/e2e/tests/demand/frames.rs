//! Rows about the session under pressure: what waits, what is dropped, what goes first.

use std::time::{Duration, Instant};

use bigfleet_crds::{CapacityRequest, CapacityRequestSpec, Operator, Requirement, UpcomingNode};
use bigfleet_e2e::wait::{PATIENCE, eventually};
use bigfleet_scripted::shard::{Heard, Shard};
use bigfleet_testkit::proxy::Way;
use bigfleet_wire::v1alpha1::{
    MachineState, operator_message::Payload as Up, shard_message::Payload as Down,
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams},
};

use crate::stage::{CLUSTER, Stage};

const ROLL_UPS: &str = "bigfleet_operator_rollup_duration_seconds_count";
const DROPPED: &str = "bigfleet_operator_outbox_dropped_total";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_13_14_15_17_a_session_under_pressure_keeps_what_matters() {
    let Some(stage) = Stage::start_or_skip(&["--qps=0"]).await else { return };
    row_17_a_machine_that_comes_costs_three_writes(&stage).await;
    row_15_blobs_do_not_wait_for_nodes(&stage).await;
    rows_13_and_14_a_shard_that_does_not_read_gets_the_newest(&stage).await;
}

async fn row_17_a_machine_that_comes_costs_three_writes(stage: &Stage) {
    const MACHINES: usize = 1_000;
    let ids: Vec<String> = (0..MACHINES).map(|index| format!("row-17-{index}")).collect();
    for id in &ids {
        stage.cluster.agent().never_join(id);
    }
    let states = [MachineState::Idle, MachineState::Configuring, MachineState::Configured];
    for state in states {
        for id in &ids {
            stage.shard.machine(CLUSTER, id, state).await.unwrap();
        }
    }
    until_ready_machines(stage, MACHINES).await;
    let writes = |op: &str| {
        let series = format!(
            "bigfleet_operator_upcoming_node_writes_total{{op=\"{op}\",outcome=\"success\"}}"
        );
        async move { stage.operator.metric(&series).await.unwrap_or_default() }
    };
    let machines = u32::try_from(MACHINES).map(f64::from).unwrap();
    assert!((writes("create").await - machines).abs() < 0.5, "one create each");
    let patches = writes("status_update").await + writes("spec_update").await;
    assert!(patches >= machines, "the metric counts");
    assert!(patches <= 2.0 * machines, "{patches} patches for {machines} machines");
    for id in &ids {
        stage.shard.machine(CLUSTER, id, MachineState::Deleting).await.unwrap();
    }
    eventually("all are gone", || async { stage.cluster.all::<UpcomingNode>().await.is_empty() })
        .await;
}

async fn until_ready_machines(stage: &Stage, count: usize) {
    eventually(&format!("{count} machines are ready"), || async {
        let all = stage.cluster.all::<UpcomingNode>().await;
        let ready = |one: &&UpcomingNode| {
            let phase = one.status.as_ref().map(|status| status.phase);
            phase == Some(bigfleet_crds::UpcomingNodePhase::Ready)
        };
        all.iter().filter(ready).count() == count
    })
    .await;
}

async fn row_15_blobs_do_not_wait_for_nodes(stage: &Stage) {
    const FRAMES: usize = 5_000;
    // Nothing passes at all, and five thousand machines wait to be written.
    stage.proxy.set(Way::Silent);
    for index in 0..FRAMES {
        let id = format!("row-15-{index}");
        stage.shard.machine(CLUSTER, &id, MachineState::Creating).await.unwrap();
    }
    let mut fastest = Duration::MAX;
    for round in 0..20 {
        let begun = Instant::now();
        let prefix = format!("row-15-{round}-");
        stage.shard.bootstrap(CLUSTER, &prefix, 1).await.unwrap();
        let id = format!("{prefix}0");
        let answer = |frame: &Up| match frame {
            Up::BootstrapResponse(answer) if answer.request_id == id => Some(answer.error.clone()),
            _ => None,
        };
        let error = stage.shard.find("a blob", answer, PATIENCE).await.unwrap();
        assert_eq!(error, "");
        fastest = fastest.min(begun.elapsed());
    }
    // Of twenty, for a busy machine delays some of them.
    assert!(fastest < Duration::from_millis(50), "{fastest:?}");
    let written = stage.cluster.all::<UpcomingNode>().await.len();
    assert!(written < FRAMES, "the server was not slow");
    for index in 0..FRAMES {
        let mut frame = Shard::node(CLUSTER, &format!("row-15-{index}"), MachineState::Deleting);
        frame.gone = true;
        stage.shard.send(Down::NodeStateUpdate(frame)).await.unwrap();
    }
    stage.proxy.set(Way::Open);
    eventually("none is left", || async { stage.cluster.all::<UpcomingNode>().await.is_empty() })
        .await;
}

async fn rows_13_and_14_a_shard_that_does_not_read_gets_the_newest(stage: &Stage) {
    const ASKED: usize = 300;
    // Each roll-up is far larger than all windows and buffers together.
    let requests = Api::<CapacityRequest>::namespaced(stage.cluster.client(), "default");
    for index in 0..100 {
        requests.create(&PostParams::default(), &wordy(index)).await.unwrap();
    }
    let all = |heard: &Heard| heard.roll_ups().last().is_some_and(|one| one.needs.len() == 100);
    stage.shard.wait_for("a large roll-up", all, PATIENCE).await.unwrap();
    let dropped = stage.operator.metric(DROPPED).await.unwrap_or_default();

    stage.shard.set_reading(false);
    let built = stage.operator.metric(ROLL_UPS).await.unwrap();
    let until_built = async |more: f64| {
        eventually("roll-ups are built", || async {
            stage.operator.metric(ROLL_UPS).await.unwrap() >= built + more
        })
        .await;
    };
    // By then one is stuck on its way.
    until_built(3.0).await;
    let heard_before = stage.shard.heard().roll_ups().count();
    stage.shard.bootstrap(CLUSTER, "row-14-", ASKED).await.unwrap();
    until_built(10.0).await;
    eventually("answers are dropped", || async {
        stage.operator.metric(DROPPED).await.unwrap() - dropped >= 43.0
    })
    .await;
    // A change tells the newest from those before it.
    let everything = ListParams::default().labels("row=13,last=yes");
    requests.delete_collection(&DeleteParams::default(), &everything).await.unwrap();
    eventually("the operator knows", || async {
        stage.operator.metric("bigfleet_operator_rollup_needs").await == Some(99.0)
    })
    .await;
    stage.shard.set_reading(true);
    let newest = |heard: &Heard| heard.roll_ups().last().is_some_and(|one| one.needs.len() == 99);
    stage.shard.wait_for("the newest roll-up", newest, PATIENCE).await.unwrap();
    let stale = {
        let heard = stage.shard.heard();
        heard.roll_ups().skip(heard_before).filter(|one| one.needs.len() == 100).count()
    };
    assert!(stale <= 2, "{stale} roll-ups came late; one may be in transit, one read");

    let lost = stage.operator.metric(DROPPED).await.unwrap() - dropped;
    let answered = |heard: &Heard| {
        let blobs = heard.frames.iter().filter(|(_, frame)| match frame {
            Up::BootstrapResponse(answer) => answer.request_id.starts_with("row-14-"),
            _ => false,
        });
        blobs.count()
    };
    let rest = |heard: &Heard| {
        (u32::try_from(answered(heard)).map(f64::from).unwrap() + lost - 300.0).abs() < 0.5
    };
    stage.shard.wait_for("the answers that were not dropped", rest, PATIENCE).await.unwrap();
    let answered = answered(&stage.shard.heard());
    assert!((256..=257).contains(&answered), "{answered} answers");
    requests.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
}

/// A request that asks in sixty thousand bytes.
fn wordy(index: usize) -> CapacityRequest {
    let values = (0..1_000).map(|value| format!("{index:030}-{value:029}")).collect();
    let requirement =
        Requirement { key: "example.com/word".to_owned(), operator: Operator::In, values };
    let spec = CapacityRequestSpec {
        resources: [("cpu".to_owned(), "1".into())].into(),
        requirements: vec![requirement],
        ..CapacityRequestSpec::default()
    };
    let mut request = CapacityRequest::new(&format!("row-13-{index}"), spec);
    let last = if index == 0 { "yes" } else { "no" };
    request.metadata.labels =
        Some([("row", "13"), ("last", last)].map(|(key, value)| (key.into(), value.into())).into());
    request
}
