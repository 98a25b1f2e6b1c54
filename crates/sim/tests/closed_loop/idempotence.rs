//! 33 and 36: what is decided stays decided, and a machine that matures changes
//! no claim.

use std::iter;

use bigfleet_engine::{ActionKind, CycleOutput, decide};
use bigfleet_model::MachineState;
use bigfleet_oracle::worlds::{SplitMix64, world};
use bigfleet_sim::{Dwell, Latency, Simulation};

use crate::support::consistent;

fn folds(output: &CycleOutput) -> Vec<(String, u32)> {
    let named = |verdict: &bigfleet_engine::Verdict| {
        (format!("{} {} {}", verdict.cluster, verdict.fingerprint, verdict.group), verdict.folded)
    };
    output.verdicts.iter().map(named).collect()
}

fn steals(output: &CycleOutput) -> bool {
    output.actions.iter().any(|action| matches!(action.kind, ActionKind::Preempt { .. }))
}

/// The case without exceptions: everybody is satisfied, nobody was robbed,
/// and no gang changes its class.
#[test]
fn inv_33_idempotence_where_all_are_satisfied() {
    let (mut tried, mut failed) = (0, Vec::new());
    // In the last world an acquisition makes an older claim redundant.
    for seed in (0..20_000).chain(iter::once(104_208)) {
        let mut sim = Simulation::new(seed, Latency::all(Dwell::fixed(0)), consistent(seed));
        let first = sim.decide().output;
        if !first.verdicts.iter().all(|verdict| verdict.satisfied) || steals(&first) {
            continue;
        }
        let second = sim.decide().output;
        if folds(&first) != folds(&second) {
            continue;
        }
        tried += 1;
        if !second.actions.is_empty() {
            failed.push(format!("seed {seed}: {:?}", second.actions));
        }
    }
    assert!(failed.is_empty(), "{} of {tried}:\n{}", failed.len(), failed.join("\n"));
    assert!(tried > 1000, "only {tried} worlds");
}

#[test]
fn inv_33_repeated_decisions_are_empty_after_needs_and_two_rounds() {
    let mut failed = Vec::new();
    for seed in 0..10_000 {
        let mut sim = Simulation::new(seed, Latency::all(Dwell::fixed(0)), world(seed));
        let most = sim.demand.needs().len() + 2;
        let rounds =
            (0..3 * most + 20).take_while(|_| !sim.decide().output.actions.is_empty()).count();
        if rounds > most {
            failed.push(format!("seed {seed}: {rounds} rounds, {most} allowed"));
        }
    }
    assert!(failed.is_empty(), "{}:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn inv_36_configuring_to_configured_changes_no_claimed_set() {
    let mut compared = 0;
    for seed in 0..20_000 {
        let input = world(seed);
        let mut later = input.clone();
        let mut random = SplitMix64::new(!seed);
        let mut changed = false;
        for tracked in &mut later.snapshot {
            if tracked.machine.state == MachineState::Configuring && random.chance(60) {
                tracked.machine.state = MachineState::Configured;
                changed = true;
            }
        }
        if changed {
            // A pending action that waits for the new state would change more than
            // the state.
            later.pending.retain(|action| {
                input.snapshot.iter().any(|tracked| {
                    tracked.machine.id == action.machine
                        && tracked.machine.state == action.kind.start()
                })
            });
            let (before, after) = (decide(&input), decide(&later));
            // What a need outgrew is free for others once its machines are there.
            if before.outgrown == after.outgrown {
                assert_eq!(before.claims, after.claims, "seed {seed}");
                compared += 1;
            }
        }
    }
    assert!(compared > 5000, "only {compared} worlds were compared");
}
