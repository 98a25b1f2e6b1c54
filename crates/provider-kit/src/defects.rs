//! Deliberate defects that take more than a line (provider chapter §11.1). In a build
//! without the feature `mutants` nothing here is ever reached.

use std::{
    collections::{HashMap, HashSet},
    hint::black_box,
    net::SocketAddr,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use bigfleet_model::{MachineId, MachineState};
use bigfleet_provider::{
    mutant::{Mutant, active},
    protocol::{BadArgument, Kind, OperationId},
};
use tonic::Code;

use crate::{
    book::{Books, Draft},
    cloud::Cloud,
    record::Record,
    tracker::Tracker,
};

/// A blob from here on is a large one.
pub(crate) const BIG_BLOB: usize = 1 << 20;

/// Another code for a bad argument.
pub(crate) fn argument_code(argument: &BadArgument) -> Code {
    match argument.field {
        "machine_id" | "id" if active(Mutant::EmptyIdNotFound) => Code::NotFound,
        "grace_period_seconds" if active(Mutant::NegativeGraceFenced) => Code::FailedPrecondition,
        _ => Code::InvalidArgument,
    }
}

static FENCED: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

/// Remembers a machine that a stale call named.
pub(crate) fn fenced(machine: &str) {
    if active(Mutant::ReadsFenced) {
        FENCED.lock().unwrap_or_else(PoisonError::into_inner).insert(machine.to_owned());
    }
}

/// Whether reads of it are refused.
pub(crate) fn is_read_fenced(machine: &str) -> bool {
    active(Mutant::ReadsFenced)
        && FENCED.lock().unwrap_or_else(PoisonError::into_inner).contains(machine)
}

type Connections = HashMap<(MachineId, Kind), SocketAddr>;
static CONNECTIONS: LazyLock<Mutex<Connections>> = LazyLock::new(Mutex::default);

/// Remembers whose operation it is.
pub(crate) fn connected(machine: &MachineId, kind: Kind, peer: Option<SocketAddr>) {
    if let Some(peer) = peer.filter(|_| active(Mutant::KeyPerConnection)) {
        let mut connections = CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
        connections.insert((machine.clone(), kind), peer);
    }
}

/// Whether a replay gets an id of its own.
pub(crate) fn forgets(machine: &MachineId, kind: Kind, peer: Option<SocketAddr>) -> bool {
    let other = || {
        let connections = CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
        connections.get(&(machine.clone(), kind)).copied() != peer
    };
    active(Mutant::NewIdPerRetry) || (active(Mutant::KeyPerConnection) && other())
}

/// What a refused call changes all the same.
pub(crate) fn rejected(record: &Record, draft: Draft) -> Draft {
    let mut next = record.clone();
    if active(Mutant::RejectionMoves) {
        next.machine.state = MachineState::Failed;
        next.machine.last_error = "a refused call".to_owned();
    } else if active(Mutant::RejectionUnbinds) && next.machine.cluster.is_some() {
        next.machine.cluster = None;
        next.machine.shard_metadata.clear();
    } else {
        return draft;
    }
    Draft { advance: draft.advance, ..Draft::put(next) }
}

/// A machine that nobody knew, made of one that somebody knows.
pub(crate) fn invent(books: &Books, id: &MachineId) -> Option<Record> {
    let slot = |record: &&Arc<Record>| record.machine.state == MachineState::Speculative;
    let mut record = Record::clone(books.machines.values().find(slot)?);
    record.machine.id = id.clone();
    Some(record)
}

/// Compares every record with every other.
pub(crate) fn square(records: &[Arc<Record>]) {
    if active(Mutant::ListQuadratic) {
        for one in records {
            for other in records {
                black_box(*one.machine.class == *other.machine.class);
                black_box(one.machine.id.to_string() == other.machine.id.to_string());
            }
        }
    }
}

impl<C: Cloud> Tracker<C> {
    /// What a cycle leaves behind.
    pub(crate) async fn aftermath(&self, id: &MachineId, kind: Kind, operation: &OperationId) {
        if active(Mutant::SlotLeaked) && kind == Kind::Delete {
            let slot = MachineId::from(format!("{id}-{operation}"));
            let decide =
                |books: &Books| ((), invent(books, &slot).map_or_else(Draft::default, Draft::put));
            self.write(&slot, decide).await;
        }
    }
}
