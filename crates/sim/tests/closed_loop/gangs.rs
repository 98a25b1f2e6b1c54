//! 38 and 39: gangs stay where they are served and go quiet where they cannot be.

use std::{collections::BTreeMap, time::Duration};

use bigfleet_engine::{CycleOutput, NeedKey};
use bigfleet_model::{CapacityType, MachineId, MachineState};
use bigfleet_sim::{AfterCreate, Latency, Simulation};

use crate::support::{Shape, fixed, latency, machines, need, start, untouched};

pub(crate) type Domain = BTreeMap<String, String>;

/// Satisfied gangs with their domain and machines.
pub(crate) fn served(output: &CycleOutput) -> BTreeMap<NeedKey, (Domain, Vec<MachineId>)> {
    let mut machines: BTreeMap<usize, Vec<MachineId>> = BTreeMap::new();
    for (machine, need) in &output.claims {
        machines.entry(need.0 as usize).or_default().push(machine.clone());
    }
    let served = |(index, verdict): (usize, &bigfleet_engine::Verdict)| {
        let key = NeedKey {
            cluster: verdict.cluster.clone(),
            fingerprint: verdict.fingerprint.clone(),
            group: verdict.group.clone(),
        };
        let domain = verdict.domain.clone().filter(|_| verdict.satisfied)?;
        Some((key, (domain, machines.remove(&index)?)))
    };
    output.verdicts.iter().enumerate().filter_map(served).collect()
}

/// A served gang whose machines nobody took stays in its domain.
#[test]
fn inv_38_a_served_gang_does_not_move() {
    let mut seen = 0;
    for seed in 0..1000 {
        let mut sim = Simulation::new(seed, latency(seed), untouched(seed));
        let mut before: BTreeMap<NeedKey, (Domain, Vec<MachineId>)> = BTreeMap::new();
        for cycle in 0..60 {
            let decided = sim.step();
            let now = served(&decided.output);
            for (key, (domain, machines)) in &before {
                let Some((chosen, _)) = now.get(key) else { continue };
                let robbed = machines.iter().any(|machine| {
                    let claimant = decided.output.claims.get(machine);
                    claimant.is_some_and(|need| {
                        let verdict = &decided.output.verdicts[need.0 as usize];
                        verdict.group != key.group || verdict.fingerprint != key.fingerprint
                    })
                });
                seen += 1;
                assert!(robbed || chosen == domain, "seed {seed} cycle {cycle}: {key:?}");
            }
            before = now;
        }
    }
    assert!(seen > 1000, "only {seen} served gangs");
}

/// Racks of three and two for a gang of five: it gathers in the larger and rests;
/// re-probes change nothing.
#[test]
fn inv_39_an_unsatisfiable_gang_goes_quiet() {
    for seed in 0..50 {
        let mut fleet = machines("x", 3, MachineState::Speculative, &Shape::default());
        let other = Shape { rack: "r1", ..Shape::default() };
        fleet.extend(machines("y", 2, MachineState::Speculative, &other));
        let latency: Latency = latency(seed);
        let mut sim = Simulation::new(seed, latency, start(fleet, vec![need("a", "g", 5, 1)]));
        sim.step = Duration::from_secs(10);
        let quiet = sim.run_until_quiet(40, 200);
        assert!(quiet.is_some(), "seed {seed}");
        let (before, actions) = (sim.provider.snapshot(), sim.counters().actions());
        assert_eq!(actions, 3, "seed {seed}");
        // Over several re-probes, every 32 cycles.
        sim.run(140);
        assert_eq!(sim.provider.snapshot(), before, "seed {seed}");
        assert_eq!(sim.counters().actions(), actions, "seed {seed}");
    }
}

/// The same where the idle hold (six cycles) is shorter than the way to a re-probe,
/// and creation longer than the way to parking: what arrives then is still the
/// gang's, or it would be released and bought again at every re-probe.
#[test]
fn inv_39_an_unsatisfiable_gang_keeps_what_it_bought() {
    let both = [AfterCreate::Rest, AfterCreate::Configure];
    let holds = (0..16).flat_map(|dwell| both.map(|after_create| (dwell, after_create)));
    for (dwell, after_create) in holds {
        let spot = Shape { kind: CapacityType::Spot, ..Shape::default() };
        let fleet = machines("x", 3, MachineState::Speculative, &spot);
        let latency = Latency { after_create, ..fixed(dwell, 1, 1) };
        let mut sim = Simulation::new(1, latency, start(fleet, vec![need("a", "g", 5, 1)]));
        sim.step = Duration::from_secs(10);
        sim.run(300);
        let counters = sim.counters();
        let context = format!("{after_create:?} dwell {dwell}");
        assert_eq!((counters.provisions, counters.deletes), (3, 0), "{context}");
        assert_eq!(sim.provider.count(MachineState::Configured), 3, "{context}");
    }
}
