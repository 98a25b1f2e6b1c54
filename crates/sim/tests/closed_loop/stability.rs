//! 34, 35, 40: constant demand costs nothing, a loss costs itself, flapping buys
//! no machine twice within its hold.

use std::time::Duration;

use bigfleet_engine::{ActionKind, CycleOutput};
use bigfleet_model::{CapacityType, MachineState};
use bigfleet_oracle::worlds::SplitMix64;
use bigfleet_sim::{AfterCreate, Dwell, Latency, Simulation};

use crate::support::{Shape, configured, fixed, latency, machines, need, start, untouched};

/// Runs every untouched world with every dwell to the first cycle that counts as
/// converged, and returns the runs in which something is reclaimed afterwards.
fn late_reclaims(
    seeds: impl Iterator<Item = u64>,
    after_create: AfterCreate,
    converged: impl Fn(bool, &CycleOutput) -> bool,
) -> (usize, Vec<String>) {
    let (mut runs, mut failed) = (0, Vec::new());
    for seed in seeds {
        for dwell in 0..=10 {
            let queue = Dwell::between(0, 2);
            let latency = Latency { queue, after_create, ..Latency::all(Dwell::fixed(dwell)) };
            let mut sim = Simulation::new(seed, latency, untouched(seed));
            let calm = (0..100).any(|_| {
                let settled = sim.provider.is_settled();
                let output = sim.step().output;
                output.actions.is_empty() && converged(settled, &output)
            });
            if calm {
                runs += 1;
                let before = sim.counters().reclaims;
                sim.run(60);
                let reclaims = sim.counters().reclaims - before;
                if reclaims > 0 {
                    failed.push(format!("seed {seed} dwell {dwell}: {reclaims} reclaims"));
                }
            }
        }
    }
    (runs, failed)
}

/// Converged: everybody is satisfied, be it by machines on their way. In the last
/// two worlds a hard spread acquires machines for the sake of balance alone.
#[test]
fn inv_34_no_reclaim_once_all_are_satisfied() {
    for after_create in [AfterCreate::Configure, AfterCreate::Rest] {
        let (runs, failed) =
            late_reclaims((0..200).chain([3186, 3258]), after_create, |_, output| {
                output.verdicts.iter().all(|verdict| verdict.satisfied)
            });
        let context = format!("{after_create:?}: {} of {runs}", failed.len());
        assert!(failed.is_empty(), "{context}:\n{}", failed.join("\n"));
        assert!(runs > 300, "only {runs} runs converged");
    }
}

/// Converged: nothing is under way and nothing is decided, be somebody short or
/// not.
#[test]
fn inv_34_no_reclaim_once_nothing_is_under_way() {
    for after_create in [AfterCreate::Configure, AfterCreate::Rest] {
        let (runs, failed) = late_reclaims(0..100, after_create, |settled, _| settled);
        let context = format!("{after_create:?}: {} of {runs}", failed.len());
        assert!(failed.is_empty(), "{context}:\n{}", failed.join("\n"));
        assert!(runs > 900, "only {runs} runs converged");
    }
}

#[test]
fn inv_35_one_lost_machine_costs_exactly_one_acquisition() {
    for dwell in 0..=12 {
        for group in ["", "gang"] {
            for after_create in [AfterCreate::Configure, AfterCreate::Rest] {
                for seed in 0..20 {
                    let spare = machines("m", 12, MachineState::Speculative, &Shape::default());
                    let latency = Latency { after_create, ..fixed(dwell, 2, 2) };
                    let mut sim =
                        Simulation::new(seed, latency, start(spare, vec![need("a", group, 6, 1)]));
                    sim.run(60);
                    let serving = configured(&sim, "a");
                    assert_eq!(serving.len(), 6, "dwell {dwell} {group:?} seed {seed}");
                    let lost = SplitMix64::new(seed).one(&serving).clone();
                    if seed.is_multiple_of(2) {
                        sim.provider.vanish(&lost);
                    } else {
                        sim.provider.fail(&lost);
                    }
                    let before = sim.counters().clone();
                    sim.run(60);
                    let context = format!("dwell {dwell} {group:?} {after_create:?} seed {seed}");
                    let after = sim.counters();
                    assert_eq!(after.acquisitions() - before.acquisitions(), 1, "{context}");
                    assert_eq!(after.reclaims, 0, "{context}");
                    assert_eq!(configured(&sim, "a").len(), 6, "{context}");
                }
            }
        }
    }
}

#[test]
fn inv_40_at_most_one_create_per_machine_per_hold_period() {
    for seed in 0..150 {
        let mut random = SplitMix64::new(seed);
        let mut fleet = machines("o", 8, MachineState::Speculative, &Shape::default());
        let spot = Shape { kind: CapacityType::Spot, price: 0.5, ..Shape::default() };
        fleet.extend(machines("s", 8, MachineState::Speculative, &spot));
        let clusters = ["a", "b", "c"];
        let demand = clusters.map(|cluster| need(cluster, "", 2, 1)).to_vec();
        let mut sim = Simulation::new(seed, latency(seed), start(fleet, demand));
        sim.step = Duration::from_secs(5);
        for _ in 0..600 {
            if random.chance(20) {
                let cluster = *random.one(&clusters);
                let wanted = (0..random.below(3))
                    .map(|number| {
                        let group = *random.one(&["", "", "g0", "g1"]);
                        need(cluster, group, 1 + random.below(6) as u32, number as i32)
                    })
                    .collect();
                sim.roll_up(&cluster.into(), wanted);
            }
            sim.step();
        }
        let counters = sim.counters();
        assert!(counters.provisions > 0 && counters.deletes > 0, "seed {seed}: {counters:?}");
        for (machine, times) in &counters.creates {
            let hold = if machine.as_str().starts_with('s') { 60 } else { 600 };
            for pair in times.windows(2) {
                let apart = pair[1].since(pair[0]);
                assert!(
                    apart >= Duration::from_secs(hold),
                    "seed {seed}: {machine} bought twice within {apart:?}"
                );
            }
        }
    }
}

/// Demand that comes and goes faster than the hold reclaims but never buys twice.
#[test]
fn inv_40_a_flapping_need_buys_once() {
    for seed in 0..40 {
        let fleet = machines("m", 4, MachineState::Speculative, &Shape::default());
        let mut sim = Simulation::new(seed, latency(seed), start(fleet, vec![need("a", "", 4, 1)]));
        for round in 0..400_u32 {
            if round % 25 == 0 {
                let wanted = if round % 50 == 0 { vec![need("a", "", 4, 1)] } else { vec![] };
                sim.roll_up(&"a".into(), wanted);
            }
            let cycle = sim.step();
            let deletes =
                cycle.output.actions.iter().any(|action| action.kind == ActionKind::Delete);
            assert!(!deletes, "seed {seed} cycle {round}");
        }
        assert_eq!(sim.counters().provisions, 4, "seed {seed}");
    }
}
