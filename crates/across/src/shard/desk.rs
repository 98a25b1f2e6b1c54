//! Machines as a process sees them, and what it does to them: the rules of `live`,
//! `execute` and `reconcile`, as far as ownership depends on them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bigfleet_model::{ClusterId, Machine, MachineId, MachineState, Stamp, machine::ZONE_LABEL};
use bigfleet_provider::protocol::{Kind, Token};
use bigfleet_shard::holdings::{Busy, Candidate, Domain, Ownership, is_bound};

use super::{Listing, Process, Shard};
use crate::provider::{Answer, Call};

/// How long a call without an answer may still arrive.
pub(crate) fn unanswered() -> Duration {
    bigfleet_shard::Options::default().unanswered()
}

/// What a process knows of a machine.
#[derive(Clone, Debug)]
pub struct Entry {
    /// As it was last seen, or as it will be.
    pub record: Machine,
    /// An action that is queued or under way.
    pub pending: Option<Pending>,
    /// A call without an answer.
    pub hold: Option<Hold>,
}

/// An action.
#[derive(Clone, Debug)]
pub struct Pending {
    kind: Kind,
    cluster: Option<ClusterId>,
    stamp: Option<Arc<Stamp>>,
    /// How far it is.
    pub stage: Stage,
}

impl Pending {
    /// All but when and by which call.
    pub(super) fn told(&self) -> (Kind, Option<&ClusterId>, Option<&Stamp>, bool) {
        let queued = self.stage == Stage::Queued;
        (self.kind, self.cluster.as_ref(), self.stamp.as_deref(), queued)
    }
}

impl Entry {
    /// Of the call that is under way or without an answer.
    pub(super) fn sequence(&self) -> Option<i64> {
        let sent = self.pending.as_ref().and_then(|pending| match pending.stage {
            Stage::Sent(sequence, _) => Some(sequence),
            Stage::Queued => None,
        });
        sent.or_else(|| self.hold.map(|hold| hold.sequence))
    }
}

/// How far an action is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// No worker has it.
    Queued,
    /// The call with this sequence number is under way, sent then.
    Sent(i64, Duration),
}

/// A call without an answer.
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    /// Where the machine was.
    pub start: MachineState,
    /// Its sequence number.
    pub sequence: i64,
    /// When it was sent.
    pub sent: Duration,
}

/// What a process decides about a machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Buys it, for such work.
    Create(Option<Arc<Stamp>>),
    /// Binds it to a cluster, for such work.
    Configure(ClusterId, Arc<Stamp>),
    /// Takes it from its cluster.
    Drain,
    /// Gives it back.
    Delete,
}

pub(super) fn home(machine: &Machine) -> Domain {
    Domain { key: ZONE_LABEL.to_owned(), value: machine.class.zone.clone() }
}

impl Process {
    pub(super) fn owns(&self, record: &Machine) -> bool {
        let cluster = record.cluster.as_ref();
        self.in_force.owns(&record.id, record.state, cluster, &record.class)
    }

    /// Forgets what is no longer ours and what nothing is under way on.
    pub(super) fn let_go(&mut self) {
        let keeps = |process: &Self, entry: &Entry| {
            entry.pending.is_some() || entry.hold.is_some() || process.owns(&entry.record)
        };
        let desk = std::mem::take(&mut self.desk);
        let (kept, left) = desk.into_iter().partition(|(_, entry)| keeps(self, entry));
        self.desk = kept;
        let left: BTreeMap<MachineId, Entry> = left;
        for (id, entry) in left {
            // It may draw on our share still: the next List, which would say so, is to come,
            // and one that has begun is older.
            self.touch(&id);
            self.note(&self.in_force.clone(), entry.record);
        }
    }

    /// Remembers a machine that is not ours, as far as it matters to us.
    fn note(&mut self, ownership: &Ownership, record: Machine) {
        let away = ownership.is_away(&record.id);
        let drawn = away || record.state != MachineState::Speculative;
        if away || (drawn && ownership.is_home(&record.class)) {
            self.neighbours.insert(record.id.clone(), record);
        } else {
            self.neighbours.remove(&record.id);
        }
    }

