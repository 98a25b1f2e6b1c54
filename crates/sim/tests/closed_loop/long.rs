//! 32–40 over ten thousand cycles a seed: disturbed, left alone, disturbed again.
//! `BIGFLEET_SEED` replays one seed, `BIGFLEET_LONG_SEEDS` asks for more of them.

use std::{collections::BTreeMap, time::Duration};

use bigfleet_engine::{ActionKind, CycleInput, NeedKey};
use bigfleet_model::{MachineId, MachineState};
use bigfleet_oracle::{
    invariants,
    worlds::{SplitMix64, world},
};
use bigfleet_sim::{Cycle, Simulation};

use crate::{
    churn::Churn,
    gangs::{Domain, served},
    support::{Shape, configured, latency, machine, machines, need, start},
};

const CYCLES: u32 = 10_000;
/// One disturbance, and the time to get over it.
const EPOCH: u32 = 500;
/// The end of an epoch, when nothing may happen any more.
const CALM: u32 = 100;

fn seeds(most: u64) -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("BIGFLEET_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("BIGFLEET_LONG_SEEDS").unwrap_or(most),
    }
}

/// Whether two pictures differ only in machines that went from Configuring to
/// Configured and in time.
fn only_matured(before: &CycleInput, now: &CycleInput) -> bool {
    let mut expected = before.snapshot.clone();
    for (was, is) in expected.iter_mut().zip(&now.snapshot) {
        if (was.machine.state, is.machine.state)
            == (MachineState::Configuring, MachineState::Configured)
        {
            was.machine.state = MachineState::Configured;
        }
    }
    before.snapshot != now.snapshot
        && expected == now.snapshot
        && before.pending == now.pending
        && before.demand == now.demand
        && before.ready == now.ready
        && before.gang_ages == now.gang_ages
}

/// What is watched in every cycle.
#[derive(Default)]
struct Watch {
    last: Option<Cycle>,
    gangs: BTreeMap<NeedKey, (Domain, Vec<MachineId>)>,
    matured: u32,
}

impl Watch {
    fn see(&mut self, decided: Cycle, context: &str) {
        if let Some(last) = &self.last
            && only_matured(&last.input, &decided.input)
            && last.output.outgrown == decided.output.outgrown
        {
            self.matured += 1;
            assert_eq!(last.output.claims, decided.output.claims, "36, {context}");
        }
        let now = served(&decided.output);
        for (key, (domain, machines)) in &self.gangs {
            let Some((chosen, _)) = now.get(key) else { continue };
            let known = |machine: &MachineId| {
                let tracked = decided.input.snapshot.iter().find(|one| one.machine.id == *machine);
                tracked.is_some_and(|tracked| tracked.machine.state != MachineState::Failed)
            };
            let robbed = machines.iter().any(|machine| {
                let claimant = decided.output.claims.get(machine);
                let by = claimant.map(|need| &decided.output.verdicts[need.0 as usize]);
                !known(machine)
                    || by.is_some_and(|by| {
                        by.group != key.group || by.fingerprint != key.fingerprint
                    })
            });
            assert!(robbed || chosen == domain, "38, {context}: {key:?}");
        }
        self.gangs = now;
        self.last = Some(decided);
    }
}

/// 32, 33, 34, 36, 37, 38, 39, 40 on small random worlds.
#[test]
fn inv_32_to_40_hold_over_ten_thousand_cycles() {
    let mut matured = 0;
    for seed in seeds(40) {
        // Small worlds, or a test build takes minutes.
        let world = (0..).map(|tries| world(seed * 1000 + tries));
        let fits = |input: &CycleInput| (10..40).contains(&input.snapshot.len());
        let start = world.into_iter().find(fits).expect("a small world");
        let mut churn = Churn::new(seed, &start);
        let mut sim = Simulation::new(seed, latency(seed), start);
        sim.step = Duration::from_secs(30);
        let mut watch = Watch::default();
        for cycle in 0..CYCLES {
            let (at, context) = (cycle % EPOCH, format!("seed {seed} cycle {cycle}"));
            if at < 80 {
                churn.disturb(&mut sim);
                churn.replace_losses(&mut sim);
                watch.gangs.clear();
            }
            if at == EPOCH - CALM {
                let again = sim.decide();
                assert!(again.output.actions.is_empty(), "33, {context}");
            }
            let decided = sim.step();
            if cycle % 50 == 0 {
                let broken = invariants::check(&decided.input, &decided.output);
                assert!(broken.is_empty(), "{context}: {broken:#?}");
            }
            let loud = at >= EPOCH - CALM && !decided.output.actions.is_empty();
            assert!(!loud, "32, 34, 39, {context}: {:?}", decided.output.actions);
            watch.see(decided, &context);
        }
        matured += watch.matured;
        for (machine, times) in &sim.counters().creates {
            for pair in times.windows(2) {
                let hold = sim.release.spot.min(sim.release.on_demand);
                assert!(pair[1].since(pair[0]) >= hold, "40, seed {seed}: {machine}");
            }
        }
    }
    assert!(matured > 10, "only {matured} machines matured alone");
}

/// 35 and 40: for ten thousand cycles one machine after the other is lost, and each
/// costs one acquisition; a need that flaps in between buys nothing twice.
#[test]
fn inv_35_every_loss_of_ten_thousand_cycles_costs_one_acquisition() {
    for seed in seeds(40) {
        let mut random = SplitMix64::new(seed);
        let group = *random.one(&["", "gang"]);
        let spare = machines("m", 12, MachineState::Speculative, &Shape::default());
        let demand = vec![need("a", group, 4, 1)];
        let mut sim = Simulation::new(seed, latency(seed), start(spare, demand));
        let mut losses = 0;
        for cycle in 0..CYCLES {
            // Long enough for any of the latencies.
            if cycle % 80 == 79 {
                let serving = configured(&sim, "a");
                assert_eq!(serving.len(), 4, "seed {seed} cycle {cycle}");
                let lost = random.one(&serving).clone();
                sim.provider.vanish(&lost);
                sim.provider.add(machine(
                    lost.as_str(),
                    MachineState::Speculative,
                    &Shape::default(),
                ));
                losses += 1;
            }
            for action in sim.step().output.actions {
                let takes =
                    !matches!(action.kind, ActionKind::Bootstrap(_) | ActionKind::Provision(_));
                assert!(!takes, "seed {seed} cycle {cycle}: {action:?}");
            }
        }
        assert_eq!(sim.counters().acquisitions(), 4 + losses, "seed {seed}");
    }
}
