//! The fleet as scenarios judge it.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_wire::v1alpha1::{CapacityType, Machine, MachineState, NeedView};

use crate::{
    cluster::{Pods, workload::Workload},
    eyes::{Decision, ShardSeen},
    fleet::{Fleet, at_rest, is_general},
};

/// One look at everything.
pub(crate) struct View {
    pub(crate) shards: Vec<ShardSeen>,
    /// By cluster and workload.
    pub(crate) pods: Vec<BTreeMap<Workload, Pods>>,
    names: Vec<String>,
}

impl View {
    pub(crate) fn of(fleet: &Fleet) -> Self {
        Self {
            shards: (0..fleet.shards.len()).map(|number| fleet.eyes.shard(number)).collect(),
            pods: fleet.clusters.iter().map(|cluster| cluster.pods()).collect(),
            names: fleet.clusters.iter().map(|cluster| cluster.name.clone()).collect(),
        }
    }

    /// Machines of a shard.
    pub(crate) fn machines(&self, shard: usize) -> impl Iterator<Item = &Machine> {
        self.shards[shard].machines.iter().filter_map(|view| view.machine.as_ref())
    }

    /// Machines of all shards.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Machine> {
        (0..self.shards.len()).flat_map(|shard| self.machines(shard))
    }

    /// Ids of machines that serve a cluster.
    pub(crate) fn serving(&self, cluster: usize) -> BTreeSet<String> {
        let mine = |machine: &&Machine| {
            machine.cluster == self.names[cluster] && machine.state() == MachineState::Configured
        };
        self.all().filter(mine).map(|machine| machine.id.clone()).collect()
    }

    /// Dollars an hour: what is paid for every machine that exists.
    pub(crate) fn dollars(&self) -> f64 {
        let exists = |machine: &&Machine| machine.state() != MachineState::Speculative;
        self.all().filter(exists).map(|machine| machine.price_per_hour).sum()
    }

    /// Rented machines of a shard that exist.
    pub(crate) fn rented(&self, shard: usize) -> Vec<&Machine> {
        let rented =
            |machine: &&Machine| is_rented(machine) && machine.state() != MachineState::Speculative;
        self.machines(shard).filter(rented).collect()
    }

    /// Machines of a shard that plain pods can run on, by state.
    pub(crate) fn general(&self, shard: usize, state: MachineState) -> Vec<&Machine> {
        let found = |machine: &&Machine| is_general(machine) && machine.state() == state;
        self.machines(shard).filter(found).collect()
    }

    /// Needs that are not satisfied, of all shards.
    pub(crate) fn unmet(&self) -> Vec<&NeedView> {
        let needs = self.shards.iter().flat_map(|shard| &shard.needs);
        needs.filter(|need| !need.satisfied).collect()
    }

    /// Pods of a workload.
    pub(crate) fn pods(&self, cluster: usize, workload: Workload) -> Pods {
        self.pods[cluster].get(&workload).copied().unwrap_or_default()
    }

    /// Whether the pods of a cluster run, and no others.
    pub(crate) fn all_run(&self, cluster: usize) -> Result<(), String> {
        match self.pods[cluster].iter().find(|(_, pods)| !pods.settled()) {
            None => Ok(()),
            Some((workload, pods)) => {
                let (name, workload) = (&self.names[cluster], workload.name());
                Err(format!("{name}: {} of {} {workload} run", pods.running, pods.wanted))
            }
        }
    }

    /// Whether nothing is under way, and nothing is short.
    pub(crate) fn resting(&self) -> Result<(), String> {
        (0..self.names.len()).try_for_each(|cluster| self.all_run(cluster))?;
        // A pod fills a machine; a machine more is one that nobody has asked back yet.
        for (cluster, name) in self.names.iter().enumerate() {
            let wanted: u32 = self.pods[cluster].values().map(|pods| pods.wanted).sum();
            let serving = self.serving(cluster).len();
            if serving != wanted as usize {
                return Err(format!("{name}: {serving} machines serve {wanted} pods"));
            }
        }
        if let Some(machine) = self.all().find(|machine| !at_rest(machine)) {
            return Err(format!("{} is {}", machine.id, state_name(machine.state())));
        }
        if let Some(busy) =
            self.shards.iter().flat_map(|s| &s.machines).find(|view| !view.in_flight.is_empty())
        {
            let id = busy.machine.as_ref().map(|machine| machine.id.as_str()).unwrap_or_default();
            return Err(format!("{id}: {} is under way", busy.in_flight));
        }
        match self.unmet().first() {
            Some(need) => Err(format!("a need of {} is unmet", need.cluster_id)),
            None => Ok(()),
        }
    }
}

/// Whether a machine is paid for by the hour.
pub(crate) fn is_rented(machine: &Machine) -> bool {
    matches!(machine.capacity_type(), CapacityType::OnDemand | CapacityType::Spot)
}

/// The wire's name of a state, in small letters and without its prefix.
pub(crate) fn state_name(state: MachineState) -> String {
    state.as_str_name().trim_start_matches("MACHINE_STATE_").to_lowercase()
}

/// Whether a record is a decision, and not the outcome of one.
pub(crate) fn is_decided(decision: &Decision, kind: &str) -> bool {
    decision.record.kind == kind && decision.record.of_sequence == 0
}
