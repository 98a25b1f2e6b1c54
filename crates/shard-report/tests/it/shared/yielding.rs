//! Work that ends for a neighbour's: cheap work yields to dear, and nobody's before its
//! cluster has said what it is (coordinator chapter §9; shard chapter §21, invariant 7).

use bigfleet_model::PenaltyBucket;
use bigfleet_scripted::cluster::{Cluster, Shape};
use bigfleet_shard::{Options, options::ActuationOptions};
use bigfleet_wire::v1alpha1::{
    Assignment, CapacityNeed, CoordinatorInstruction, CrossShardDrain, TransferSelector,
    coordinator_instruction::Payload, instruct_ack::Outcome,
};
use tempfile::TempDir;

use crate::{
    rig::{coordinator, instruct},
    shared::{
        lending::acked,
        rig::{Sharer, assignment, configured, machines, pass, provider, until},
    },
};

/// For somebody of priority 500.
fn drain(id: &str, count: i32) -> CoordinatorInstruction {
    let payload = CrossShardDrain {
        selector: Some(TransferSelector { count, ..TransferSelector::default() }),
        transfer_id: id.to_owned(),
        preemptor_priority: 500,
        preemptor_penalty_bucket: PenaltyBucket::from_dollars(2_048.0).to_wire(),
        ..CrossShardDrain::default()
    };
    instruct(id, 1, Some(Payload::CrossShardDrain(payload)))
}

fn asked_for(zones: &[&str], clusters: &[&str]) -> Assignment {
    Assignment { open_transfers: vec!["d".to_owned()], ..assignment(5, zones, clusters) }
}

/// So many whole machines of this worth.
fn worth(cluster: &str, count: usize, priority: i32, dollars: f64) -> Vec<CapacityNeed> {
    let mut cluster = Cluster::new(cluster, 0);
    let bucket = PenaltyBucket::from_dollars(dollars);
    let shape = Shape::new(4_000, 16 << 30).priority(priority);
    cluster.deploy(&shape.penalties(bucket, PenaltyBucket::ZERO), count);
    cluster.roll_up().needs
}

async fn offered(donor: &Sharer) -> i32 {
    let pools = donor.last_report().await.summary.unwrap_or_default().pools;
    pools.iter().map(|row| row.configured).sum()
}

/// After a restart a machine has the stamp that it was born with, which need not be what
/// it serves.
#[tokio::test(start_paused = true)]
async fn inv_07_nothing_is_drained_for_a_neighbour_before_the_first_roll_up() {
    let (fake, dir) = (provider(), TempDir::new().expect("a directory"));
    let file = dir.path().join("assignment");
    let donor = Sharer::resume(&fake, "donor", 1, Some(file.clone())).await;
    donor.assign(asked_for(&["a"], &["c"])).await;
    pass(30).await;
    let operator = donor.operator("c").await;
    operator.roll_up(machines("c", 8)).await.expect("an answer");
    until("all in use", || configured(&fake, "c").len() == 8).await;
    operator.roll_up(worth("c", 8, 1_000, 0.0)).await.expect("an answer");
    pass(60).await;
    let coordinator = donor.kill();

    let donor = Sharer::led_by(coordinator, &fake, "donor", 2, Some(file)).await;
    pass(60).await;
    // It is here, and what it says first may be held for as long as one likes.
    let operator = donor.operator("c").await;
    pass(30).await;
    assert_eq!(offered(&donor).await, 0, "nobody has said what they serve");
    donor.coordinator.instruct(drain("d", 2));
    assert_eq!(acked(&donor, "d").await.outcome(), Outcome::RejectedInvalid);
    operator.roll_up(worth("c", 8, 1_000, 0.0)).await.expect("an answer");
    pass(300).await;
    assert_eq!(offered(&donor).await, 8);
    assert_eq!(configured(&fake, "c").len(), 8);
    donor.stop().await;
}

/// Without its operator a machine cannot be drained: others go, of equals by other names.
#[tokio::test(start_paused = true)]
async fn nobody_is_drained_whose_operator_is_away() {
    let fake = provider();
    let donor = Sharer::start(&fake, "donor").await;
    donor.assign(asked_for(&["a"], &["c", "e"])).await;
    pass(30).await;
    let mut away = donor.operator("c").await;
    away.roll_up(worth("c", 4, 0, 0.0)).await.expect("an answer");
    let here = donor.operator("e").await;
    here.roll_up(worth("e", 4, 0, 0.0)).await.expect("an answer");
    let used = || configured(&fake, "c").len() + configured(&fake, "e").len();
    until("all in use", || used() == 8).await;
    away.abort().await;
    let unreachable = configured(&fake, "c");
    pass(30).await;
    assert_eq!(offered(&donor).await, 4);
    donor.coordinator.instruct(drain("d", 2));
    let ack = acked(&donor, "d").await;
    assert_eq!((ack.outcome(), ack.machine_ids.len()), (Outcome::Accepted, 2));
    assert_eq!((configured(&fake, "c"), configured(&fake, "e").len()), (unreachable, 2));
    donor.stop().await;
}

/// Between the choice of a victim and its drain there may be a brake, a cap, an operator
/// who is away: whatever serves dearer work by then stays, and no other goes for it.
#[tokio::test(start_paused = true)]
async fn what_came_to_dearer_work_since_it_was_chosen_stays() {
    for (priority, dollars) in [(1_000, 0.0), (0, 8_192.0)] {
        let (fake, dir) = (provider(), TempDir::new().expect("a directory"));
        let brake = dir.path().join("pause");
        let pause_file = Some(brake.clone());
        let actuation = ActuationOptions { pause_file, ..ActuationOptions::default() };
        let options = Options { actuation, ..Options::default() };
        let donor = Sharer::tuned(options, coordinator().await, &fake, "donor", 1, None).await;
        donor.assign(asked_for(&["a"], &["c"])).await;
        pass(30).await;
        let operator = donor.operator("c").await;
        operator.roll_up(worth("c", 8, 0, 0.0)).await.expect("an answer");
        until("all in use", || configured(&fake, "c").len() == 8).await;
        std::fs::write(&brake, "").expect("a file");
        pass(30).await;
        donor.coordinator.instruct(drain("d", 2));
        until("they are chosen", || !donor.holdings().out.is_empty()).await;
        operator.roll_up(worth("c", 8, priority, dollars)).await.expect("an answer");
        pass(60).await;
        std::fs::remove_file(&brake).expect("a file");
        // It waits in vain for as long as a drain may take.
        pass(900).await;
        let ack = acked(&donor, "d").await;
        assert_eq!((ack.outcome(), ack.machine_ids.len()), (Outcome::RejectedInvalid, 0));
        assert_eq!(configured(&fake, "c").len(), 8, "{priority} {dollars}");
        assert_eq!(operator.read(|state| state.drains.len()), 0);
        donor.stop().await;
    }
}