    fn touch(&mut self, machine: &MachineId) {
        if let Some(listing) = &mut self.listing {
            listing.touched.insert(machine.clone());
        }
    }

    fn end(&mut self, machine: &MachineId) {
        if let Some(entry) = self.desk.get_mut(machine) {
            entry.pending = None;
        }
        self.touch(machine);
        self.let_go();
    }

    fn may_begin(&self, entry: &Entry, cluster: Option<&ClusterId>) -> bool {
        self.is_open()
            && self.owns(&entry.record)
            && cluster.is_none_or(|cluster| self.in_force.holds(cluster))
    }

    /// What may be decided about a machine now.
    #[must_use]
    pub fn may_act(&self, machine: &MachineId, act: &Act) -> bool {
        let Some(entry) = self.desk.get(machine) else { return false };
        let (from, cluster) = match act {
            Act::Create(_) => (MachineState::Speculative, None),
            Act::Configure(cluster, _) => (MachineState::Idle, Some(cluster)),
            Act::Drain => (MachineState::Configured, None),
            Act::Delete => (MachineState::Idle, None),
        };
        entry.record.state == from
            && entry.pending.is_none()
            && entry.hold.is_none()
            && self.may_begin(entry, cluster)
    }

    /// Decides something.
    pub fn act(&mut self, machine: &MachineId, act: Act) {
        if !self.may_act(machine, &act) {
            return;
        }
        if act == Act::Delete && self.in_force.is_received(machine) {
            // It goes home as it is.
            self.unwanted.insert(machine.clone());
            return;
        }
        let Some(entry) = self.desk.get_mut(machine) else { return };
        let (kind, cluster, stamp) = match act {
            Act::Create(stamp) => (Kind::Create, None, stamp),
            Act::Configure(cluster, stamp) => (Kind::Configure, Some(cluster), Some(stamp)),
            Act::Drain => (Kind::Drain, entry.record.cluster.clone(), None),
            Act::Delete => (Kind::Delete, None, None),
        };
        entry.pending = Some(Pending { kind, cluster, stamp, stage: Stage::Queued });
    }

    /// A worker takes an action that is queued: the call, if it may still be sent.
    pub fn send(&mut self, shard: &str, machine: &MachineId, now: Duration) -> Option<Call> {
        let entry = self.desk.get(machine)?;
        let pending = entry.pending.as_ref().filter(|one| one.stage == Stage::Queued)?;
        let toward = pending.cluster.as_ref().filter(|_| pending.kind == Kind::Configure);
        if !self.may_begin(entry, toward) || entry.record.state != pending.kind.source() {
            self.end(machine);
            return None;
        }
        self.sequence += 1;
        let sequence = self.sequence;
        let token = Token::new(shard, self.epoch, sequence);
        let entry = self.desk.get_mut(machine)?;
        let pending = entry.pending.as_mut()?;
        pending.stage = Stage::Sent(sequence, now);
        entry.record.state = pending.kind.transitional();
        let bound = pending.kind == Kind::Configure;
        if bound {
            entry.record.cluster.clone_from(&pending.cluster);
        }
        if pending.stamp.is_some() {
            entry.record.stamp.clone_from(&pending.stamp);
        }
        let call = Call {
            token,
            kind: pending.kind,
            machine: machine.clone(),
            cluster: pending.cluster.clone().filter(|_| bound),
            stamp: pending.stamp.clone().filter(|_| bound),
        };
        self.touch(machine);
        Some(call)
    }

    /// A call is answered, or nobody answers. `truth`: what a Get says.
    pub fn called(&mut self, call: &Call, answer: Option<Answer>, truth: Option<&Machine>) {
        let Some(entry) = self.desk.get_mut(&call.machine) else { return };
        let sent = entry.pending.as_ref().and_then(|pending| match pending.stage {
            Stage::Sent(sequence, at) if sequence == call.token.sequence => Some(at),
            _ => None,
        });
        let Some(sent) = sent else { return };
        match answer {
            Some(Answer::Accepted(record)) => entry.record = *record,
            Some(Answer::Fenced) => self.latched = true,
            // Nothing happened: as the provider has it.
            Some(Answer::Refused) => {
                if let Some(record) = truth {
                    entry.record = record.clone();
                }
            }
            None => {
                let (start, sequence) = (call.kind.source(), call.token.sequence);
                entry.hold = Some(Hold { start, sequence, sent });
            }
        }
        self.end(&call.machine);
    }

