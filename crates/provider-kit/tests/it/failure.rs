//! Timeouts, loss, repair, notices (provider chapter §3), on the fault target's cloud
//! and a paused clock.

use std::{path::Path, time::Duration};

use bigfleet_provider_kit::{
    Config, MemStore,
    config::Timeouts,
    fault::{FaultCloud, FaultStore, HOSTS_LABEL},
};
use bigfleet_wire::v1alpha1::{ListFilter, MachineState};
use tokio::time::{Instant, sleep};
use tonic::Code;

use crate::rig::{Rig, config};

const TIMEOUT: Duration = Duration::from_secs(2);
const SLOT: &str = "spec-000000";

fn quick() -> Config {
    Config {
        timeouts: Timeouts::all(TIMEOUT),
        sweep_interval: Duration::from_millis(500),
        failed_hold: Duration::from_secs(8),
        ..config()
    }
}

async fn rig(config: Config) -> Rig {
    let cloud = FaultCloud::open(4, TIMEOUT, Path::new("")).unwrap();
    Rig::local(cloud, MemStore::new(), config).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn faults_end_in_failed_with_a_cause_and_are_repaired() {
    let mut rig = rig(quick()).await;
    for (cluster, text) in [
        ("fault-error", "configure failed: the bootstrap was refused"),
        ("fault-timeout", "configure timed out after 2s: the cloud did not finish"),
        ("fault-readiness-block", "configure timed out after 2s: the node is not Ready"),
        ("fault-slow-ok", "configure timed out after 2s: the cloud did not finish"),
        ("fault-panic", "configure failed: the provider's own code panicked; see its log"),
    ] {
        rig.create(SLOT).await.unwrap();
        rig.reaches(SLOT, MachineState::Idle).await;
        rig.configure(SLOT, cluster).await.unwrap();
        let failed = rig.reaches(SLOT, MachineState::Failed).await;
        assert_eq!(failed.last_error, text);
        assert_eq!(failed.cluster, cluster, "evidence");
        assert!(failed.host.is_some() && !failed.shard_metadata.is_empty(), "evidence");
        for refused in [rig.configure(SLOT, "c").await, rig.drain(SLOT, 0).await] {
            assert_eq!(refused.unwrap_err().code(), Code::Internal);
        }
        // Past the late success, before the repair.
        sleep(Duration::from_secs(3)).await;
        assert_eq!(rig.get(SLOT).await, failed);
        let slot = rig.reaches(SLOT, MachineState::Speculative).await;
        assert!(slot.host.is_none() && slot.cluster.is_empty() && slot.last_error.is_empty());
    }
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_host_of_a_late_create_is_kept_and_destroyed() {
    let mut rig = rig(quick()).await;
    let id = "fault-late-0";
    rig.create(id).await.unwrap();
    rig.reaches(id, MachineState::Failed).await;
    let kept = rig.becomes(id, |machine| machine.host.is_some()).await;
    assert_eq!(kept.state(), MachineState::Failed);
    rig.becomes(id, |machine| machine.labels[HOSTS_LABEL] == "1").await;
    rig.reaches(id, MachineState::Speculative).await;
    rig.becomes(id, |machine| machine.labels[HOSTS_LABEL] == "0").await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_shortage_is_repaired_sooner() {
    let mut rig = rig(Config { failed_hold: Duration::from_secs(900), ..quick() }).await;
    for (id, hold) in [("fault-stock-out-0", 60), ("fault-error-0", 900)] {
        rig.create(id).await.unwrap();
        rig.reaches(id, MachineState::Failed).await;
        let failed = Instant::now();
        rig.reaches(id, MachineState::Speculative).await;
        assert_eq!(failed.elapsed().as_secs(), hold, "{id}");
    }
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_hold_failed_stays() {
    let mut rig = rig(Config { failed_hold: Duration::ZERO, ..quick() }).await;
    rig.create("fault-error-0").await.unwrap();
    let failed = rig.reaches("fault-error-0", MachineState::Failed).await;
    sleep(Duration::from_secs(3_600)).await;
    assert_eq!(rig.get("fault-error-0").await, failed);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_host_is_noticed_in_either_state() {
    let mut rig = rig(quick()).await;
    rig.create("fault-vanish-0").await.unwrap();
    rig.reaches("fault-vanish-0", MachineState::Idle).await;
    let slot = rig.reaches("fault-vanish-0", MachineState::Speculative).await;
    assert_eq!(slot.host, None);

    rig.bind(SLOT, "fault-vanish").await;
    let failed = rig.reaches(SLOT, MachineState::Failed).await;
    assert_eq!(
        (failed.last_error.as_str(), failed.cluster.as_str()),
        ("host lost", "fault-vanish")
    );
    rig.reaches(SLOT, MachineState::Speculative).await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_loss_takes_two_sweeps_a_minute_apart() {
    let slow = Config { sweep_interval: Duration::from_secs(40), ..quick() };
    let mut rig = rig(slow).await;
    rig.bind(SLOT, "fault-vanish").await;
    let bound = Instant::now();
    rig.reaches(SLOT, MachineState::Failed).await;
    // Missed at 40 and 80; the spacing is the interval where that is shorter.
    assert_eq!(bound.elapsed().as_secs(), 79);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_mass_loss_is_not_believed() {
    let cloud = FaultCloud::open(12, TIMEOUT, Path::new("")).unwrap();
    let mut rig = Rig::local(cloud, MemStore::new(), quick()).await.unwrap();
    for number in 0..12 {
        let cluster = if number < 7 { "fault-vanish" } else { "sound" };
        rig.bind(&format!("spec-{number:06}"), cluster).await;
    }
    // Some were lost one by one, while there were fewer; the rest would be now.
    sleep(Duration::from_secs(60)).await;
    let states = rig.list(ListFilter::default()).await.machines;
    let sound = |machine: &&bigfleet_wire::v1alpha1::Machine| machine.cluster == "sound";
    assert_eq!(states.iter().filter(sound).count(), 5);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_notice_raises_the_probability_and_nothing_else() {
    let mut rig = rig(quick()).await;
    for (id, cluster, probability) in
        [(SLOT, "fault-rebalance", 0.5), ("spec-000001", "fault-notice", 0.99)]
    {
        rig.bind(id, cluster).await;
        let since_revision = rig.list(ListFilter::default()).await.revision;
        let raised =
            rig.becomes(id, |machine| machine.interruption_probability == probability).await;
        assert_eq!(raised.state(), MachineState::Configured);
        let delta = rig.list(ListFilter { since_revision, ..ListFilter::default() }).await;
        assert!(delta.machines.iter().all(|machine| machine.id == id));
        rig.drain(id, 0).await.unwrap();
        let idle = rig.reaches(id, MachineState::Idle).await;
        assert_eq!(idle.interruption_probability, probability, "the host is the same");
        rig.delete(id).await.unwrap();
        let slot = rig.reaches(id, MachineState::Speculative).await;
        assert!(slot.interruption_probability < 0.5);
    }
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_may_take_as_long_as_its_grace() {
    let mut rig = rig(quick()).await;
    rig.bind(SLOT, "fault-drain-slow-11").await;
    rig.drain(SLOT, 15).await.unwrap();
    let began = Instant::now();
    let ended = rig.becomes(SLOT, |machine| machine.state() != MachineState::Draining).await;
    assert_eq!((ended.state(), began.elapsed().as_secs()), (MachineState::Idle, 11));

    rig.bind("spec-000001", "fault-drain-slow-11").await;
    rig.drain("spec-000001", 0).await.unwrap();
    let failed = rig.reaches("spec-000001", MachineState::Failed).await;
    assert!(failed.last_error.starts_with("drain timed out after 2s"), "{}", failed.last_error);

    rig.bind("spec-000002", "fault-drain-error").await;
    rig.drain("spec-000002", 0).await.unwrap();
    let failed = rig.reaches("spec-000002", MachineState::Failed).await;
    assert_eq!(failed.last_error, "drain timed out after 2s: the drain was refused");
    rig.drain("spec-000001", i64::MAX).await.unwrap_err();
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_endless_grace_is_not_too_long() {
    let mut rig = rig(quick()).await;
    rig.bind(SLOT, "sound").await;
    rig.drain(SLOT, i64::MAX).await.unwrap();
    rig.reaches(SLOT, MachineState::Idle).await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_refuses_and_changes_nothing() {
    let cloud = FaultCloud::open(4, TIMEOUT, Path::new("")).unwrap();
    let store = FaultStore::new(std::sync::Arc::new(MemStore::new()));
    let mut rig = Rig::local(cloud, store, quick()).await.unwrap();
    rig.bind(SLOT, "fault-store").await;
    let before = rig.list(ListFilter::default()).await;
    let refused = rig.create("spec-000001").await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    assert!(rig.readiness.state().unwrap_err().contains("asked to fail"));
    assert_eq!(rig.list(ListFilter::default()).await, before);
    // By itself.
    tokio::time::timeout(Duration::from_secs(10), async {
        while !rig.readiness.is_ready() {
            sleep(Duration::from_millis(100)).await;
        }
    })
    .await
    .unwrap();
    rig.create("spec-000001").await.unwrap();
    rig.reaches("spec-000001", MachineState::Idle).await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn too_many_transitions_at_once_are_refused() {
    let mut rig = rig(Config { max_inflight: 1, ..quick() }).await;
    rig.create("fault-slow-0").await.unwrap();
    let refused = rig.create(SLOT).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert_eq!(rig.get(SLOT).await.state(), MachineState::Speculative);
    rig.reaches("fault-slow-0", MachineState::Idle).await;
    rig.create(SLOT).await.unwrap();
    rig.stop().await;
}
