//! Machines come, change and go; what is pending hides what is reported (§3).

use std::sync::Arc;

use bigfleet_model::{CapacityType, MachineState};
use smallvec::SmallVec;

use super::{DrainEnd, DrainRow, Hidden, MachineRow, Machines, World};
use crate::{
    action::{Action, ActionKind},
    handle::{AccountIx, MachineIx, StampIx},
    input::{HeldBack, NeedKey, Tracked},
};

/// More than a core can wait for at once, and few enough for the stack.
const LOOKED_UP_TOGETHER: usize = 64;

/// Orders what should not be there twice.
fn order(action: &Action) -> (u8, String) {
    let rank = match action.kind {
        ActionKind::Bootstrap(_) => 0,
        ActionKind::Provision(_) => 1,
        ActionKind::Preempt { .. } => 2,
        ActionKind::Reclaim { .. } => 3,
        ActionKind::Delete => 4,
    };
    (rank, format!("{action:?}"))
}

impl World {
    /// Takes in a machine, new or known.
    pub(crate) fn upsert(&mut self, tracked: &Tracked) -> MachineIx {
        let known = self.machines.find(&tracked.machine.id);
        self.upsert_at(known, tracked, |_, _| ())
    }

    /// Takes in machines, new or known, each with all that is pending for it. They
    /// are looked up together: a lookup mostly waits for memory, and so many wait
    /// at once.
    pub(crate) fn upsert_all(&mut self, seen: &[(&Tracked, Option<&Action>)]) {
        for some in seen.chunks(LOOKED_UP_TOGETHER) {
            let known: SmallVec<[_; LOOKED_UP_TOGETHER]> =
                some.iter().map(|(tracked, _)| self.machines.find(&tracked.machine.id)).collect();
            for (&(tracked, action), known) in some.iter().zip(known) {
                // What is new may stand in the list twice.
                let known = known.or_else(|| self.machines.find(&tracked.machine.id));
                self.upsert_at(known, tracked, |machines, number| match action {
                    Some(action) => {
                        let pending = machines.pending.entry(number).or_default();
                        pending.clear();
                        pending.push(action.clone());
                    }
                    None => drop(machines.pending.remove(&number)),
                });
            }
        }
    }

    /// `known` is the number that its id has; `pend` may change what is pending.
    fn upsert_at(
        &mut self,
        known: Option<MachineIx>,
        tracked: &Tracked,
        pend: impl FnOnce(&mut Machines, MachineIx),
    ) -> MachineIx {
        let machine = &tracked.machine;
        let class = self.class(&machine.class);
        let cluster = machine.cluster.as_ref().map(|cluster| self.names.cluster(cluster));
        let stamp = machine.stamp.as_ref().map(|stamp| self.names.stamp(stamp));
        let reported = Hidden { state: machine.state, cluster, stamp };
        let number = match known {
            Some(number) => {
                self.unlist_idle(number);
                let row = &mut self.machines.rows[number];
                let before = std::mem::replace(&mut row.class, class);
                self.classes[before].machines -= 1;
                self.machines.set_host(number, machine);
                number
            }
            None => {
                let row = MachineRow {
                    label: 0,
                    class,
                    // Whose it is and where it stands is seen below, as a change.
                    cluster: None,
                    stamp: None,
                    run: None,
                    claimant: None,
                    state: MachineState::Speculative,
                    held_back: None,
                    moved: false,
                    removed: false,
                };
                self.machines.insert(row, machine)
            }
        };
        self.classes[class].machines += 1;
        let idle_since = &mut self.machines.idle_since;
        match tracked.idle_since {
            Some(since) => drop(idle_since.insert(number, since)),
            None => drop(idle_since.remove(&number)),
        }
        let (drains, errors) = (&mut self.machines.drains, &mut self.machines.errors);
        match &tracked.drain {
            Some(drain) => drop(drains.insert(number, drain.clone())),
            None => drop(drains.remove(&number)),
        }
        if machine.last_error.is_empty() {
            errors.remove(&number);
        } else {
            errors.insert(number, machine.last_error.as_str().into());
        }
        pend(&mut self.machines, number);
        self.see(number, reported);
        number
    }

    /// A machine is gone.
    pub(crate) fn remove(&mut self, number: MachineIx) {
        self.unlist_idle(number);
        self.dissociate(number);
        self.set_drain(number, None);
        self.hold_back(number, None);
        let class = self.machines.rows[number].class;
        self.classes[class].machines -= 1;
        self.machines.forget(number);
        self.mark_moved(number);
    }

    /// Notes an action that is queued or executing.
    pub(crate) fn pend(&mut self, number: MachineIx, action: Action) {
        let pending = self.machines.pending.entry(number).or_default();
        pending.push(action);
        if pending.len() > 1 {
            pending.sort_by_cached_key(order);
        }
        self.see_again(number);
    }

    /// Forgets what was pending for a machine.
    pub(crate) fn unpend(&mut self, number: MachineIx) {
        if self.machines.pending.remove(&number).is_some() {
            self.see_again(number);
        }
    }

    pub(crate) fn hold_back(&mut self, number: MachineIx, why: Option<HeldBack>) {
        let known = self.machines.rows[number].held_back;
        if known != why {
            self.withheld = self.withheld + u32::from(why.is_some()) - u32::from(known.is_some());
            self.machines.rows[number].held_back = why;
            self.mark_moved(number);
        }
    }