    /// A List begins.
    pub fn begin_list(&mut self, now: Duration) {
        self.listing = Some(Listing {
            owned: self.in_force.clone(),
            key: self.in_force_key,
            revision: self.revision,
            began: now,
            records: None,
            touched: Default::default(),
        });
    }

    /// It is read.
    pub fn read(&mut self, records: Vec<Machine>) {
        if let Some(listing) = &mut self.listing {
            listing.records = Some(records);
        }
    }

    /// It is taken in. `over`: the call can no longer arrive, had it not been answered.
    pub fn merge(&mut self, over: impl Fn(&MachineId, &Hold, Duration) -> bool) {
        let Some(listing) = self.listing.take() else { return };
        if listing.revision == self.revision {
            self.neighbours.retain(|id, _| listing.touched.contains(id));
        }
        for record in listing.records.unwrap_or_default() {
            let id = record.id.clone();
            let known = self.desk.get(&id);
            let older = listing.touched.contains(&id)
                || known.is_some_and(|entry| {
                    let doubts =
                        |hold: &Hold| record.state == hold.start && !over(&id, hold, listing.began);
                    entry.pending.is_some() || entry.hold.as_ref().is_some_and(doubts)
                });
            let was_known = known.is_some();
            if older {
                continue;
            }
            let cluster = record.cluster.as_ref();
            let owned = listing.owned.owns(&id, record.state, cluster, &record.class);
            if !owned {
                self.note(&listing.owned, record.clone());
            } else if !self.owns(&record) && was_known {
                self.note(&self.in_force.clone(), record.clone());
            }
            if !self.owns(&record) {
                self.desk.remove(&id);
            } else if owned || (is_bound(record.state) && was_known) {
                self.desk.insert(id, Entry { record, pending: None, hold: None });
            }
        }
        self.listed = Some(listing.revision);
    }

    /// What is queued or under way, as far as it may keep a key.
    pub(super) fn under_way(&self, over: impl Fn(&MachineId, &Hold) -> bool) -> Vec<Busy> {
        let busy = |(id, entry): (&MachineId, &Entry)| {
            let home = home(&entry.record);
            if let Some(pending) = &entry.pending {
                let domain = (pending.kind != Kind::Drain).then_some(home);
                return Some(Busy { domain, cluster: pending.cluster.clone() });
            }
            let hold = entry.hold.filter(|hold| !over(id, hold))?;
            let domain = (hold.start != MachineState::Configured).then_some(home);
            Some(Busy { domain, cluster: entry.record.cluster.clone() })
        };
        self.desk.iter().filter_map(busy).collect()
    }
}

impl Shard {
    /// Machines whose action no worker has.
    #[must_use]
    pub fn queued(&self) -> Vec<MachineId> {
        let queued = |entry: &Entry| {
            entry.pending.as_ref().is_some_and(|pending| pending.stage == Stage::Queued)
        };
        let desk = self.process.iter().flat_map(|process| &process.desk);
        desk.filter(|(_, entry)| queued(entry)).map(|(machine, _)| machine.clone()).collect()
    }

    /// Machines that may be let go of.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let Some(process) = &self.process else { return Vec::new() };
        let ownership = &process.in_force;
        let quiet = process.desk.values().filter(|entry| {
            let machine = &entry.record;
            entry.pending.is_none()
                && entry.hold.is_none()
                && ownership.is_home(&machine.class)
                && !ownership.is_received(&machine.id)
                && !ownership.is_away(&machine.id)
                && process.owns(machine)
        });
        let candidate = |entry: &Entry| Candidate {
            id: entry.record.id.clone(),
            home: home(&entry.record),
            state: entry.record.state,
            class: entry.record.class.clone(),
            stamp: entry.record.stamp.clone(),
        };
        let within = self.within_the_share();
        let stays = |entry: &&Entry| {
            entry.record.state == MachineState::Speculative && !within(&entry.record.id)
        };
        quiet.filter(|entry| !stays(entry)).map(candidate).collect()
    }
}
