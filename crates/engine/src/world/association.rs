//! Whose a machine is as reported: bound to a cluster, or being created for one.
//!
//! Bound machines are found through the runs of their cluster. What is in no such
//! run (draining, failed, being created, hidden by a pending action) is listed here,
//! so nothing is kept per machine of a fleet at rest.

use std::collections::BTreeSet;

use bigfleet_model::MachineState;

use super::{Hidden, World};
use crate::handle::{ClusterIx, Handle, MachineIx};

/// Machines of clusters that are in none of their runs of bound machines.
#[derive(Clone, Default)]
pub(crate) struct Elsewhere(BTreeSet<(ClusterIx, MachineIx)>);

impl Elsewhere {
    fn of(&self, cluster: ClusterIx) -> impl Iterator<Item = MachineIx> {
        let all = (cluster, MachineIx::at(0))..;
        let known = self.0.range(all).take_while(move |(of, _)| *of == cluster);
        known.map(|(_, machine)| *machine)
    }

    fn contains(&self, cluster: ClusterIx, machine: MachineIx) -> bool {
        self.0.contains(&(cluster, machine))
    }
}

impl World {
    /// The cluster that a machine is bound to, or is being created for.
    pub(crate) fn association(&self, reported: &Hidden) -> Option<ClusterIx> {
        let bought = || {
            let stamp = reported.stamp.filter(|_| reported.state == MachineState::Creating)?;
            self.names.stamps[stamp].for_cluster
        };
        reported.cluster.or_else(bought)
    }

    /// A machine is about to change: forgets whose it is.
    pub(super) fn dissociate(&mut self, number: MachineIx) {
        let reported = self.machines.reported(number);
        if let Some(cluster) = self.association(&reported) {
            self.elsewhere.0.remove(&(cluster, number));
            if reported.state == MachineState::Configured {
                self.names.clusters[cluster].configured -= 1;
            }
        }
    }

    /// A machine has changed: notes whose it is.
    pub(super) fn associate(&mut self, number: MachineIx) {
        let reported = self.machines.reported(number);
        if let Some(cluster) = self.association(&reported) {
            let row = &self.machines.rows[number];
            let bound = matches!(row.state, MachineState::Configured | MachineState::Configuring);
            if !bound || row.cluster != Some(cluster) {
                self.elsewhere.0.insert((cluster, number));
            }
            if reported.state == MachineState::Configured {
                self.names.clusters[cluster].configured += 1;
            }
        }
    }

    /// Rows of machines whose run may no longer be right.
    pub(crate) fn moved_machines(&self) -> impl Iterator<Item = &super::MachineRow> {
        self.moved.iter().map(|machine| &self.machines.rows[*machine])
    }

    /// Calls back with every machine of a cluster, once, in no order that means
    /// anything. Looks at the cluster's machines and at what changed since runs were
    /// last brought up to date.
    pub(crate) fn each_of(&self, cluster: ClusterIx, mut each: impl FnMut(MachineIx)) {
        let is_its = |machine: MachineIx| {
            !self.machines.rows[machine].removed
                && self.association(&self.machines.reported(machine)) == Some(cluster)
        };
        let in_run = |machine: MachineIx| {
            let run = self.machines.rows[machine].run.map(|run| &self.runs[run]);
            run.is_some_and(|run| run.kind == super::RunKind::Bound && run.cluster == Some(cluster))
        };
        for run in self.names.clusters[cluster].shelves.runs() {
            let members = self.runs[run].members.iter().copied();
            members.filter(|machine| is_its(*machine)).for_each(&mut each);
        }
        let elsewhere = self.elsewhere.of(cluster);
        elsewhere.filter(|machine| !in_run(*machine)).for_each(&mut each);
        let moved = self.moved.iter().copied().filter(|machine| {
            is_its(*machine) && !in_run(*machine) && !self.elsewhere.contains(cluster, *machine)
        });
        moved.for_each(&mut each);
    }
}
