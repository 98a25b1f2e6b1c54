//! Machines at the desk: which of them are ours, and how they leave.

use bigfleet_engine::{Action, ActionKind};
use bigfleet_model::{Machine, MachineId, MachineState};
use tokio::time::Instant;

use super::Shared;
use crate::{
    holdings::{Busy, Domain, Effect},
    live::{Desk, Entry, Stage},
    shard::Shard,
};

impl Desk<'_> {
    /// Whether a record of the provider's is of a machine of ours.
    pub(crate) fn is_ours(&self, record: &Machine) -> bool {
        let Some(shared) = &self.shard.shared else { return true };
        shared.in_force().owns(record)
    }

    /// Whether an action may begin: its machine is ours, and the cluster that it is on
    /// its way to.
    pub(crate) fn may_begin(&self, action: &Action) -> bool {
        let Some(shared) = &self.shard.shared else { return true };
        let in_force = shared.in_force();
        let goes_on = match &action.kind {
            ActionKind::Bootstrap(bound) | ActionKind::Provision(bound) => {
                in_force.ownership.holds(&bound.cluster)
            }
            _ => true,
        };
        let ours = self.tracked(&action.machine).is_some_and(|one| in_force.owns(&one.machine));
        goes_on && ours && shared.is_open()
    }

    /// Forgets a machine that is no longer ours, once nothing is under way on it.
    pub(crate) fn leave_if_lost(&mut self, machine: &MachineId) {
        if self.shard.shared.is_none()
            || self.live.pending(machine).is_some()
            || self.live.holds.contains_key(machine)
        {
            return;
        }
        let lost = self.tracked(machine).is_some_and(|one| !self.is_ours(&one.machine));
        if lost {
            self.leave(machine);
        }
    }

    /// What is queued or under way, as far as it may keep a key.
    fn busy(&self, label: Option<&str>) -> Vec<Busy> {
        use bigfleet_model::Attributes;
        let domain = |machine: &Machine| {
            let key = label?;
            let value = machine.class.attribute(key)?;
            Some(Domain { key: key.to_owned(), value: value.to_owned() })
        };
        let pending = self.live.entries.values().filter_map(|entry| {
            let action = &entry.pending.as_ref()?.action.kind;
            let unbound =
                !matches!(action, ActionKind::Reclaim { .. } | ActionKind::Preempt { .. });
            let domain = unbound.then(|| domain(&entry.tracked.machine)).flatten();
            Some(Busy { domain, cluster: action.cluster().cloned() })
        });
        let now = Instant::now();
        let holds = self.live.holds.iter().filter(|(_, hold)| hold.until > now);
        let unanswered = holds.filter_map(|(id, hold)| {
            let machine = self.tracked(id)?.machine;
            let unbound = hold.start != MachineState::Configured;
            let domain = unbound.then(|| domain(&machine)).flatten();
            Some(Busy { domain, cluster: machine.cluster })
        });
        pending.chain(unanswered).collect()
    }
}

impl Shard {
    /// Lets everything go that these effects took and that nothing is under way on.
    pub(super) async fn let_go(&self, effects: &[Effect]) {
        let Some(shared) = &self.shared else { return };
        let mut desk = self.desk().await;
        let taken = effects.iter().filter(|effect| effect.takes());
        // Single machines are told by name; what is of a lost key has to be looked for.
        let disowned = taken.map(|effect| match effect {
            Effect::Disown(machine) => Some(machine.clone()),
            _ => None,
        });
        let disowned: Option<Vec<MachineId>> = disowned.collect();
        let lost = disowned.unwrap_or_else(|| desk.lost(shared));
        for machine in lost {
            desk.end_lost_wait(&machine);
            desk.leave_if_lost(&machine);
        }
    }

    /// The same for what moves: cheap, and due again and again while keys are released.
    pub(super) async fn let_go_of_moving(&self) {
        let mut desk = self.desk().await;
        let moving: Vec<MachineId> = desk.live.entries.keys().cloned().collect();
        for machine in moving {
            desk.end_lost_wait(&machine);
            desk.leave_if_lost(&machine);
        }
    }

    /// What is queued or under way.
    pub(super) async fn busy(&self, label: Option<&str>) -> Vec<Busy> {
        self.desk().await.busy(label)
    }
}

impl Desk<'_> {
    /// All that is no longer ours, and all that moves.
    fn lost(&self, shared: &Shared) -> Vec<MachineId> {
        let in_force = shared.in_force();
        let ownership = &in_force.ownership;
        let views = self.decider.engine.views_after(None);
        let lost = views
            .filter(|view| !ownership.owns(view.id(), view.state(), view.cluster(), view.class()));
        let mut lost: Vec<MachineId> = lost.map(|view| view.id().into()).collect();
        lost.extend(self.live.entries.keys().cloned());
        lost
    }

    /// An operator drains a machine whose cluster is no longer ours: as after a
    /// restart, whoever has it now decides anew.
    fn end_lost_wait(&mut self, machine: &MachineId) {
        let waits = |entry: &Entry| {
            let pending = entry.pending.as_ref()?;
            (pending.stage == Stage::ReclaimWait).then(|| entry.tracked.machine.clone())
        };
        let waiting = self.live.entries.get(machine).and_then(waits);
        if waiting.is_some_and(|record| !self.is_ours(&record)) {
            self.end_wait(machine);
        }
    }
}
