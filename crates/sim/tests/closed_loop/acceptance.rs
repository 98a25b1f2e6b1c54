//! The acceptance cases (a) to (g) of engine chapter §16.

use std::time::Duration;

use bigfleet_model::{CapacityType, MachineState};
use bigfleet_sim::{AfterCreate, Dwell, Latency, Simulation};

use crate::support::{Shape, bound, configured, fixed, latency, machine, machines, need, start};

const BOTH: [AfterCreate; 2] = [AfterCreate::Configure, AfterCreate::Rest];

/// One gang of seven whole nodes, replacements to buy in the same rack, and a rack
/// with as many that must not tempt it.
fn gang_of_seven(seed: u64, latency: Latency) -> Simulation {
    let gang = need("a", "gang", 7, 1);
    let mut fleet: Vec<_> =
        (0..7).map(|n| bound(&format!("cfg-{n}"), &gang, &Shape::default())).collect();
    fleet.extend(machines("spec", 20, MachineState::Speculative, &Shape::default()));
    Simulation::new(seed, latency, start(fleet, vec![gang]))
}

fn lose_one(sim: &mut Simulation) {
    let serving = configured(sim, "a");
    sim.provider.vanish(serving.first().expect("a machine to lose"));
}

#[test]
fn acceptance_a_runway() {
    for after_create in BOTH {
        for dwell in [0, 1, 2, 3, 5] {
            let mut sim =
                gang_of_seven(dwell.into(), Latency { after_create, ..fixed(dwell, 1, 1) });
            sim.run(30);
            assert_eq!(sim.counters().actions(), 0, "dwell {dwell}");
            lose_one(&mut sim);
            sim.run(60);
            assert_eq!(sim.counters().acquisitions(), 1, "dwell {dwell} {after_create:?}");
            assert_eq!(sim.counters().reclaims, 0, "dwell {dwell} {after_create:?}");
            assert_eq!(configured(&sim, "a").len(), 7, "dwell {dwell} {after_create:?}");
        }
    }
}

#[test]
fn acceptance_b_repeated_loss() {
    for after_create in BOTH {
        for every in 1..=3 {
            let mut floor = 0;
            for dwell in 0..=4 {
                let mut sim =
                    gang_of_seven(dwell.into(), Latency { after_create, ..fixed(dwell, 0, 1) });
                sim.run(5);
                for _ in 0..10 {
                    lose_one(&mut sim);
                    sim.run(every);
                }
                sim.run(60);
                let context = format!("every {every} dwell {dwell} {after_create:?}");
                assert_eq!(sim.counters().acquisitions(), 10, "{context}");
                if dwell == 0 {
                    floor = sim.counters().reclaims;
                }
                assert!(sim.counters().reclaims <= floor, "{context}");
                assert_eq!(configured(&sim, "a").len(), 7, "{context}");
            }
        }
    }
}

#[test]
fn acceptance_c_burst() {
    for after_create in BOTH {
        for seed in 0..40 {
            let mut sim = gang_of_seven(seed, Latency { after_create, ..latency(seed) });
            sim.run(30);
            for _ in 0..4 {
                lose_one(&mut sim);
            }
            sim.run(80);
            assert_eq!(sim.counters().acquisitions(), 4, "seed {seed} {after_create:?}");
            assert_eq!(sim.counters().reclaims, 0, "seed {seed} {after_create:?}");
        }
    }
}

#[test]
fn acceptance_d_cost_routing() {
    for seed in 0..20 {
        let stable = Shape { interruption: 0.05, ..Shape::default() };
        let cheap =
            Shape { price: 0.3, interruption: 0.3, kind: CapacityType::Spot, ..Shape::default() };
        let mut fleet = machines("stable", 8, MachineState::Speculative, &stable);
        fleet.extend(machines("cheap", 8, MachineState::Speculative, &cheap));
        let eight_dollars = bigfleet_model::PenaltyBucket::from_dollars(8.0);
        assert!((eight_dollars.dollars() - 8.0).abs() < f64::EPSILON);
        let demand =
            vec![need("tolerant", "", 4, 0), need("sensitive", "", 4, eight_dollars.to_wire())];
        let mut sim = Simulation::new(seed, latency(seed), start(fleet, demand));
        sim.run(80);
        for (cluster, tier) in [("tolerant", "cheap"), ("sensitive", "stable")] {
            let serving = configured(&sim, cluster);
            assert_eq!(serving.len(), 4, "seed {seed} {cluster}");
            assert!(
                serving.iter().all(|id| id.as_str().starts_with(tier)),
                "seed {seed}: {serving:?}"
            );
        }
    }
}

#[test]
fn acceptance_e_surplus_idle_is_released_once() {
    for seed in 0..20 {
        let fleet = machines("idle", 10, MachineState::Idle, &Shape::default());
        let mut sim = Simulation::new(seed, latency(seed), start(fleet, vec![need("a", "", 4, 1)]));
        sim.step = Duration::from_secs(10);
        sim.run(400);
        let counters = sim.counters();
        assert_eq!((counters.bootstraps, counters.deletes), (4, 6), "seed {seed}");
        assert_eq!((counters.provisions, counters.reclaims), (0, 0), "seed {seed}");
    }
}

/// Racks of three for gangs of five, in twenty clusters that compete for them.
#[test]
fn acceptance_f_unsatisfiable_gangs_go_quiet() {
    for seed in 0..20 {
        let mut fleet = Vec::new();
        for (index, rack) in ["r0", "r1", "r2", "r3", "r4"].into_iter().enumerate() {
            for number in 0..3 {
                let shape = Shape { rack, ..Shape::default() };
                let id = format!("m-{index}-{number}");
                fleet.push(machine(&id, MachineState::Speculative, &shape));
            }
        }
        let demand = (0..20).map(|number| need(&format!("c{number:02}"), "g", 5, 1)).collect();
        let mut sim = Simulation::new(seed, latency(seed), start(fleet, demand));
        sim.step = Duration::from_secs(10);
        let quiet = sim.run_until_quiet(100, 600);
        assert!(quiet.is_some_and(|cycles| cycles < 120), "seed {seed}: {quiet:?}");
    }
}

#[test]
fn acceptance_g_steady_state_has_no_actions() {
    for dwell in 0..=10 {
        for after_create in BOTH {
            let latency = Latency { after_create, ..Latency::all(Dwell::fixed(dwell)) };
            let mut sim = gang_of_seven(dwell.into(), latency);
            sim.run(200);
            assert_eq!(sim.counters().actions(), 0, "dwell {dwell}");
        }
    }
}
