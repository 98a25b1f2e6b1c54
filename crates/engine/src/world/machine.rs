//! Machines: a small hot row each, and what only readers ask for out of line.

use bigfleet_model::{Machine, MachineId, MachineState};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};

use crate::{
    action::Action,
    handle::{ClassIx, ClusterIx, Column, MachineIx, PreparedIx, RunIx, StampIx},
    input::{Drain, HeldBack, Time},
};

/// What the phases read of a machine, as it is seen with what is pending.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MachineRow {
    /// Labels order like ids.
    pub(crate) label: u64,
    /// When it last became idle.
    pub(crate) idle_since: Option<Time>,
    pub(crate) class: ClassIx,
    /// Whom it is bound to.
    pub(crate) cluster: Option<ClusterIx>,
    pub(crate) stamp: Option<StampIx>,
    pub(crate) run: Option<RunIx>,
    /// Who counts on it.
    pub(crate) claimant: Option<PreparedIx>,
    pub(crate) state: MachineState,
    pub(crate) held_back: Option<HeldBack>,
    /// Waits for its place among the runs.
    pub(crate) moved: bool,
    /// Gone; its number is free once nothing refers to it.
    pub(crate) removed: bool,
}

/// What is known of a drain: its end may be counted from now, while the action
/// that begins it is still pending.
#[derive(Clone, Debug)]
pub(crate) struct DrainRow {
    pub(crate) end: DrainEnd,
    pub(crate) preemptor_priority: Option<i32>,
    pub(crate) preemptor: Option<crate::handle::AccountIx>,
}

/// When a drain ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DrainEnd {
    Unknown,
    At(Time),
    After(std::time::Duration),
}

/// A machine as its provider reports it, kept where pending actions hide it.
#[derive(Clone, Debug)]
pub(crate) struct Hidden {
    pub(crate) state: MachineState,
    pub(crate) cluster: Option<ClusterIx>,
    pub(crate) stamp: Option<StampIx>,
}

/// What no decision reads.
#[derive(Clone, Debug)]
pub(crate) struct Cold {
    pub(crate) id: MachineId,
    pub(crate) host: Option<Box<(std::sync::Arc<str>, Box<str>)>>,
}

/// All machines.
#[derive(Default)]
pub(crate) struct Machines {
    pub(crate) rows: Column<MachineIx, MachineRow>,
    pub(crate) cold: Column<MachineIx, Cold>,
    index: HashTable<MachineIx>,
    /// By id: what is new waits in `fresh` for a label.
    pub(crate) sorted: Vec<MachineIx>,
    pub(crate) fresh: Vec<MachineIx>,
    pub(crate) free: Vec<MachineIx>,
    pub(crate) removed: usize,
    pub(crate) drains: HashMap<MachineIx, Drain, FixedState>,
    pub(crate) pending: HashMap<MachineIx, Vec<Action>, FixedState>,
    pub(crate) hidden: HashMap<MachineIx, Hidden, FixedState>,
    pub(crate) errors: HashMap<MachineIx, Box<str>, FixedState>,
}

fn hash(id: &str) -> u64 {
    use std::hash::BuildHasher;
    FixedState::default().hash_one(id)
}

impl Machines {
    pub(crate) fn find(&self, id: &str) -> Option<MachineIx> {
        self.index.find(hash(id), |known| &*self.cold[*known].id == id).copied()
    }

    pub(crate) fn insert(&mut self, row: MachineRow, cold: Cold) -> MachineIx {
        let hashed = hash(&cold.id);
        let number = match self.free.pop() {
            Some(number) => {
                self.rows[number] = row;
                self.cold[number] = cold;
                number
            }
            None => {
                self.rows.push(row);
                self.cold.push(cold)
            }
        };
        let cold = &self.cold;
        self.index.insert_unique(hashed, number, |known| hash(&cold[*known].id));
        self.fresh.push(number);
        number
    }

    /// Forgets the id; the row stays until [`Self::put_in_order`] has dropped it.
    pub(crate) fn forget(&mut self, number: MachineIx) {
        let hashed = hash(&self.cold[number].id);
        if let Ok(entry) = self.index.find_entry(hashed, |known| *known == number) {
            entry.remove();
        }
        self.rows[number].removed = true;
        self.removed += 1;
        self.drains.remove(&number);
        self.pending.remove(&number);
        self.hidden.remove(&number);
        self.errors.remove(&number);
    }