    /// Gives a machine another stamp; what is pending for it carries it, too.
    pub(crate) fn stamp(&mut self, number: MachineIx, stamp: StampIx) {
        let row = &self.machines.rows[number];
        if row.removed || row.stamp == Some(stamp) {
            return;
        }
        let mut reported = self.machines.reported(number);
        let hidden = self.machines.hidden.contains_key(&number);
        let text = || Arc::new(self.names.stamp_text(stamp));
        for action in self.machines.pending.get_mut(&number).into_iter().flatten() {
            if let ActionKind::Bootstrap(acquisition) | ActionKind::Provision(acquisition) =
                &mut action.kind
            {
                acquisition.stamp = text();
            }
        }
        if !hidden {
            reported.stamp = Some(stamp);
        }
        self.unlist_idle(number);
        self.see(number, reported);
    }

    fn see_again(&mut self, number: MachineIx) {
        let reported = self.machines.reported(number);
        self.unlist_idle(number);
        self.see(number, reported);
    }

    /// Overlays what is pending on what is reported. An entry whose machine has
    /// left the action's start state changes nothing.
    fn see(&mut self, number: MachineIx, reported: Hidden) {
        self.dissociate(number);
        let action = self.machines.pending.get(&number).and_then(|pending| {
            pending.iter().find(|action| action.kind.start() == reported.state).cloned()
        });
        let mut seen = reported.clone();
        let mut drain = None;
        match action.as_ref().map(|action| &action.kind) {
            None => {
                // Left over from an earlier drain, it says nothing.
                let known = self.machines.drains.get(&number).cloned();
                drain =
                    known.filter(|_| seen.state == MachineState::Draining).map(|known| DrainRow {
                        end: known.deadline.map_or(DrainEnd::Unknown, DrainEnd::At),
                        preemptor_priority: known.preemptor_priority,
                        preemptor: known.preemptor.map(|key| self.account_of(&key)),
                    });
            }
            Some(ActionKind::Bootstrap(acquisition)) => {
                seen = Hidden {
                    state: MachineState::Configuring,
                    cluster: Some(self.names.cluster(&acquisition.cluster)),
                    stamp: Some(self.names.stamp(&acquisition.stamp)),
                };
            }
            Some(ActionKind::Provision(acquisition)) => {
                seen = Hidden {
                    state: MachineState::Creating,
                    cluster: None,
                    stamp: Some(self.names.stamp(&acquisition.stamp)),
                };
            }
            Some(ActionKind::Preempt { grace, preemptor_priority, preemptor, .. }) => {
                seen.state = MachineState::Draining;
                drain = Some(DrainRow {
                    end: DrainEnd::After(*grace),
                    preemptor_priority: Some(*preemptor_priority),
                    preemptor: Some(self.account_of(preemptor)),
                });
            }
            Some(ActionKind::Reclaim { grace, .. }) => {
                seen.state = MachineState::Draining;
                drain = Some(DrainRow {
                    end: DrainEnd::After(*grace),
                    preemptor_priority: None,
                    preemptor: None,
                });
            }
            Some(ActionKind::Delete) => seen.state = MachineState::Deleting,
        }
        if action.is_some() {
            self.machines.hidden.insert(number, reported);
        } else {
            self.machines.hidden.remove(&number);
        }
        self.set_drain(number, drain);
        self.change_state(number, &seen);
        self.associate(number);
        self.list_idle(number);
        self.mark_moved(number);
    }

    /// Keeps count of claimed machines that are not Configured yet.
    fn change_state(&mut self, number: MachineIx, seen: &Hidden) {
        let row = &mut self.machines.rows[number];
        let was_ready = row.state == MachineState::Configured;
        (row.state, row.cluster, row.stamp) = (seen.state, seen.cluster, seen.stamp);
        let is_ready = row.state == MachineState::Configured;
        if let Some(claimant) = row.claimant
            && was_ready != is_ready
        {
            self.count_unready(claimant, !is_ready);
            if was_ready {
                // What it outgrew may have to house it again.
                self.touch(claimant);
            }
        }
    }

    pub(crate) fn account_of(&mut self, key: &NeedKey) -> AccountIx {
        let cluster = self.names.cluster(&key.cluster);
        let number = self.names.key(&key.fingerprint, &key.group);
        self.names.account(cluster, number)
    }

    fn set_drain(&mut self, number: MachineIx, drain: Option<DrainRow>) {
        let account = drain.as_ref().and_then(|drain| drain.preemptor);
        let before = match drain {
            Some(drain) => self.drains.insert(number, drain),
            None => self.drains.remove(&number),
        };
        if let Some(account) = before.and_then(|drain| drain.preemptor)
            && let Some(drains) = self.drains_for.get_mut(&account)
        {
            drains.retain(|known| *known != number);
            if drains.is_empty() {
                self.drains_for.remove(&account);
            }
        }
        if let Some(account) = account {
            self.drains_for.entry(account).or_default().push(number);
        }
    }

    /// Owned hardware is never given back.
    fn may_be_released(&self, number: MachineIx) -> Option<crate::input::Time> {
        let row = &self.machines.rows[number];
        if row.state != MachineState::Idle {
            return None;
        }
        let kind = self.classes[row.class].capacity_type();
        let released = matches!(kind, CapacityType::OnDemand | CapacityType::Spot);
        released.then(|| self.machines.idle_since.get(&number).copied()).flatten()
    }

    fn unlist_idle(&mut self, number: MachineIx) {
        if let Some(since) = self.may_be_released(number) {
            self.idle.remove(&(since, number));
        }
    }

    fn list_idle(&mut self, number: MachineIx) {
        if let Some(since) = self.may_be_released(number) {
            self.idle.insert((since, number));
        }
    }

    fn mark_moved(&mut self, number: MachineIx) {
        let row = &mut self.machines.rows[number];
        if !row.moved {
            row.moved = true;
            self.moved.push(number);
        }
    }
}
