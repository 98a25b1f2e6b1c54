//! What was received, what stands, and what follows from it: the rules of nodes in one place.
//!
//! Frames and instructions are entered in the order in which they were received, before anything
//! is coalesced. A machine's worker then asks again and again for the next [`Step`] until none is
//! left; a step follows from how things stand now, so that frames which came meanwhile count and
//! those they replaced are never written.

mod frames;
mod instructions;
mod plan;
mod reclaim;
mod resume;
mod sweep;
mod watch;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use bigfleet_crds::{UpcomingNodePhase as Phase, upcoming_node_name};

use super::effect::{Effect, Key};
use super::identity::{Clues, NodeIndex};
use super::mirror::Mirror;
use super::uncordon::{Order, Received};
use super::upcoming::{Existing, Wanted};
use super::view::UpcomingView;
use crate::dispatch::Moment;
use instructions::Instruction;
pub(crate) use plan::Step;
use reclaim::{Draining, Part};

/// The state behind [`Nodes`](super::Nodes).
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Whether Nodes of departed machines are deleted.
    cleanup: bool,
    nodes: NodeIndex,
    objects: Mirror<UpcomingView>,
    records: HashMap<Key, Record>,
    by_provider_id: HashMap<Arc<str>, BTreeSet<Key>>,
    by_node_name: HashMap<Arc<str>, BTreeSet<Key>>,
    drains: HashMap<Arc<str>, Draining>,
    instructions: BTreeMap<u64, Instruction>,
    /// When each instruction of this process came, while a Node carries it.
    instructed: HashMap<Arc<str>, Order>,
    departed: HashMap<Key, Departed>,
    /// The live session.
    session: Option<u64>,
    sessions: u64,
    /// The marker of the live session was seen.
    resynced: bool,
    serial: u64,
    effects: Vec<Effect>,
}

/// One machine.
#[derive(Debug, Default)]
struct Record {
    machine_id: Option<Arc<str>>,
    node_name: Option<Arc<str>>,
    provider_id: Option<Arc<str>>,
    want: Want,
    received: Received,
    /// The last session in which any frame of it arrived.
    seen: u64,
    /// The session whose marker found it without a frame.
    prune: Option<u64>,
    parts: VecDeque<Part>,
    /// The Node whose drain ended, until its deadline is removed.
    unmark: Option<Arc<str>>,
    /// When a frame came whose writes are not done yet.
    unanswered: Option<Moment>,
    /// Something was written for it.
    wrote: bool,
    ready_since: Option<Moment>,
    told_not_ready: bool,
}

/// What is to become of a machine's object.
#[derive(Debug, Default, PartialEq)]
enum Want {
    /// Nothing was asked in this process: it stays as it is.
    #[default]
    AsItIs,
    /// This.
    Object(Wanted),
    /// None; `sure` once a delete has been answered.
    Absent { sure: bool },
}

/// A machine that left; its Node is deleted once its kubelet is dead.
#[derive(Debug)]
struct Departed {
    machine_id: Arc<str>,
    node_name: Option<Arc<str>>,
    provider_id: Option<Arc<str>>,
    /// Since when no Node is linked to it any more.
    unlinked: Option<Moment>,
}

impl Departed {
    /// Of which nothing is known but its id.
    fn of(machine_id: Arc<str>) -> Self {
        Self { machine_id, node_name: None, provider_id: None, unlinked: None }
    }

    fn clues(&self) -> Clues<'_> {
        Clues {
            machine_id: &self.machine_id,
            node_name: self.node_name.as_deref().unwrap_or_default(),
            provider_id: self.provider_id.as_deref().unwrap_or_default(),
        }
    }
}

impl Record {
    fn clues(&self) -> Option<Clues<'_>> {
        Some(Clues {
            machine_id: self.machine_id.as_deref()?,
            node_name: self.node_name.as_deref().unwrap_or_default(),
            provider_id: self.provider_id.as_deref().unwrap_or_default(),
        })
    }
}

