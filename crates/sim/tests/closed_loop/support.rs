//! Small worlds, through the same gates as real ones.

use std::{collections::BTreeMap, sync::Arc};

use bigfleet_engine::{ActionKind, CycleInput, Time, Tracked};
use bigfleet_model::{
    CapacityType, ClusterId, MachineId, MachineState, Need, Operator, PenaltyBucket, Stamp,
    gate::{demand, inventory},
};
use bigfleet_oracle::worlds::{SplitMix64, world};
use bigfleet_sim::{AfterCreate, Dwell, Latency};
use bigfleet_wire::v1alpha1 as wire;

pub(crate) const RACK: &str = "rack";

/// A machine of four cores in rack r0, on demand at a dollar.
#[derive(Clone)]
pub(crate) struct Shape {
    pub(crate) rack: &'static str,
    pub(crate) kind: CapacityType,
    pub(crate) price: f64,
    pub(crate) interruption: f64,
}

impl Default for Shape {
    fn default() -> Self {
        Self { rack: "r0", kind: CapacityType::OnDemand, price: 1.0, interruption: 0.0 }
    }
}

pub(crate) fn machine(id: &str, state: MachineState, shape: &Shape) -> Tracked {
    let cores = BTreeMap::from([("cpu".to_owned(), "4".to_owned())]);
    let host = (state != MachineState::Speculative)
        .then(|| wire::HostRef { provider: "p".to_owned(), r#ref: id.to_owned() });
    let message = wire::Machine {
        id: id.to_owned(),
        state: state.to_wire(),
        host,
        capacity_type: shape.kind.to_wire(),
        price_per_hour: shape.price,
        interruption_probability: shape.interruption,
        resources: Some(wire::Resources { resources: cores }),
        labels: [(RACK.to_owned(), shape.rack.to_owned())].into_iter().collect(),
        ..wire::Machine::default()
    };
    let machine = inventory::machine(message).expect("a legal machine").machine;
    let idle_since = (state == MachineState::Idle).then_some(START);
    Tracked { machine, idle_since, drain: None }
}

/// Bound to a need.
pub(crate) fn bound(id: &str, need: &Need, shape: &Shape) -> Tracked {
    let mut tracked = machine(id, MachineState::Idle, shape);
    tracked.idle_since = None;
    tracked.machine.state = MachineState::Configured;
    tracked.machine.cluster = Some(need.cluster.clone());
    tracked.machine.stamp = Some(Arc::new(Stamp::of(need)));
    tracked
}

/// Several of one kind.
pub(crate) fn machines(
    name: &str,
    number: u32,
    state: MachineState,
    shape: &Shape,
) -> Vec<Tracked> {
    (0..number).map(|index| machine(&format!("{name}-{index:02}"), state, shape)).collect()
}

/// Wants so many machines of four cores; a group makes it a gang of one rack.
pub(crate) fn need(cluster: &str, group: &str, number: u32, penalty: i32) -> Need {
    need_at(1000, cluster, group, number, penalty)
}

/// The same at another priority.
pub(crate) fn need_at(
    priority: i32,
    cluster: &str,
    group: &str,
    number: u32,
    penalty: i32,
) -> Need {
    let mut requirements = Vec::new();
    if !group.is_empty() {
        requirements.push(wire::NodeSelectorRequirement {
            key: RACK.to_owned(),
            operator: Operator::Same.to_wire(),
            values: Vec::new(),
        });
    }
    let cores = |cores: u32| [("cpu".to_owned(), cores.to_string())].into_iter().collect();
    let message = wire::CapacityNeed {
        requirements,
        aggregate_resources: cores(4 * number),
        min_unit: cores(4),
        priority,
        interruption_penalty_bucket: penalty,
        group: group.to_owned(),
        ..wire::CapacityNeed::default()
    };
    demand::need(&cluster.into(), START.0, message).expect("a legal need")
}

pub(crate) const START: Time = Time(1_000_000_000_000);

/// All clusters of the needs have reported.
pub(crate) fn start(snapshot: Vec<Tracked>, demand: Vec<Need>) -> CycleInput {
    let ready = demand.iter().map(|need| need.cluster.clone()).collect();
    CycleInput { snapshot, demand, ready, now: START, ..CycleInput::default() }
}

/// Latencies of a seed: between instant and ten cycles each, either way of
/// finishing a purchase.
pub(crate) fn latency(seed: u64) -> Latency {
    let mut random = SplitMix64::new(seed ^ 0x6c61_7465_6e63_7921);
    let mut dwell = || {
        let least = random.below(4) as u32;
        Dwell::between(least, least + random.below(7) as u32)
    };
    Latency {
        queue: dwell(),
        create: dwell(),
        configure: dwell(),
        drain: dwell(),
        delete: dwell(),
        after_create: if seed.is_multiple_of(2) {
            AfterCreate::Configure
        } else {
            AfterCreate::Rest
        },
    }
}

/// The same fixed latency for everything the engine has to wait for.
pub(crate) fn fixed(create: u32, configure: u32, drain: u32) -> Latency {
    Latency {
        queue: Dwell::fixed(0),
        create: Dwell::fixed(create),
        configure: Dwell::fixed(configure),
        drain: Dwell::fixed(drain),
        delete: Dwell::fixed(1),
        after_create: AfterCreate::Configure,
    }
}

/// A random world in which nothing has happened yet: the machines of the seed,
/// none of them bound, and all clusters have reported.
pub(crate) fn untouched(seed: u64) -> CycleInput {
    let mut input = world(seed);
    input.pending.clear();
    input.gang_ages.clear();
    input.ready = input.demand.iter().map(|need| need.cluster.clone()).collect();
    for tracked in &mut input.snapshot {
        let machine = &mut tracked.machine;
        if machine.state != MachineState::Failed {
            let idle = machine.state == MachineState::Idle;
            machine.state = if idle { MachineState::Idle } else { MachineState::Speculative };
            machine.host = machine.host.take().filter(|_| idle);
            machine.cluster = None;
            machine.stamp = None;
            tracked.drain = None;
        }
    }
    input
}

pub(crate) fn ids<'a>(machines: impl Iterator<Item = &'a Tracked>) -> Vec<MachineId> {
    machines.map(|tracked| tracked.machine.id.clone()).collect()
}

/// Machines that serve a cluster now.
pub(crate) fn configured(sim: &bigfleet_sim::Simulation, cluster: &str) -> Vec<MachineId> {
    let cluster: ClusterId = cluster.into();
    ids(sim.provider.machines().filter(|tracked| {
        tracked.machine.state == MachineState::Configured
            && tracked.machine.cluster.as_ref() == Some(&cluster)
    }))
}

/// The world of a seed in which every stamp that names a profile also carries its
/// priority and penalties, as all stamps written by a shard do.
pub(crate) fn consistent(seed: u64) -> CycleInput {
    let mut input = world(seed);
    for tracked in &mut input.snapshot {
        if let Some(stamp) = &mut tracked.machine.stamp {
            agree(Arc::make_mut(stamp));
        }
    }
    for action in &mut input.pending {
        if let ActionKind::Bootstrap(acquisition) | ActionKind::Provision(acquisition) =
            &mut action.kind
        {
            agree(Arc::make_mut(&mut acquisition.stamp));
        }
    }
    input
}

fn agree(stamp: &mut Stamp) {
    let text = stamp.fingerprint.to_string();
    let field = |name: &str| {
        let value = text.split('|').find_map(|part| part.strip_prefix(name));
        value.and_then(|value| value.parse::<i32>().ok())
    };
    let dollars = |name| field(name).and_then(PenaltyBucket::from_wire).map(PenaltyBucket::dollars);
    if let (Some(priority), Some(interruption), Some(reclamation)) =
        (field("p="), dollars("ipb="), dollars("rpb="))
    {
        stamp.priority = Some(priority);
        stamp.interruption = interruption;
        stamp.reclamation = reclamation;
    }
}
