//! Few needs that want several dimensions, among machines of many shapes: what a
//! need keeps, gives back and trims is rarely the first that comes to mind (§6.1,
//! §6.4).

#![allow(clippy::expect_used, reason = "helpers of tests fail by panicking")]

mod common;

use std::{collections::BTreeMap, sync::Arc};

use bigfleet_engine::{CycleInput, Engine, Time, Tracked, decide, input::merge};
use bigfleet_model::{
    CapacityType, ClusterId, MachineState, Need, Operator, Stamp, WhenUnsatisfiable,
    gate::{demand, inventory},
};
use bigfleet_oracle::worlds::SplitMix64;
use bigfleet_wire::v1alpha1 as wire;
use common::{assert_same, comparable, seeds};

/// Worlds per run; `BIGFLEET_WORLDS` asks for more.
const WORLDS: u64 = 5_000;
const CYCLES: u32 = 4;
const MACHINES: u64 = 14;
const DIMENSIONS: [&str; 3] = ["cpu", "memory", "example.com/gpu"];

/// What a world is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flavour {
    /// Dimensions that pull apart, and machines to acquire.
    Mixed,
    /// The same with next to nothing to acquire: needs must evict.
    Tight,
    /// One dimension and hardly anything but machines that serve already: whose
    /// changes, how a need goes on with the others.
    Alike,
}

/// Some of each dimension, or none.
fn amounts(random: &mut SplitMix64, flavour: Flavour, of: &[u64]) -> BTreeMap<String, String> {
    let dimensions = if flavour == Flavour::Alike { &DIMENSIONS[..1] } else { &DIMENSIONS };
    let amount = |name: &&str| ((*name).to_owned(), random.one(of).to_string());
    dimensions.iter().map(amount).filter(|(_, amount)| amount != "0").collect()
}

/// Any size of it may be that of another.
fn need(random: &mut SplitMix64, flavour: Flavour, cluster: &ClusterId) -> Option<Need> {
    let mut message = wire::CapacityNeed {
        priority: *random.one(&[0, 0, 1000]),
        interruption_penalty_bucket: 1,
        reclamation_penalty_bucket: *random.one(&[1, 6]),
        aggregate_resources: amounts(random, flavour, &[0, 2, 3, 5, 8, 13]),
        group: random.one(&["g0", "g1", "g2", "g3"]).to_string(),
        ..wire::CapacityNeed::default()
    };
    match random.below(if flavour == Flavour::Mixed { 5 } else { 9 }) {
        0 | 1 => message.spread.push(wire::TopologySpread {
            topology_key: "rack".to_owned(),
            max_skew: 1,
            when_unsatisfiable: WhenUnsatisfiable::DoNotSchedule.to_wire(),
        }),
        2 => {
            // Small ones, so that several fold and a machine holds more than one.
            let small = ("cpu".to_owned(), random.one(&["1", "1", "2"]).to_string());
            message.aggregate_resources = BTreeMap::from([small]);
            message.requirements.push(wire::NodeSelectorRequirement {
                key: "rack".to_owned(),
                operator: Operator::Same.to_wire(),
                values: Vec::new(),
            });
        }
        _ => {}
    }
    demand::need(cluster, 1, message).ok()
}

fn machine(random: &mut SplitMix64, flavour: Flavour, number: u64, needs: &[Need]) -> Tracked {
    let states = [
        MachineState::Draining,
        MachineState::Configured,
        MachineState::Configured,
        MachineState::Configured,
        MachineState::Configuring,
        MachineState::Creating,
        MachineState::Idle,
        MachineState::Idle,
        MachineState::Speculative,
    ];
    let state = *random.one(match flavour {
        Flavour::Mixed => &states[1..],
        Flavour::Tight => &states[..6],
        Flavour::Alike => &states[1..6],
    });
    let mut resources = amounts(random, flavour, &[0, 1, 1, 2, 4]);
    resources.insert("pods".to_owned(), "10".to_owned());
    let mut message = wire::Machine {
        id: format!("m{number:02}"),
        state: state.to_wire(),
        capacity_type: CapacityType::OnDemand.to_wire(),
        price_per_hour: *random.one(&[0.0, 0.1, 0.1, 1.0]),
        resources: Some(wire::Resources { resources }),
        ..wire::Machine::default()
    };
    message.labels.insert("rack".to_owned(), random.one(&["r0", "r1", "r2"]).to_string());
    if !matches!(state, MachineState::Speculative | MachineState::Creating) {
        let reference = message.id.clone();
        message.host = Some(wire::HostRef { provider: "p".to_owned(), r#ref: reference });
    }
    let bound = matches!(
        state,
        MachineState::Configured | MachineState::Configuring | MachineState::Draining
    );
    if bound {
        message.cluster = "a".to_owned();
    }
    let mut machine = inventory::machine(message).expect("the gate lets it in").machine;
    if (bound || state == MachineState::Creating) && random.chance(85) && !needs.is_empty() {
        machine.stamp = Some(Arc::new(Stamp::of(random.one(needs))));
    }
    Tracked { machine, idle_since: None, drain: None }
}

const fn flavour(seed: u64) -> Flavour {
    match seed % 3 {
        0 => Flavour::Mixed,
        1 => Flavour::Tight,
        _ => Flavour::Alike,
    }
}

fn world(seed: u64) -> CycleInput {
    let (mut random, cluster) = (SplitMix64::new(seed), ClusterId::from("a"));
    let flavour = flavour(seed);
    let number = 1 + random.below(5);
    let sent = (0..number).filter_map(|_| need(&mut random, flavour, &cluster));
    let needs = merge(sent.collect());
    let machines = 4 + random.below(MACHINES - 4);
    let mut input = CycleInput { now: Time(0), ..CycleInput::default() };
    input.snapshot = (0..machines).map(|at| machine(&mut random, flavour, at, &needs)).collect();
    input.demand = needs;
    input.ready = [cluster].into_iter().collect();
    input
}

#[test]
fn needs_among_machines_of_many_shapes_fare_as_the_oracle_says() {
    for seed in seeds(WORLDS, 4) {
        let (world, mut random) = (world(seed), SplitMix64::new(seed));
        let mut engine = Engine::load(&world);
        for cycle in 0..CYCLES {
            let input = CycleInput { now: world.now, ..engine.input() };
            engine.cycle(world.now);
            let (output, what) = (engine.output(), format!("seed {seed}, cycle {cycle}"));
            assert_same(&comparable(output.clone()), &comparable(decide(&input)), &what);
            let oracle = bigfleet_oracle::decide(&input);
            assert_same(&comparable(output.clone()), &comparable(oracle), &what);
            assert_eq!(engine.drifts(), 0, "{what}: claims drifted");
            if random.chance(70) {
                engine.restamp();
            }
            for action in output.actions {
                if random.chance(50) {
                    engine.pend(action);
                }
            }
            // Machines come back with other shapes, and needs with other sizes.
            for _ in 0..random.below(4) {
                let number = random.below(MACHINES);
                engine.upsert(&machine(&mut random, flavour(seed), number, &world.demand));
            }
            let mut needs = world.demand.clone();
            for need in &mut needs {
                let other = self::need(&mut random, flavour(seed), &need.cluster);
                let other = other.map(|other| other.aggregate);
                if let Some(other) = other.filter(|_| random.chance(30)) {
                    need.aggregate = other;
                }
            }
            if let Some(need) = needs.first() {
                engine.replace(&need.cluster.clone(), &needs);
            }
        }
    }
}
