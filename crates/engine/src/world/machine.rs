//! Machines: a small hot row each, and what only readers ask for out of line.

use bigfleet_model::{Machine, MachineState};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};

use super::texts::{TextAt, Texts};
use crate::{
    action::Action,
    handle::{ClassIx, ClusterIx, Column, MachineIx, PreparedIx, RunIx, StampIx},
    input::{Drain, HeldBack, Time},
};

/// What the phases read of a machine, as it is seen with what is pending. Half a
/// cache line: whoever looks at a machine loads one.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(crate) struct MachineRow {
    /// Labels order like ids.
    pub(crate) label: u64,
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

/// All machines.
#[derive(Default)]
pub(crate) struct Machines {
    pub(crate) rows: Column<MachineIx, MachineRow>,
    texts: Column<MachineIx, TextAt>,
    store: Texts,
    providers: Providers,
    index: HashTable<MachineIx>,
    /// By id: what is new waits in `fresh` for a label.
    pub(crate) sorted: Vec<MachineIx>,
    pub(crate) fresh: Vec<MachineIx>,
    pub(crate) free: Vec<MachineIx>,
    pub(crate) removed: usize,
    /// When they last became idle, of those of which that is known: few, as a rule.
    pub(crate) idle_since: HashMap<MachineIx, Time, FixedState>,
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
        let is = |known: &MachineIx| self.store.is_id(self.texts[*known], id);
        self.index.find(hash(id), is).copied()
    }

    pub(crate) fn id(&self, number: MachineIx) -> &str {
        self.store.id(self.texts[number])
    }

    /// Provider and reference.
    pub(crate) fn host(&self, number: MachineIx) -> Option<(&str, &str)> {
        let (provider, reference) = self.store.host(self.texts[number])?;
        Some((self.providers.name(provider), reference))
    }

    /// Notes the host of a known machine.
    pub(crate) fn set_host(&mut self, number: MachineIx, machine: &Machine) {
        let known = self.host(number);
        let host = machine.host.as_ref().map(|host| (&*host.provider, &*host.reference));
        if known != host {
            self.store.forget(self.texts[number]);
            self.texts[number] = self.put(machine);
        }
    }

    fn put(&mut self, machine: &Machine) -> TextAt {
        let host = machine
            .host
            .as_ref()
            .map(|host| (self.providers.intern(&host.provider), host.reference.as_str()));
        self.store.put(&machine.id, host)
    }

    pub(crate) fn insert(&mut self, row: MachineRow, machine: &Machine) -> MachineIx {
        let hashed = hash(&machine.id);
        let at = self.put(machine);
        let number = match self.free.pop() {
            Some(number) => {
                self.rows[number] = row;
                self.texts[number] = at;
                number
            }
            None => {
                self.rows.push(row);
                self.texts.push(at)
            }
        };
        let (store, texts) = (&self.store, &self.texts);
        self.index.insert_unique(hashed, number, |known| hash(store.id(texts[*known])));
        self.fresh.push(number);
        number
    }

    /// Forgets the id; the row stays until [`Self::put_in_order`] has dropped it.
    pub(crate) fn forget(&mut self, number: MachineIx) {
        let hashed = hash(self.id(number));
        self.store.forget(self.texts[number]);
        if let Ok(entry) = self.index.find_entry(hashed, |known| *known == number) {
            entry.remove();
        }
        self.rows[number].removed = true;
        self.removed += 1;
        self.idle_since.remove(&number);
        self.drains.remove(&number);
        self.pending.remove(&number);
        self.hidden.remove(&number);
        self.errors.remove(&number);
    }

    /// Copies what is left where much was forgotten.
    fn tidy_texts(&mut self) {
        if !self.store.is_wasteful() {
            return;
        }
        let mut store = Texts::default();
        // One that was removed is sorted by its id until its place is free.
        for number in self.sorted.iter().chain(&self.fresh) {
            let at = self.texts[*number];
            let moved = store.put(self.store.id(at), self.store.host(at));
            if self.rows[*number].removed {
                store.forget(moved);
            }
            self.texts[*number] = moved;
        }
        self.store = store;
    }

    /// Gives labels to new machines. True if all labels are new.
    pub(crate) fn put_in_order(&mut self) -> bool {
        if self.removed * 4 > self.sorted.len() + 64 {
            self.drop_removed();
        }
        self.tidy_texts();
        if self.fresh.is_empty() {
            return false;
        }
        let (store, texts) = (&self.store, &self.texts);
        let id = |number: &MachineIx| store.id(texts[*number]);
        let by_id = |a: &MachineIx, b: &MachineIx| id(a).cmp(id(b));
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
        let mut places = Vec::with_capacity(self.fresh.len());
        let mut rest = &self.sorted[..];
        let mut before = 0;
        for number in &self.fresh {
            let at = rest.partition_point(|known| self.id(*known) < self.id(*number));
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
            let (store, texts) = (&self.store, &self.texts);
            let id = |number: &MachineIx| store.id(texts[*number]);
            // Two sorted runs: a stable sort merges them.
            self.sorted.sort_by(|a, b| id(a).cmp(id(b)));
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

    /// What a cycle reads of them, and of texts only what it may have to sort.
    pub(crate) fn for_a_cycle(&self) -> Self {
        let bare = Self { rows: self.rows.clone(), removed: self.removed, ..Self::default() };
        if self.fresh.is_empty() {
            return bare;
        }
        Self {
            texts: self.texts.clone(),
            store: self.store.clone(),
            sorted: self.sorted.clone(),
            fresh: self.fresh.clone(),
            ..bare
        }
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

/// Names of providers, each once.
#[derive(Clone, Default)]
struct Providers(Vec<Box<str>>);

impl Providers {
    fn intern(&mut self, name: &str) -> u32 {
        let known = self.0.iter().position(|known| &**known == name);
        known.unwrap_or_else(|| {
            self.0.push(name.into());
            self.0.len() - 1
        }) as u32
    }

    fn name(&self, number: u32) -> &str {
        self.0.get(number as usize).map_or("", |name| name)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_machine_takes_half_a_cache_line() {
        assert_eq!(size_of::<super::MachineRow>(), 32);
    }
}
