//! Deliberate defects that take more than a line (provider chapter §11.1). In a build
//! without the feature `mutants` nothing here is ever reached.

use std::{
    collections::{HashMap, HashSet},
    hint::black_box,
    net::SocketAddr,
    sync::{
        Arc, LazyLock, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bigfleet_model::{MachineId, MachineState};
use bigfleet_provider::{
    mutant::{Mutant, active},
    protocol::{BadArgument, Kind, OperationId},
};
use bigfleet_wire::v1alpha1 as wire;
use tokio::time::sleep;
use tonic::Code;

use crate::{
    book::{Books, Draft},
    cloud::Cloud,
    record::Record,
    tracker::Tracker,
};

/// A blob from here on is a large one.
pub(crate) const BIG_BLOB: usize = 1 << 20;

fn count() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    COUNT.fetch_add(1, Ordering::Relaxed)
}

/// Records that no provider may show.
pub(crate) fn misshape(message: &mut wire::Machine) {
    let host = |text: &str| wire::HostRef { provider: text.to_owned(), r#ref: text.to_owned() };
    if active(Mutant::HostAtSpeculative) && message.state() == wire::MachineState::Speculative {
        message.host = Some(host("ghost"));
    }
    if active(Mutant::NoHostAtIdle) && message.state() == wire::MachineState::Idle {
        message.host = None;
    }
    if let Some(host) = message.host.as_mut().filter(|_| active(Mutant::HostProviderChanges)) {
        host.provider = format!("{}-{}", host.provider, count());
    }
    if active(Mutant::TypeInLabels) {
        let instance_type = std::mem::take(&mut message.instance_type);
        message.labels.insert("instance-type".to_owned(), instance_type);
    }
    if active(Mutant::ZoneEmpty) {
        message.zone.clear();
    }
    if active(Mutant::CapacityUnset) {
        message.capacity_type = 0;
    }
    if active(Mutant::PriceNan) {
        message.price_per_hour = f64::NAN;
    }
    if active(Mutant::ProbabilityTooHigh) {
        message.interruption_probability = 1.5;
    }
    if active(Mutant::SpotWithoutRisk) && message.capacity_type() == wire::CapacityType::Spot {
        message.interruption_probability = 0.0;
    }
    if let Some(resources) = message.resources.as_mut().filter(|_| active(Mutant::QuantityGarbled))
    {
        resources.resources.insert("cpu".to_owned(), "abc".to_owned());
    }
    if active(Mutant::FailedTextChanges) && !message.last_error.is_empty() {
        message.last_error = format!("{} ({})", message.last_error, count());
    }
}

/// The ack of a Configure that is neither before nor after.
pub(crate) fn tear(kind: Kind, message: &mut wire::Machine) {
    if kind == Kind::Configure && active(Mutant::TornSnapshot) {
        message.set_state(wire::MachineState::Configured);
        message.cluster.clear();
    }
}

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
    /// What a transition shows before it ends well.
    pub(crate) async fn detour(&self, id: &MachineId, kind: Kind) {
        if kind != Kind::Create {
            return;
        }
        if active(Mutant::CreateNeverEnds) {
            std::future::pending::<()>().await;
        }
        if active(Mutant::CreateShowsFailed) {
            self.show(id, MachineState::Creating, MachineState::Failed, "for a moment").await;
            sleep(Duration::from_millis(60)).await;
            self.show(id, MachineState::Failed, MachineState::Creating, "").await;
        }
    }

    /// What a machine does after it has settled.
    pub(crate) async fn aftermath(&self, id: &MachineId, kind: Kind, operation: &OperationId) {
        if active(Mutant::SlotLeaked) && kind == Kind::Delete {
            let slot = MachineId::from(format!("{id}-{operation}"));
            let decide =
                |books: &Books| ((), invent(books, &slot).map_or_else(Draft::default, Draft::put));
            self.write(&slot, decide).await;
        }
        if active(Mutant::SettledFlaps) {
            let (settled, other) = match kind {
                Kind::Configure => (MachineState::Configured, MachineState::Draining),
                Kind::Create | Kind::Drain => (MachineState::Idle, MachineState::Deleting),
                Kind::Delete => return,
            };
            for _ in 0..20 {
                sleep(Duration::from_millis(80)).await;
                self.show(id, settled, other, "").await;
                sleep(Duration::from_millis(60)).await;
                self.show(id, other, settled, "").await;
            }
        }
    }

    async fn show(&self, id: &MachineId, from: MachineState, to: MachineState, error: &str) {
        let decide = |books: &Books| {
            let known = books.machines.get(id).filter(|record| record.machine.state == from);
            let Some(record) = known else { return ((), Draft::default()) };
            let mut next = Record::clone(record);
            next.machine.state = to;
            next.machine.last_error = error.to_owned();
            ((), Draft::put(next))
        };
        self.write(id, decide).await;
    }
}
