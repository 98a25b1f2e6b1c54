//! What clusters are told of machines (§12). Frames are queued at the desk, in the
//! step that changed the machine.

use bigfleet_engine::Tracked;
use bigfleet_model::{ClusterId, Machine, MachineId};

use super::{
    Desk, Entry,
    entry::association,
    frame::{self, Told},
};

impl Desk<'_> {
    /// Tells the cluster that a machine is of now, and the one it was of.
    pub(super) fn tell_association(&mut self, machine: &Machine, before: Option<ClusterId>) {
        let of = self.live.entries.get(&machine.id).and_then(Entry::association).cloned();
        let known = self.live.told.get(&machine.id).cloned().or(before);
        match (of, known) {
            (Some(of), known) => {
                if let Some(known) = known.filter(|known| *known != of) {
                    self.tell(machine, &known, true);
                }
                self.tell(machine, &of, false);
                if machine.cluster.as_ref() == Some(&of) {
                    self.live.told.remove(&machine.id);
                } else {
                    self.live.told.insert(machine.id.clone(), of);
                }
            }
            // Perhaps it comes back: at the end of the cycle we shall know.
            (None, Some(known)) => {
                self.tell(machine, &known, false);
                self.live.told.insert(machine.id.clone(), known);
            }
            (None, None) => {}
        }
    }

    pub(super) fn tell(&self, machine: &Machine, cluster: &ClusterId, gone: bool) {
        let ended = self.live.ended.get(&machine.id).map(String::as_str);
        let frame = frame::node_state(machine, cluster, Told { gone, ended });
        self.shard.sessions.put_state(cluster, frame::key(&machine.id), frame);
    }

    /// Says once more how a machine is, for instance that an instruction is over.
    pub(crate) fn tell_again(&self, machine: &MachineId) {
        let Some(tracked) = self.tracked(machine) else { return };
        if let Some(cluster) = association(&tracked.machine) {
            self.tell(&tracked.machine, cluster, false);
        }
    }

    /// Every machine of a cluster, to a session that has just begun.
    pub(crate) fn replay(&self, cluster: &ClusterId, machines: &[MachineId]) {
        for machine in machines {
            let of = |tracked: &Tracked| match self.live.entries.get(machine) {
                Some(entry) => entry.association() == Some(cluster),
                None => association(&tracked.machine) == Some(cluster),
            };
            if let Some(tracked) = self.tracked(machine).filter(of) {
                self.tell(&tracked.machine, cluster, false);
            }
        }
    }

    /// Machines of a cluster, of whatever state.
    pub(crate) fn machines_of(&self, cluster: &ClusterId) -> Vec<MachineId> {
        let moving =
            self.live.entries.iter().filter(|(_, entry)| entry.association() == Some(cluster));
        let mut machines: Vec<MachineId> = moving.map(|(machine, _)| machine.clone()).collect();
        machines.extend(self.engine().machines_of(cluster));
        machines.sort_unstable();
        machines.dedup();
        machines
    }

    /// When a cycle ends: whoever was told of a machine that is not its own any
    /// more is told so.
    pub(crate) fn take_leave(&mut self) {
        let told: Vec<(MachineId, ClusterId)> =
            self.live.told.iter().map(|(id, cluster)| (id.clone(), cluster.clone())).collect();
        for (machine, cluster) in told {
            let entry = self.live.entries.get(&machine);
            let tracked = self.tracked(&machine);
            let of = match (entry, &tracked) {
                (Some(entry), _) => entry.association(),
                (None, Some(tracked)) => association(&tracked.machine),
                (None, None) => None,
            };
            if of == Some(&cluster) {
                continue;
            }
            if let Some(tracked) = &tracked {
                self.tell(&tracked.machine, &cluster, true);
            }
            self.live.told.remove(&machine);
        }
    }
}
