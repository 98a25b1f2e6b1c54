//! The simulator itself: what it shows is what the chapters say a shard sees.

use bigfleet_model::{Group, MachineState, Stamp};
use bigfleet_oracle::worlds::world;
use bigfleet_sim::{AfterCreate, Dwell, Latency, Simulation};

use crate::{
    churn::{Churn, comparable},
    support::{Shape, bound, latency, machine, need, start},
};

/// The states in which successive cycles see one machine.
fn seen(sim: &mut Simulation, id: &str, cycles: u32) -> Vec<MachineState> {
    let mut states = Vec::new();
    for _ in 0..cycles {
        let input = sim.step().input;
        let tracked = input.snapshot.iter().find(|tracked| tracked.machine.id.as_str() == id);
        states.push(tracked.expect("a known machine").machine.state);
    }
    states
}

fn one_purchase(after_create: AfterCreate) -> Simulation {
    let fleet = vec![machine("m", MachineState::Speculative, &Shape::default())];
    let latency = Latency {
        queue: Dwell::fixed(1),
        create: Dwell::fixed(2),
        configure: Dwell::fixed(3),
        drain: Dwell::fixed(0),
        delete: Dwell::fixed(0),
        after_create,
    };
    Simulation::new(1, latency, start(fleet, vec![need("a", "", 1, 1)]))
}

#[test]
fn every_dwell_is_seen_for_as_many_cycles() {
    use MachineState::{Configured, Configuring, Creating, Idle, Speculative};
    let followed = seen(&mut one_purchase(AfterCreate::Configure), "m", 8);
    let configuring = [Configuring; 3];
    let expected = [&[Speculative; 2][..], &[Creating; 2], &configuring, &[Configured]].concat();
    assert_eq!(followed, expected);
    // One cycle decides, one waits for the queue.
    let rested = seen(&mut one_purchase(AfterCreate::Rest), "m", 10);
    let expected =
        [&[Speculative; 2][..], &[Creating; 2], &[Idle; 2], &configuring, &[Configured]].concat();
    assert_eq!(rested, expected);
}

#[test]
fn both_halves_of_a_purchase_are_one_acquisition() {
    for after_create in [AfterCreate::Configure, AfterCreate::Rest] {
        let mut sim = one_purchase(after_create);
        sim.run(20);
        assert_eq!(sim.counters().acquisitions(), 1, "{after_create:?}");
    }
}

#[test]
fn equal_seeds_give_equal_runs() {
    for seed in 0..20 {
        let mut runs = [(); 2].map(|()| Simulation::new(seed, latency(seed), world(seed)));
        for _ in 0..40 {
            let [first, second] = &mut runs;
            assert_eq!(first.step().output, second.step().output, "seed {seed}");
        }
    }
}

/// The engine that is told what changed and the one that starts from nothing go the
/// same way, through losses, roll-ups and a restart.
#[test]
fn remembering_and_forgetting_give_the_same_run() {
    for seed in 0..60 {
        let sim = || Simulation::new(seed, latency(seed), world(seed));
        let mut runs = [sim(), sim().forgetful()];
        let mut churns = [(); 2].map(|()| Churn::new(seed, &world(seed)));
        for cycle in 0..60 {
            let [first, second] = &mut runs;
            let (one, other) = (first.step(), second.step());
            assert_eq!(one.input.snapshot, other.input.snapshot, "seed {seed} cycle {cycle}");
            assert_eq!(one.input.pending, other.input.pending, "seed {seed} cycle {cycle}");
            assert_eq!(
                comparable(one.output),
                comparable(other.output),
                "seed {seed} cycle {cycle}"
            );
            for (sim, churn) in runs.iter_mut().zip(&mut churns) {
                churn.disturb(sim);
                if cycle == 40 && seed.is_multiple_of(3) {
                    sim.restart();
                }
            }
        }
    }
}

/// A drained machine is idle from now on and belongs to nobody.
#[test]
fn a_reclaimed_machine_forgets_its_binding() {
    let wanted = need("a", "", 1, 1);
    let fleet = vec![bound("m", &wanted, &Shape::default())];
    let mut sim = Simulation::new(1, Latency::all(Dwell::fixed(0)), start(fleet, vec![wanted]));
    sim.roll_up(&"a".into(), vec![]);
    sim.step();
    let tracked = sim.provider.machine(&"m".into()).expect("a known machine");
    assert_eq!(tracked.machine.state, MachineState::Idle);
    assert_eq!(tracked.machine.cluster, None);
    assert_eq!(tracked.machine.stamp, None);
    assert_eq!(tracked.idle_since, Some(sim.now()));
}

/// Engine chapter §1.7: a claimed machine takes its claimant's stamp, an unclaimed
/// one of a ready cluster loses fingerprint and group and keeps the rest.
#[test]
fn stamps_follow_the_claims() {
    let gone = need("a", "gone", 1, 3);
    let wanted = need("a", "", 1, 1);
    let dear = Shape { price: 2.0, ..Shape::default() };
    let fleet = vec![bound("cheap", &gone, &Shape::default()), bound("dear", &gone, &dear)];
    let mut sim =
        Simulation::new(1, Latency::all(Dwell::fixed(5)), start(fleet, vec![wanted.clone()]));
    sim.decide();
    let stamp = |id: &str| {
        let tracked = sim.provider.machine(&id.into()).expect("a known machine");
        tracked.machine.stamp.as_deref().cloned().expect("a stamp")
    };
    assert_eq!(stamp("cheap"), Stamp::of(&wanted));
    let forgotten = Stamp { fingerprint: "".into(), group: Group::none(), ..Stamp::of(&gone) };
    assert_eq!(stamp("dear"), forgotten);
}

/// The same for machines on their way: a need that appears with higher precedence
/// takes over what is pending in its cluster, and the action says so.
#[test]
fn pending_actions_follow_the_claims() {
    let first = need("a", "", 1, 1);
    let fleet = vec![machine("m", MachineState::Idle, &Shape::default())];
    let mut sim =
        Simulation::new(1, Latency::all(Dwell::fixed(9)), start(fleet, vec![first.clone()]));
    sim.decide();
    let better = need("a", "", 1, 6);
    sim.roll_up(&"a".into(), vec![first, better.clone()]);
    sim.decide();
    let pending = sim.provider.pending();
    let [action] = pending.as_slice() else { panic!("one action: {pending:?}") };
    let bigfleet_engine::ActionKind::Bootstrap(acquisition) = &action.kind else {
        panic!("a Bootstrap: {action:?}")
    };
    assert_eq!(*acquisition.stamp, Stamp::of(&better));
}

/// A machine that fails before its action becomes visible takes the action along.
#[test]
fn a_lost_machine_takes_its_action_along() {
    let mut sim = one_purchase(AfterCreate::Configure);
    sim.decide();
    assert_eq!(sim.provider.pending().len(), 1);
    sim.provider.fail(&"m".into());
    assert!(sim.provider.pending().is_empty());
    sim.run(10);
    assert_eq!(sim.provider.count(MachineState::Failed), 1);
}
