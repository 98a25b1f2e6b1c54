//! Shortfalls over time (§9): what every need as sent has been missing, since
//! when, and for how many cycles.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use bigfleet_model::{Fingerprint, PenaltyBucket, Profile, Totals};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::{
    engine::Engine,
    handle::{AccountIx, PreparedIx},
    input::{NeedKey, Time},
};

/// What needs are missing after Phase 2. It lies beside the engine, so that
/// deciding stays what it is; feed it after every cycle, always from the same
/// engine. An update costs time in proportion to the needs that are short.
#[derive(Default)]
pub struct Ledger {
    entries: HashMap<AccountIx, Entry, FixedState>,
    /// Number of the last cycle taken in.
    cycle: u64,
}

/// One need that is short.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Which need, as sent.
    pub need: NeedKey,
    /// What its machines must be like.
    pub profile: Arc<Profile>,
    /// What each machine must hold alone.
    pub min_unit: Totals,
    /// What is missing after Phase 2.
    pub deficit: Totals,
    /// Cycles in a row, this one included.
    pub age: u32,
    /// Time of the first of them.
    pub since: Time,
    /// Nothing may be acquired for it now: machines from elsewhere would not help.
    pub held: bool,
    cycle: u64,
}

impl Entry {
    /// What an interruption costs its workload.
    pub fn interruption(&self) -> PenaltyBucket {
        self.profile.interruption()
    }
}

/// Shortfalls of one profile, of whichever cluster and gang.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortage {
    /// What machines must be like.
    pub profile: Arc<Profile>,
    /// The largest unit among its needs.
    pub min_unit: Totals,
    /// What is missing in all. A vector, never a count.
    pub deficit: Totals,
    /// Age of the oldest.
    pub age: u32,
    /// Time since when the oldest is short.
    pub since: Time,
}

impl Shortage {
    /// Old enough for others to act; younger ones are told for information.
    pub const fn escalates(&self) -> bool {
        self.age > Ledger::ESCALATES_AFTER
    }
}

impl Ledger {
    /// Rows that are reported at most.
    pub const REPORTED: usize = 100;
    /// A shortage must be older than this many cycles to escalate.
    pub const ESCALATES_AFTER: u32 = 5;

    /// Takes in what the last cycle left short, and drops what no longer is. Again
    /// for the same cycle it changes nothing.
    pub fn update(&mut self, engine: &Engine) {
        if engine.cycles() == self.cycle {
            return;
        }
        self.cycle = engine.cycles();
        for short in engine.decided.short.iter().filter(|short| !short.open.is_zero()) {
            let row = &engine.world.needs[short.need];
            if row.is_fold() {
                let unit = &engine.world.pools[row.pool].key.unit;
                let members = engine.world.folded(row);
                let homeless = units(&short.open, unit).min(members.len());
                for &member in &members[members.len() - homeless..] {
                    self.note(engine, member, unit);
                }
            } else {
                self.note(engine, short.need, &short.open);
            }
        }
        let cycle = self.cycle;
        self.entries.retain(|_, entry| entry.cycle == cycle);
    }

    fn note(&mut self, engine: &Engine, need: PreparedIx, deficit: &Totals) {
        let world = &engine.world;
        let row = &world.needs[need];
        let (cycle, held) = (self.cycle, row.held.is_some());
        let fresh = || Entry {
            need: engine.key_of(need),
            profile: world.profiles[row.profile].profile.clone(),
            min_unit: Totals::zero(),
            deficit: Totals::zero(),
            age: 0,
            since: engine.decided_at(),
            held,
            cycle,
        };
        let entry = self.entries.entry(row.account).or_insert_with(fresh);
        if !engine.is_of(need, entry) {
            *entry = fresh();
        }
        entry.min_unit.clone_from(&world.pools[row.pool].key.unit);
        entry.deficit.clone_from(deficit);
        entry.age = entry.age.saturating_add(1);
        (entry.held, entry.cycle) = (held, cycle);
    }

    /// Needs that are short.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Nobody is short.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Every entry, in no order that means anything.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// The entry of a need; `engine` is the one it was fed from.
    pub fn entry(&self, engine: &Engine, need: &NeedKey) -> Option<&Entry> {
        let names = &engine.world.names;
        let account = names.known_account(&need.cluster, &need.fingerprint, &need.group)?;
        self.entries.get(&account)
    }

    /// One row per profile: priority desc, age desc, fingerprint asc; at most
    /// [`Self::REPORTED`]. Held needs are left out: machines
    /// from elsewhere would not help them (shard chapter §14).
    pub fn reported(&self) -> Vec<Shortage> {
        let mut by_profile: BTreeMap<&Fingerprint, Shortage> = BTreeMap::new();
        for entry in self.entries.values().filter(|entry| !entry.held) {
            let of_profile =
                by_profile.entry(entry.profile.fingerprint()).or_insert_with(|| Shortage {
                    profile: entry.profile.clone(),
                    min_unit: Totals::zero(),
                    deficit: Totals::zero(),
                    age: 0,
                    since: entry.since,
                });
            of_profile.min_unit = of_profile.min_unit.max(&entry.min_unit);
            of_profile.deficit.add_assign(&entry.deficit);
            of_profile.age = of_profile.age.max(entry.age);
            of_profile.since = of_profile.since.min(entry.since);
        }
        // The map is in the order of fingerprints, which a stable sort keeps.
        let mut rows: Vec<Shortage> = by_profile.into_values().collect();
        rows.sort_by_key(|row| (Reverse(row.profile.priority()), Reverse(row.age)));
        rows.truncate(Self::REPORTED);
        rows
    }
}

impl Engine {
    /// An entry found by a number must not outlive what the number stood for.
    fn is_of(&self, need: PreparedIx, entry: &Entry) -> bool {
        let row = &self.world.needs[need];
        let profile = &self.world.profiles[row.profile].profile;
        self.world.names.clusters[row.cluster].id == entry.need.cluster
            && *self.world.group(row) == entry.need.group
            && (Arc::ptr_eq(profile, &entry.profile) || *profile == entry.profile)
    }
}

/// Whole units that an amount takes.
fn units(amount: &Totals, unit: &Totals) -> usize {
    let of_dimension = |(dimension, of_unit): (_, i128)| {
        let whole = amount.get(dimension);
        whole / of_unit + i128::from(whole % of_unit != 0)
    };
    let most = unit.iter().map(of_dimension).max().unwrap_or(0);
    usize::try_from(most).unwrap_or(usize::MAX)
}