impl Ledger {
    /// What is to be done at once.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// A session began: what was said before its frames counts as said in an earlier one.
    pub(crate) fn session_began(&mut self) {
        self.sessions += 1;
        self.session = Some(self.sessions);
        self.resynced = false;
        self.repeat_final_acks();
    }

    /// The session ended, and with it its prune.
    pub(crate) fn session_ended(&mut self) {
        self.session = None;
    }

    /// The shard has replayed every machine of this cluster.
    pub(crate) fn resync(&mut self) {
        let Some(session) = self.session else { return };
        if std::mem::replace(&mut self.resynced, true) {
            return;
        }
        for (key, record) in &mut self.records {
            if record.seen != session {
                record.prune = Some(session);
                self.effects.push(Effect::Due { key: key.clone(), urgent: false });
            }
        }
        self.miss_departed(session);
    }

    /// Nodes of machines that the replay does not name and that have no object any more: an
    /// earlier process ended after it had deleted the object and before their kubelet was dead.
    fn miss_departed(&mut self, session: u64) {
        if !self.cleanup {
            return;
        }
        let left = |machine: &Arc<str>| {
            let key: Key = upcoming_node_name(machine).into();
            let seen = self.records.get(&key).is_some_and(|record| record.seen == session);
            // An object that stands is pruned, and then its machine has departed.
            let known =
                seen || self.objects.get(&key).is_some() || self.departed.contains_key(&key);
            (!known).then(|| (key, Departed::of(machine.clone())))
        };
        let machines = self.nodes.iter().filter_map(|node| node.machine.as_ref());
        let left: Vec<_> = machines.filter_map(left).collect();
        self.departed.extend(left);
    }

    /// Nothing is known but the session. Nodes of departed machines are deleted if `cleanup`.
    pub(crate) fn reset(&mut self, cleanup: bool) {
        let (session, sessions, resynced) = (self.session, self.sessions, self.resynced);
        *self = Self { cleanup, session, sessions, resynced, ..Self::default() };
    }

    /// Drains that run.
    pub(crate) fn draining(&self) -> usize {
        self.drains.len()
    }

    /// The object as the frames of this process left it, written or not; else as it stands.
    fn existing(&self, key: &str) -> Option<Existing> {
        let of = |phase: Option<Phase>, error: Option<&str>| {
            let failed = phase == Some(Phase::Failed);
            let drain_failed = failed && error.is_some_and(is_drain_error);
            Some(Existing { phase, drain_failed })
        };
        match self.records.get(key).map(|record| &record.want) {
            Some(Want::Object(wanted)) => of(Some(wanted.phase), wanted.last_error.as_deref()),
            Some(Want::Absent { .. }) => None,
            Some(Want::AsItIs) | None => {
                let object = self.objects.get(key)?;
                let error = object.status.as_ref().and_then(|status| status.last_error.as_deref());
                of(object.phase(), error)
            }
        }
    }

    fn phase(&self, key: &str) -> Option<Phase> {
        self.existing(key).and_then(|existing| existing.phase)
    }

    /// Changes the phase of an object that is there or will be; creates none.
    fn set_phase(&mut self, key: &str, phase: Phase, last_error: Option<Arc<str>>) {
        if self.existing(key).is_none() {
            return;
        }
        let Some(record) = self.records.get_mut(key) else { return };
        let spec = match &record.want {
            Want::Object(wanted) => wanted.spec.clone(),
            Want::AsItIs | Want::Absent { .. } => None,
        };
        record.want = Want::Object(Wanted { spec, phase, last_error });
    }

    fn due(&mut self, key: &Key, urgent: bool) {
        self.effects.push(Effect::Due { key: key.clone(), urgent });
    }
}

fn is_drain_error(text: &str) -> bool {
    text.starts_with(super::drain::DRAIN_ERROR)
}
