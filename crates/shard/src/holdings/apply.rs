//! The transitions: the table of coordinator chapter §8, one function a row.

use std::collections::BTreeSet;

use bigfleet_model::{FleetId, MachineId};

use super::{
    Assignment, Effect, Event, Holdings, Keys, Out, Refused, Step, TransferId, TransferMachine,
    fleet,
};

impl Holdings {
    /// What an event makes of this, or why it changes nothing.
    pub fn apply(&self, event: &Event) -> Result<Step, Refused> {
        let mut after = self.clone();
        let effects = match event {
            Event::Heard { fleet, term } => after.hear(fleet.as_ref(), *term)?,
            Event::Assigned(assignment) => after.assign(assignment)?,
            Event::Quiet(keys) => after.release(keys),
            Event::Picked { transfer, out } => after.let_go(transfer, out)?,
            Event::Drained { transfer, idle } => after.drained(transfer, idle)?,
            Event::Done(machines) => after.settle(machines),
        };
        Ok(Step { after, effects })
    }

    /// The mark and the generation never fall.
    fn hear(&mut self, fleet: Option<&FleetId>, term: i64) -> Result<Vec<Effect>, Refused> {
        if let Some(theirs) = fleet {
            fleet::follows(self.fleet.as_ref(), theirs)?;
        }
        self.term = fleet::raise(self.term, term)?;
        let Some(theirs) = fleet else { return Ok(Vec::new()) };
        let risen = self.fleet.as_ref().is_some_and(|ours| ours.generation() < theirs.generation());
        self.fleet = Some(theirs.clone());
        if let Some(assignment) = self.assignment.as_mut().filter(|_| risen) {
            // Indexes of another history mean nothing in this one. What is held stays.
            assignment.version = 0;
        }
        Ok(Vec::new())
    }

    /// The Assignment replaces what there was; what is lost is let go of in order.
    fn assign(&mut self, now: &Assignment) -> Result<Vec<Effect>, Refused> {
        let before = self.assignment.take().unwrap_or_default();
        if now.version < before.version {
            let (theirs, ours) = (now.version, before.version);
            return Err(Refused::OldAssignment { theirs, ours });
        }
        let mut effects = Vec::new();
        for key in before.held.without(&now.held).iter() {
            effects.push(Effect::Stop(key.clone()));
            self.releasing.insert(key);
        }
        for key in now.held.without(&before.held).iter() {
            self.releasing.remove(&key);
            effects.push(Effect::Hold(key));
        }
        let away = self.away(&before.machines_out);
        self.settled.retain(|machine| now.machines_in.contains(machine));
        self.out.retain(|transfer, _| now.open_transfers.contains(transfer));
        let mut assignment = now.clone();
        assignment.machines_in.retain(|machine| !self.settled.contains(machine));
        let lent = self.away(&assignment.machines_out);
        let ids = |machines: &BTreeSet<TransferMachine>| -> BTreeSet<MachineId> {
            machines.iter().map(|one| one.machine.clone()).collect()
        };
        let (had, has) = (ids(&before.machines_in), ids(&assignment.machines_in));
        let disowned = had.difference(&has).chain(lent.difference(&away));
        effects.extend(disowned.cloned().map(Effect::Disown));
        let owned = has.difference(&had).chain(away.difference(&lent));
        effects.extend(owned.cloned().map(Effect::Own));
        self.assignment = Some(assignment);
        Ok(effects)
    }

    /// Machines of our domains that are not ours while unbound.
    fn away(&self, machines_out: &BTreeSet<TransferMachine>) -> BTreeSet<MachineId> {
        let moved = machines_out.iter().map(|one| one.machine.clone());
        self.out.values().flat_map(|out| out.machines.iter().cloned()).chain(moved).collect()
    }

    fn release(&mut self, keys: &Keys) -> Vec<Effect> {
        let released = keys.iter().filter(|key| self.releasing.remove(key));
        released.map(Effect::Released).collect()
    }

    /// A release instruction. What was chosen once is answered for ever.
    fn let_go(&mut self, transfer: &TransferId, out: &Out) -> Result<Vec<Effect>, Refused> {
        let open = |assignment: &Assignment| assignment.open_transfers.contains(transfer);
        if !self.assignment.as_ref().is_some_and(open) {
            return Err(Refused::NotOpen(transfer.clone()));
        }
        let mut effects = Vec::new();
        if !self.out.contains_key(transfer) {
            effects.extend(out.machines.iter().cloned().map(Effect::Disown));
            self.out.insert(transfer.clone(), out.clone());
        }
        effects.extend(self.answer(transfer));
        Ok(effects)
    }

    /// Machines that a drain did not free are ours as before.
    fn drained(
        &mut self,
        transfer: &TransferId,
        idle: &BTreeSet<MachineId>,
    ) -> Result<Vec<Effect>, Refused> {
        let none = || Refused::NotDraining(transfer.clone());
        let out = self.out.get_mut(transfer).ok_or_else(none)?;
        let drain = out.drain.as_mut().ok_or_else(none)?;
        let mut effects = Vec::new();
        if !drain.over {
            drain.over = true;
            let left = out.machines.difference(idle).cloned();
            effects.extend(left.map(Effect::Own));
            out.machines.retain(|machine| idle.contains(machine));
        }
        effects.extend(self.answer(transfer));
        Ok(effects)
    }

    fn settle(&mut self, machines: &BTreeSet<(TransferId, MachineId)>) -> Vec<Effect> {
        let Some(assignment) = self.assignment.as_mut() else { return Vec::new() };
        let is_done =
            |one: &TransferMachine| machines.contains(&(one.transfer.clone(), one.machine.clone()));
        let (done, rest): (BTreeSet<_>, BTreeSet<_>) =
            std::mem::take(&mut assignment.machines_in).into_iter().partition(is_done);
        assignment.machines_in = rest;
        let effects = done.iter().map(|one| Effect::Disown(one.machine.clone())).collect();
        self.settled.extend(done);
        effects
    }

    /// What a donor says to a transfer, once there is something to say.
    #[must_use]
    pub fn answer(&self, transfer: &TransferId) -> Option<Effect> {
        let out = self.out.get(transfer).filter(|out| out.is_released())?.clone();
        Some(Effect::Answer { transfer: transfer.clone(), out })
    }
}