    /// Gives labels to new machines. True if all labels are new.
    pub(crate) fn put_in_order(&mut self) -> bool {
        if self.removed * 4 > self.sorted.len() + 64 {
            self.drop_removed();
        }
        if self.fresh.is_empty() {
            return false;
        }
        let cold = &self.cold;
        let by_id = |a: &MachineIx, b: &MachineIx| cold[*a].id.cmp(&cold[*b].id);
        // Machines mostly come in order.
        if !self.fresh.is_sorted_by(|a, b| by_id(a, b).is_lt()) {
            self.fresh.sort_unstable_by(by_id);
        }
        if self.fresh.len() * 16 < self.sorted.len() && self.squeeze_in() {
            return false;
        }
        self.merge();
        true
    }

    /// Labels between those of the neighbours; false if there is no room.
    fn squeeze_in(&mut self) -> bool {
        let cold = &self.cold;
        let mut places = Vec::with_capacity(self.fresh.len());
        let mut rest = &self.sorted[..];
        let mut before = 0;
        for number in &self.fresh {
            let at = rest.partition_point(|known| cold[*known].id < cold[*number].id);
            before += at;
            places.push(before);
            rest = &rest[at..];
        }
        let mut last = 0;
        let mut labels = Vec::with_capacity(places.len());
        for &place in &places {
            let low = match place.checked_sub(1) {
                Some(at) => self.rows[self.sorted[at]].label.max(last),
                None => last,
            };
            let high = self.sorted.get(place).map_or(u64::MAX, |known| self.rows[*known].label);
            if high - low < 2 {
                return false;
            }
            // Close to the lower one: those that follow squeeze in behind it.
            last = low + ((high - low) / 2).clamp(1, 1 << 16);
            labels.push(last);
        }
        for (number, label) in self.fresh.iter().zip(labels) {
            self.rows[*number].label = label;
        }
        let mut merged = Vec::with_capacity(self.sorted.len() + places.len());
        let mut from = 0;
        for (number, place) in self.fresh.drain(..).zip(places) {
            merged.extend_from_slice(&self.sorted[from..place]);
            merged.push(number);
            from = place;
        }
        merged.extend_from_slice(&self.sorted[from..]);
        self.sorted = merged;
        true
    }

    /// Merges what is new and labels everything anew.
    fn merge(&mut self) {
        self.drop_removed();
        if self.sorted.is_empty() {
            std::mem::swap(&mut self.sorted, &mut self.fresh);
        } else {
            self.sorted.append(&mut self.fresh);
            let cold = &self.cold;
            // Two sorted runs: a stable sort merges them.
            self.sorted.sort_by(|a, b| cold[*a].id.cmp(&cold[*b].id));
        }
        let step = (u64::MAX / 2) / (self.sorted.len() as u64 + 1);
        for (at, number) in self.sorted.iter().enumerate() {
            self.rows[*number].label = step * (at as u64 + 1);
        }
    }

    fn drop_removed(&mut self) {
        if self.removed == 0 {
            return;
        }
        let (rows, free) = (&self.rows, &mut self.free);
        let before = free.len();
        // One that still has its place in a run is found there by its label.
        let mut keep = |number: &MachineIx| {
            let row = &rows[*number];
            let gone = row.removed && row.run.is_none() && !row.moved;
            if gone {
                free.push(*number);
            }
            !gone
        };
        self.sorted.retain(&mut keep);
        self.fresh.retain(&mut keep);
        self.removed -= free.len() - before;
    }

    /// A machine as its provider reports it.
    pub(crate) fn reported(&self, number: MachineIx) -> Hidden {
        let row = &self.rows[number];
        self.hidden.get(&number).cloned().unwrap_or(Hidden {
            state: row.state,
            cluster: row.cluster,
            stamp: row.stamp,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }
}

impl Cold {
    pub(crate) fn of(machine: &Machine, providers: &mut Providers) -> Self {
        let host = machine.host.as_ref().map(|host| {
            Box::new((providers.intern(&host.provider), Box::from(host.reference.as_str())))
        });
        Self { id: machine.id.clone(), host }
    }
}

/// Names of providers, each once.
#[derive(Default)]
pub(crate) struct Providers(Vec<std::sync::Arc<str>>);

impl Providers {
    fn intern(&mut self, name: &str) -> std::sync::Arc<str> {
        if let Some(known) = self.0.iter().find(|known| &***known == name) {
            return known.clone();
        }
        let name: std::sync::Arc<str> = name.into();
        self.0.push(name.clone());
        name
    }
}
