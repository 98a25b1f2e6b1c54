//! Need statuses (wire chapter §6.1).

use std::time::Duration;

use bigfleet_net::tls::Security;
use bigfleet_provider::fake::Fake;
use bigfleet_scripted::{
    cluster::Shape,
    operator::{Operator, OperatorOptions},
};
use bigfleet_shard::Options;
use bigfleet_wire::v1alpha1::{NeedStatusUpdate, UnmetReason, shard_message::Payload};

use crate::rig::{Rig, offer, pods_of, slow};

const GI: i64 = 1 << 30;
const SOON: Duration = Duration::from_secs(120);

fn shape() -> Shape {
    Shape::new(4000, GI).zones(&["z1"])
}

/// Statuses of this session, in order.
fn statuses(operator: &Operator) -> Vec<NeedStatusUpdate> {
    let frames = operator.frames().into_iter();
    let statuses = frames.filter_map(|frame| match frame.payload {
        Some(Payload::NeedStatus(status)) => Some(status),
        _ => None,
    });
    statuses.collect()
}

async fn wait_for(
    operator: &Operator,
    what: &'static str,
    so: impl Fn(&NeedStatusUpdate) -> bool,
) -> NeedStatusUpdate {
    let profile = shape().profile();
    let look = |state: &bigfleet_scripted::operator::State| {
        let status = state.picture.need(profile.fingerprint(), "")?;
        so(status).then(|| status.clone())
    };
    let found = operator.find(what, look, SOON).await;
    found.unwrap_or_else(|error| panic!("{error}; told {:?}", statuses(operator)))
}

fn behind_the_marker(operator: &Operator) {
    let frames = operator.frames();
    let place = |is: fn(&Payload) -> bool| {
        frames.iter().position(|frame| frame.payload.as_ref().is_some_and(is))
    };
    let marker = place(|one| matches!(one, Payload::Ack(ack) if ack.echo == "resync"));
    let status = place(|one| matches!(one, Payload::NeedStatus(_)));
    assert!(marker.is_some() && marker < status, "marker {marker:?}, status {status:?}");
}

/// The first cycle decides before the replay has had its turn.
#[tokio::test(start_paused = true)]
async fn no_status_goes_before_the_marker() {
    let rig = Rig::blind(Options::default(), Fake::new(slow()), 1).await;
    let operator = rig.operator("c").await;
    operator.roll_up(pods_of("c", 1, &shape())).await.expect("accepted");
    rig.pass(30).await;
    assert!(statuses(&operator).is_empty(), "nothing is known yet");
    rig.knobs().down = false;
    wait_for(&operator, "unmet", |status| !status.satisfied).await;
    behind_the_marker(&operator);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn statuses_follow_a_need_to_its_end() {
    let fake = Fake::new(slow());
    let rig = Rig::over(Options::default(), fake.clone(), 1).await;
    let mut operator = rig.operator("c").await;
    operator.roll_up(pods_of("c", 1, &shape())).await.expect("accepted");
    let unmet = wait_for(&operator, "unmet", |status| !status.satisfied).await;
    assert_eq!(unmet.unmet_reason(), UnmetReason::NoMatchingSupply);
    assert_eq!(unmet.residual_deficit.as_ref().expect("short").resources["cpu"], "4");
    assert_eq!(unmet.supersedes_key, format!("need:{}\0", shape().profile().fingerprint()));
    assert!(unmet.cycle > 0 && unmet.age_cycles_unmet >= 1 && unmet.machines_coming == 0);
    rig.pass(60).await;
    assert_eq!(statuses(&operator).len(), 1, "its age alone is no news");

    // A new session hears of it again, behind the marker.
    operator.reconnect().await.expect("a session");
    let unmet = wait_for(&operator, "unmet", |status| !status.satisfied).await;
    assert!(unmet.age_cycles_unmet > 4);
    behind_the_marker(&operator);

    fake.add_speculative("m-1", &offer("big", "z1", 4)).expect("let in");
    let coming = wait_for(&operator, "coming", |status| status.machines_coming > 0).await;
    assert!(coming.satisfied && coming.residual_deficit.is_none());
    wait_for(&operator, "there", |status| status.satisfied && status.machines_coming == 0).await;
    let told = statuses(&operator).len();
    assert_eq!(told, 3);
    rig.pass(120).await;
    assert_eq!(statuses(&operator).len(), told, "constant demand, no news");
    rig.stop().await;
}

/// Frames of a need are apart, and the latest still comes.
#[tokio::test(start_paused = true)]
async fn a_quick_change_waits_and_arrives() {
    let fake = Fake::new(bigfleet_provider::fake::FakeOptions::instant());
    let options = Options { cycle_interval: Duration::from_secs(1), ..Options::default() };
    let rig = Rig::over(options, fake.clone(), 1).await;
    let operator = rig.operator("c").await;
    operator.roll_up(pods_of("c", 1, &shape())).await.expect("accepted");
    wait_for(&operator, "unmet", |status| !status.satisfied).await;
    let began = tokio::time::Instant::now();
    fake.add_idle("m-1", &offer("big", "z1", 4)).expect("let in");
    rig.until("bound", |rig| rig.count(bigfleet_model::MachineState::Configured) == 1).await;
    assert!(began.elapsed() < Duration::from_secs(4), "soon");
    wait_for(&operator, "there", |status| status.satisfied && status.machines_coming == 0).await;
    assert!(began.elapsed() >= Duration::from_secs(4), "not at once: {:?}", began.elapsed());
    assert_eq!(statuses(&operator).len(), 2, "what lay between was not told");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn who_did_not_ask_is_not_told() {
    let rig = Rig::over(Options::default(), Fake::new(slow()), 1).await;
    let options = OperatorOptions::new("c").features(&[]);
    let operator = Operator::connect(&rig.addr, &Security::Plaintext, options).await;
    let operator = operator.expect("a session");
    operator.roll_up(pods_of("c", 1, &shape())).await.expect("accepted");
    rig.pass(60).await;
    assert!(statuses(&operator).is_empty());
    rig.stop().await;
}
