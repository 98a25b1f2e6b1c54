//! A fleet under the kit: what shards see of mishaps.

use std::path::Path;

use bigfleet_provider_kit::MemStore;
use bigfleet_provider_sim::{Config, Fleet, Interrupt, Kill, Selector, Warning};
use bigfleet_wire::v1alpha1::{ListFilter, MachineState};
use tokio::time::{Duration, Instant};

use crate::{
    fleets,
    rig::{Rig, config},
};

async fn rig(fleet: Fleet) -> Rig {
    Rig::local(fleet.cloud, MemStore::new(), config()).await.unwrap()
}

fn open(config: &Config) -> Fleet {
    Fleet::open(config, Path::new("")).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_default_fleet_walks_in_every_cloud() {
    let mut rig = rig(open(&Config::default_fleet())).await;
    assert_eq!(rig.list(ListFilter::default()).await.machines.len(), 120);
    for id in ["alpha-ondemand-003", "beta-spot-000"] {
        let host = rig.bind(id, "c-1").await.host.unwrap();
        assert_eq!((host.provider.as_str(), host.r#ref), ("rig", format!("sim://{id}/1")));
        rig.drain(id, 5).await.unwrap();
        rig.reaches(id, MachineState::Idle).await;
        rig.delete(id).await.unwrap();
        rig.reaches(id, MachineState::Speculative).await;
    }
    assert_eq!(rig.get("metal-owned-027").await.state(), MachineState::Idle);
    assert_eq!(rig.get("alpha-reserved-019").await.state(), MachineState::Idle);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn spot_is_taken_two_minutes_after_its_notice() {
    let fleet = open(&fleets::config("    mishaps: {interruptions: {factor: 10000}}\n"));
    let mut rig = rig(fleet).await;
    rig.create("a-od-000").await.unwrap();
    rig.create("a-spot-000").await.unwrap();
    let noticed = rig.becomes("a-spot-000", |m| m.interruption_probability == 0.99).await;
    assert!(noticed.host.is_some());
    let begun = Instant::now();
    rig.reaches("a-spot-000", MachineState::Speculative).await;
    // Two minutes; then a sweep at once, because the cloud says so, and one at its turn.
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(239) && took < Duration::from_secs(245), "{took:?}");
    assert_eq!(rig.get("a-spot-000").await.interruption_probability, 0.3, "the notice is over");
    assert_eq!(rig.get("a-od-000").await.state(), MachineState::Idle, "only spot is taken");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_advice_comes_before_the_notice_where_configured() {
    let more = "    mishaps: {interruptions: {factor: 100, rebalance: 1h}}\n";
    let mut rig = rig(open(&fleets::config(more))).await;
    rig.create("a-spot-000").await.unwrap();
    rig.becomes("a-spot-000", |m| m.interruption_probability == 0.5).await;
    rig.becomes("a-spot-000", |m| m.interruption_probability == 0.99).await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_experimenter_interrupts_a_share() {
    let fleet = open(&fleets::config("    mishaps: {interruptions: {factor: 0}}\n"));
    let controls = fleet.controls();
    let mut rig = rig(fleet).await;
    for number in 0..4 {
        let id = format!("a-spot-00{number}");
        rig.create(&id).await.unwrap();
        rig.reaches(&id, MachineState::Idle).await;
    }
    let half = Selector::tier("spot").share(0.5);
    let advice = Interrupt { notice: Warning::Rebalance, after: None };
    assert_eq!(controls.interrupt(&half, advice).unwrap(), 2);
    assert_eq!(controls.interrupt(&half, Interrupt::default()).unwrap(), 2);
    let told = async {
        loop {
            let machines = rig.list(ListFilter::default()).await.machines.into_iter();
            let told = machines.filter(|machine| machine.interruption_probability == 0.99);
            let told: Vec<_> = told.map(|machine| machine.id).collect();
            if told.len() >= 2 {
                return told;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let ids = tokio::time::timeout(Duration::from_secs(60), told).await.unwrap();
    assert_eq!(ids.len(), 2);
    for id in &ids {
        rig.reaches(id, MachineState::Speculative).await;
    }
    let idle = ListFilter { states: vec![MachineState::Idle.into()], ..ListFilter::default() };
    assert_eq!(rig.list(idle).await.machines.len(), 2 + 2);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_killed_host_is_lost_and_repaired() {
    let fleet = open(&fleets::config(""));
    let controls = fleet.controls();
    let mut rig = rig(fleet).await;
    let before = rig.bind("a-od-000", "c-1").await;
    rig.configure("a-metal-001", "c-1").await.unwrap();
    let metal = rig.reaches("a-metal-001", MachineState::Configured).await;
    let whom = Selector::machines(&["a-od-000", "a-metal-001", "a-spot-000"]);
    assert_eq!(controls.kill(&whom, Kill {}).unwrap(), 2, "one of them has no host");
    let lost = rig.reaches("a-od-000", MachineState::Failed).await;
    assert_eq!((lost.last_error.as_str(), &lost.host), ("host lost", &before.host));
    let slot = rig.reaches("a-od-000", MachineState::Speculative).await;
    assert_eq!(slot.host, None);
    let repaired = rig.reaches("a-metal-001", MachineState::Idle).await;
    assert_eq!((repaired.host, repaired.cluster.as_str()), (metal.host, ""));
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn hosts_die_silently_at_their_rate() {
    let fleet = open(&fleets::config("    mishaps: {host_death_rate: 1}\n"));
    let mut rig = rig(fleet).await;
    rig.reaches("a-metal-000", MachineState::Failed).await;
    rig.create("a-od-000").await.unwrap();
    rig.reaches("a-od-000", MachineState::Idle).await;
    rig.reaches("a-od-000", MachineState::Speculative).await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failures_reach_the_record_with_their_cause() {
    let more = "    quotas: {capacities: {ON_DEMAND: 0}}
    mishaps: {readiness_fail_rate: 1}
";
    let mut rig = rig(open(&fleets::config(more))).await;
    rig.create("a-od-000").await.unwrap();
    let short = rig.reaches("a-od-000", MachineState::Failed).await;
    assert!(short.last_error.contains("quota: at most 0 hosts of ON_DEMAND"), "{short:?}");
    rig.configure("a-metal-000", "c-1").await.unwrap();
    let never = rig.reaches("a-metal-000", MachineState::Failed).await;
    assert!(never.last_error.contains("not Ready"), "{never:?}");
    rig.stop().await;
}
