//! Available-capacity hints (§13, wire chapter §4).

use std::time::Duration;

use bigfleet_provider::fake::Fake;
use bigfleet_scripted::{
    cluster::Shape,
    operator::{Bootstrap, Operator},
};
use bigfleet_shard::Options;
use bigfleet_wire::v1alpha1::{
    AvailableCapacityUpdate, available_capacity_update::Confidence, shard_message::Payload,
};

use crate::rig::{Rig, offer, pods_of, slow};

const GI: i64 = 1 << 30;
const SOON: Duration = Duration::from_secs(30);

/// A demand that no operator gets a node for: hints stay what supply is.
fn shape() -> Shape {
    Shape::new(64_000, GI).zones(&["z1"])
}

fn key() -> String {
    format!("available:{}", shape().profile().fingerprint())
}

/// Every hint of this session, in order.
fn hints(operator: &Operator) -> Vec<AvailableCapacityUpdate> {
    let frames = operator.frames().into_iter();
    let hints = frames.filter_map(|frame| match frame.payload {
        Some(Payload::AvailableCapacity(hint)) => Some(hint),
        _ => None,
    });
    hints.collect()
}

async fn wait_for(operator: &Operator, count: i32, confidence: Confidence, cost: f64) {
    let told = |hint: &AvailableCapacityUpdate| {
        (hint.available_count, hint.confidence(), hint.cost_per_hour) == (count, confidence, cost)
    };
    let waited = operator
        .wait_for("a hint", |state| state.picture.available.get(&key()).is_some_and(told), SOON)
        .await;
    assert!(waited.is_ok(), "{count} {confidence:?} {cost}: {:?}", hints(operator));
}

#[tokio::test(start_paused = true)]
async fn hints_follow_supply_and_are_withdrawn() {
    let fake = Fake::new(slow());
    // Not in its zone.
    fake.add_idle("x-1", &offer("big", "z2", 16)).expect("let in");
    let rig = Rig::over(Options::default(), fake.clone(), 1).await;
    let mut operator = rig.operator("c").await;
    operator.roll_up(pods_of("c", 1, &shape())).await.expect("accepted");
    wait_for(&operator, 0, Confidence::None, 0.0).await;
    fake.add_speculative("m-1", &offer("big", "z1", 16)).expect("let in");
    fake.add_speculative("m-2", &offer("small", "z1", 4)).expect("let in");
    wait_for(&operator, 2, Confidence::Medium, 4.0).await;
    fake.add_idle("m-3", &offer("big", "z1", 8)).expect("let in");
    wait_for(&operator, 3, Confidence::High, 8.0).await;
    let told = hints(&operator);
    let last = told.last().expect("there are some");
    assert_eq!(last.requirements.len(), 1);
    assert!(last.resources.is_none(), "a profile has no single shape");

    // All over again on another session.
    operator.reconnect().await.expect("a session");
    wait_for(&operator, 3, Confidence::High, 8.0).await;

    // Demand that is gone has a last word, once.
    operator.roll_up(vec![]).await.expect("accepted");
    wait_for(&operator, 0, Confidence::None, 0.0).await;
    rig.pass(120).await;
    assert_eq!(hints(&operator).len(), 2, "{:?}", hints(&operator));
    fake.add_idle("m-4", &offer("big", "z1", 8)).expect("let in");
    rig.pass(60).await;
    assert_eq!(hints(&operator).len(), 2, "nobody asks");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nobody_is_told_twice_in_an_interval_and_everybody_the_latest() {
    let fake = Fake::new(slow());
    let options = Options { cycle_interval: Duration::from_secs(1), ..Options::default() };
    let rig = Rig::over(options, fake.clone(), 1).await;
    let operator = rig.operator("c").await;
    let other = rig.operator("d").await;
    operator.roll_up(pods_of("c", 1, &shape())).await.expect("accepted");
    other.roll_up(pods_of("d", 1, &Shape::new(1000, GI).zones(&["z9"]))).await.expect("accepted");
    let mut last = None;
    let mut told = 0;
    for at in 0..300 {
        if at % 10 == 0 {
            fake.add_speculative(&format!("m-{at}"), &offer("big", "z1", 16)).expect("let in");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = hints(&operator).len();
        if now > told {
            assert_eq!(now, told + 1, "two at once");
            let since = last.replace(at);
            assert!(since.is_none_or(|since| at - since >= 48), "{since:?} and {at} in tenths");
            told = now;
        }
    }
    assert!(told >= 4, "it goes on: {told}");
    wait_for(&operator, 30, Confidence::Medium, 16.0).await;
    assert_eq!(hints(&other).len(), 1, "nothing changed for others");
    rig.stop().await;
}

/// A bought machine is not on offer; one that is refused comes back.
#[tokio::test(start_paused = true)]
async fn what_is_taken_is_not_on_offer() {
    let fake = Fake::new(slow());
    fake.add_idle("m-1", &offer("big", "z1", 16)).expect("let in");
    fake.add_idle("m-2", &offer("big", "z1", 16)).expect("let in");
    let rig = Rig::over(Options::default(), fake, 1).await;
    let operator = rig.operator("c").await;
    operator.on_bootstrap(|_| Bootstrap::Unique);
    let served = Shape::new(16_000, GI).zones(&["z1"]);
    operator.roll_up(pods_of("c", 1, &served)).await.expect("accepted");
    rig.pass(60).await;
    let told = hints(&operator);
    let last = told.last().expect("there are some");
    assert_eq!((last.available_count, last.confidence()), (1, Confidence::High));
    rig.stop().await;
}
