//! One look at the fleet, as a terminal shows it.

use std::sync::Arc;

use bigfleet_wire::v1alpha1::{CapacityType, Machine, MachineState};

use super::keys::Chosen;
use crate::{
    cluster::workload::{Class, Workload},
    scenario::{
        self,
        record::{Run, Verdict},
        view::View,
    },
    show::Show,
    state::Told,
    supply::GPU,
};

/// Decisions that are shown.
const FEED: usize = 8;

/// Everything that a screen shows.
#[derive(Clone, Debug)]
pub(super) struct Picture {
    pub(super) url: String,
    /// Of `bigfleetctl`; the kubeconfig is beside it.
    pub(super) config: String,
    pub(super) chosen: Chosen,
    pub(super) dollars: f64,
    pub(super) problem: Option<String>,
    pub(super) tiers: Vec<Bar>,
    pub(super) clusters: Vec<Card>,
    /// Title of every scenario and how its last run ended.
    pub(super) scenarios: Vec<(&'static str, Option<Verdict>)>,
    /// Title of the scenario that is being played.
    pub(super) playing: Option<&'static str>,
    /// The one that is on, or the last one; none before the first.
    pub(super) run: Option<Run>,
    /// In plain words, newest first.
    pub(super) decisions: Vec<String>,
    pub(super) processes: Vec<Process>,
}

/// Machines of a tier: in use, idle, on their way, and how many there could be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bar {
    pub(super) name: &'static str,
    pub(super) working: usize,
    pub(super) idle: usize,
    pub(super) moving: usize,
    pub(super) total: usize,
}

/// A cluster: pods that run and pods that are wanted, by class.
#[derive(Clone, Debug)]
pub(super) struct Card {
    pub(super) name: String,
    pub(super) pods: [(u32, u32); 3],
    pub(super) nodes: usize,
    pub(super) unmet: usize,
}

/// A process of the fleet.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) name: String,
    pub(super) running: bool,
    pub(super) leads: bool,
}

const TIERS: [(&str, CapacityType, bool); 5] = [
    ("owned", CapacityType::BareMetal, false),
    ("reserved", CapacityType::Reserved, false),
    ("spot", CapacityType::Spot, false),
    ("on demand", CapacityType::OnDemand, false),
    ("GPU", CapacityType::BareMetal, true),
];

impl Picture {
    pub(super) fn of(show: &Arc<Show>, url: &str, chosen: Chosen) -> Self {
        let (fleet, view) = (&show.fleet, View::of(&show.fleet));
        let unmet = view.unmet();
        let clusters = fleet.clusters.iter().enumerate().map(|(at, cluster)| Card {
            name: cluster.name.clone(),
            pods: Class::ALL.map(|class| {
                let pods = view.pods(at, Workload::Plain(class));
                (pods.running, pods.wanted)
            }),
            nodes: cluster.nodes(),
            unmet: unmet.iter().filter(|need| need.cluster_id == cluster.name).count(),
        });
        let replicas = fleet.coordinators.iter().enumerate().map(|(number, node)| Process {
            name: node.part.id.clone(),
            running: node.part.pid().is_some(),
            leads: fleet.eyes.replica(number).is_some_and(|it| it.leader_id == node.part.id),
        });
        let shards = fleet.shards.iter().map(|node| Process {
            name: node.part.id.clone(),
            running: node.part.pid().is_some(),
            leads: false,
        });
        let row = |it: &scenario::Scenario| (it.title, show.results(it.name).last.map(|it| it.0));
        let (run, decisions) = (show.run(), fleet.eyes.decisions());
        let playing = scenario::named(run.name).filter(|_| run.state == Verdict::Running);
        Self {
            url: url.to_owned(),
            config: show.fleet.config.display().to_string(),
            chosen,
            dollars: view.dollars(),
            problem: show.problem(),
            tiers: TIERS.map(|tier| bar(view.all(), tier)).to_vec(),
            clusters: clusters.collect(),
            scenarios: scenario::all().iter().map(row).collect(),
            playing: playing.map(|scenario| scenario.title),
            run: (show.is_playing() || !run.steps.is_empty()).then_some(run),
            decisions: decisions.iter().rev().take(FEED).map(|it| Told::of(it).text).collect(),
            processes: replicas.chain(shards).collect(),
        }
    }
}

fn bar<'a>(
    machines: impl Iterator<Item = &'a Machine>,
    (name, capacity, gpu): (&'static str, CapacityType, bool),
) -> Bar {
    let mut bar = Bar { name, ..Bar::default() };
    let mine = |machine: &&Machine| {
        machine.capacity_type() == capacity && (machine.instance_type == GPU) == gpu
    };
    for machine in machines.filter(mine) {
        bar.total += 1;
        match machine.state() {
            MachineState::Speculative => {}
            MachineState::Configured => bar.working += 1,
            MachineState::Idle => bar.idle += 1,
            _ => bar.moving += 1,
        }
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_counts_its_own_tier_by_what_machines_do() {
        let machine = |capacity: CapacityType, state: MachineState, kind: &str| Machine {
            capacity_type: capacity.into(),
            state: state.into(),
            instance_type: kind.to_owned(),
            ..Machine::default()
        };
        let metal = CapacityType::BareMetal;
        let machines = [
            machine(metal, MachineState::Configured, "x"),
            machine(metal, MachineState::Idle, "x"),
            machine(metal, MachineState::Draining, "x"),
            machine(metal, MachineState::Speculative, "x"),
            machine(metal, MachineState::Configured, GPU),
            machine(CapacityType::Spot, MachineState::Configured, "x"),
        ];
        let owned = bar(machines.iter(), TIERS[0]);
        assert_eq!(owned, Bar { name: "owned", working: 1, idle: 1, moving: 1, total: 4 });
        assert_eq!(bar(machines.iter(), TIERS[4]).total, 1);
    }
}
