//! 25: what drains is counted, however long it takes and in whatever order it
//! ends.

use bigfleet_model::{CapacityType, MachineState};
use bigfleet_sim::Simulation;

use crate::support::{Shape, bound, configured, latency, need_at, start};

/// A full fleet of owned machines: the important cluster takes three, once, and
/// the other never gets them back.
#[test]
fn inv_25_no_second_preempt_while_victims_drain() {
    let owned = Shape { kind: CapacityType::BareMetal, price: 0.0, ..Shape::default() };
    for seed in 0..200 {
        for group in ["", "gang"] {
            let modest = need_at(100, "modest", "", 8, 1);
            let urgent = need_at(1_000_000, "urgent", group, 3, 1);
            let fleet = (0..8).map(|n| bound(&format!("m-{n}"), &modest, &owned)).collect();
            let mut sim = Simulation::new(seed, latency(seed), start(fleet, vec![modest, urgent]));
            let quiet = sim.run_until_quiet(40, 400);
            let context = format!("seed {seed} {group:?}");
            assert!(quiet.is_some(), "{context}");
            let counters = sim.counters();
            assert_eq!((counters.preempts, counters.bootstraps), (3, 3), "{context}");
            assert_eq!((counters.reclaims, counters.provisions), (0, 0), "{context}");
            assert_eq!(configured(&sim, "urgent").len(), 3, "{context}");
            assert_eq!(configured(&sim, "modest").len(), 5, "{context}");
            assert_eq!(sim.provider.count(MachineState::Configured), 8, "{context}");
        }
    }
}

/// A chain of three priorities on one full fleet: each step down costs as many
/// preempts as machines move, and then it is over.
#[test]
fn inv_25_a_chain_of_priorities_settles() {
    let owned = Shape { kind: CapacityType::BareMetal, price: 0.0, ..Shape::default() };
    for seed in 0..100 {
        let low = need_at(0, "low", "", 6, 1);
        let demand =
            vec![low.clone(), need_at(500, "middle", "", 4, 1), need_at(9000, "high", "", 2, 1)];
        let fleet = (0..6).map(|n| bound(&format!("m-{n}"), &low, &owned)).collect();
        let mut sim = Simulation::new(seed, latency(seed), start(fleet, demand));
        assert!(sim.run_until_quiet(40, 400).is_some(), "seed {seed}");
        let serving = ["high", "middle", "low"].map(|cluster| configured(&sim, cluster).len());
        assert_eq!(serving, [2, 4, 0], "seed {seed}");
        assert_eq!(sim.counters().preempts, 6, "seed {seed}");
    }
}
