//! 41–44: what must never happen, whatever the demand.

use std::time::Duration;

use bigfleet_engine::{ActionKind, HeldBack};
use bigfleet_model::{CapacityType, MachineState};
use bigfleet_oracle::worlds::{SplitMix64, world};
use bigfleet_sim::Simulation;

use crate::support::{Shape, configured, fixed, latency, machines, need, start};

#[test]
fn inv_41_no_reclaim_for_a_cluster_that_has_not_reported() {
    for seed in 0..1000 {
        let mut sim = Simulation::new(seed, latency(seed), world(seed));
        for _ in 0..30 {
            for action in sim.step().output.actions {
                if let ActionKind::Reclaim { cluster, .. } = &action.kind {
                    assert!(sim.demand.ready().contains(cluster), "seed {seed}: {action:?}");
                }
            }
        }
    }
}

#[test]
fn inv_42_a_reported_empty_roll_up_reclaims_everything() {
    for seed in 0..20 {
        let fleet = machines("m", 6, MachineState::Speculative, &Shape::default());
        let mut sim = Simulation::new(seed, latency(seed), start(fleet, vec![need("a", "", 6, 1)]));
        sim.run(60);
        assert_eq!(configured(&sim, "a").len(), 6, "seed {seed}");
        sim.roll_up(&"a".into(), vec![]);
        assert_eq!(sim.step().output.actions.len(), 6, "seed {seed}");
        assert_eq!(sim.counters().reclaims, 6, "seed {seed}");
    }
}

#[test]
fn inv_43_owned_hardware_is_never_deleted() {
    for seed in 0..300 {
        let mut sim = Simulation::new(seed, latency(seed), world(seed));
        sim.step = Duration::from_secs(30);
        let clusters = sim.demand.ready().clone();
        for cycle in 0..120 {
            if cycle == 40 {
                for cluster in &clusters {
                    sim.roll_up(cluster, vec![]);
                }
            }
            for action in sim.step().output.actions {
                let tracked = sim.provider.machine(&action.machine);
                let kind = tracked.expect("a known machine").machine.class.capacity_type;
                let elastic = matches!(kind, CapacityType::OnDemand | CapacityType::Spot);
                assert!(action.kind != ActionKind::Delete || elastic, "seed {seed}: {action:?}");
            }
        }
    }
}

#[test]
fn inv_44_a_restart_takes_nothing_away() {
    for seed in 0..400 {
        let mut random = SplitMix64::new(seed);
        let mut sim = Simulation::new(seed, latency(seed), world(seed));
        sim.run(random.below(60) as u32);
        sim.restart();
        let restarted = sim.now();
        for _ in 0..100 {
            let now = sim.now();
            for action in sim.step().output.actions {
                let kind = &sim.provider.machine(&action.machine).expect("known").machine.class;
                let hold = match kind.capacity_type {
                    CapacityType::Spot => sim.release.spot,
                    _ => sim.release.on_demand,
                };
                assert!(
                    action.kind == ActionKind::Delete && now.since(restarted) >= hold,
                    "seed {seed}: {action:?}"
                );
            }
        }
    }
}

/// Once the same roll-ups arrive, a settled fleet goes on as it was.
#[test]
fn inv_44_after_the_roll_ups_nothing_is_bought_again() {
    for seed in 0..60 {
        let fleet = machines("m", 14, MachineState::Speculative, &Shape::default());
        let demand = vec![
            need("a", "", 3, 1),
            need("a", "g", 3, 1),
            need("b", "", 2, 4),
            need("b", "h", 2, 1),
        ];
        let mut sim = Simulation::new(seed, latency(seed), start(fleet, demand.clone()));
        sim.run(80);
        let before = sim.counters().actions();
        sim.restart();
        sim.run(5);
        for cluster in ["a", "b"] {
            let needs = demand.iter().filter(|need| need.cluster.as_str() == cluster);
            sim.roll_up(&cluster.into(), needs.cloned().collect());
            sim.run(3);
        }
        sim.run(80);
        assert_eq!(sim.counters().actions(), before, "seed {seed}");
    }
}

/// A restart in the middle of purchases buys none of them again.
#[test]
fn inv_44_purchases_under_way_are_awaited() {
    for dwell in 2..10 {
        let fleet = machines("m", 9, MachineState::Speculative, &Shape::default());
        let demand = vec![need("a", "", 2, 1), need("a", "g", 2, 1)];
        let mut sim = Simulation::new(1, fixed(dwell, 1, 1), start(fleet, demand.clone()));
        sim.run(2);
        assert_eq!(sim.provider.count(MachineState::Creating), 4, "dwell {dwell}");
        sim.restart();
        sim.roll_up(&"a".into(), demand);
        sim.run(40);
        assert_eq!(sim.counters().provisions, 4, "dwell {dwell}");
        assert_eq!(configured(&sim, "a").len(), 4, "dwell {dwell}");
    }
}

#[test]
fn inv_46_a_machine_held_back_is_not_acquired() {
    let fleet = machines("m", 4, MachineState::Speculative, &Shape::default());
    let mut sim = Simulation::new(1, fixed(1, 1, 1), start(fleet, vec![need("a", "", 4, 1)]));
    sim.held_back.insert("m-00".into(), HeldBack::ProviderFailing);
    sim.run(20);
    assert_eq!(configured(&sim, "a").len(), 3);
    sim.held_back.clear();
    sim.run(20);
    assert_eq!(configured(&sim, "a").len(), 4);
}
