//! A shard that shares its provider with others (§14; coordinator chapter §8, §9): the
//! shell around [`crate::holdings`]. What is ours is in force here, for whoever asks on
//! the way of a machine through the shard; a shard with a provider of its own has none
//! of this.
//!
//! Less is in force before it is on disk, more only after: whatever a crash leaves, no
//! machine is acted on by two.

mod announce;
mod demand;
mod keep;
mod machines;
mod neighbours;
mod pools;
mod quota;
mod release;
mod side;
mod tend;

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use bigfleet_model::{ClusterId, Machine, MachineId};
use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use tokio::{
    sync::watch,
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

pub(crate) use announce::{NotStrict, announce};
pub(crate) use neighbours::Neighbours;
pub(crate) use quota::Quota;
pub use side::{Answered, SharedSide};
pub(crate) use tend::tend;

use crate::{
    holdings::{Attempt, Holdings, Opening, Ownership, TransferId},
    supply::Supply,
};

/// After so long a silence the shard goes on with its file, however few reports it was.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// What a shard that shares its provider is started with.
pub struct Sharing {
    /// Where holdings are kept; none to keep them in memory, for tests.
    pub file: Option<PathBuf>,
    /// What the file says.
    pub holdings: Holdings,
    /// The provider, as the process before this one would call it: it must be refused.
    pub predecessor: Arc<dyn Supply>,
}

/// What is ours now.
#[derive(Debug, Default)]
pub(crate) struct InForce {
    pub(crate) ownership: Ownership,
    /// Rises with every change.
    pub(crate) revision: u64,
}

impl InForce {
    /// Whether the shard may act on a machine of this record.
    pub(crate) fn owns(&self, record: &Machine) -> bool {
        self.ownership.owns(&record.id, record.state, record.cluster.as_ref(), &record.class)
    }
}

/// What a cluster may expect of this shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Serving {
    /// Everything.
    Yes,
    /// It is ours, but its machines have not been read since.
    TakenOver,
    /// It is another shard's, or nobody's yet.
    No,
}

/// When something was first seen so, by this process.
#[derive(Debug, Default)]
struct Since {
    releasing: Option<Instant>,
    out: HashMap<TransferId, Instant, RandomState>,
    received: HashMap<(TransferId, MachineId), Instant, RandomState>,
    settled: Option<Instant>,
}

/// Everything that shared scope adds to a shard.
pub(crate) struct Shared {
    file: Option<PathBuf>,
    /// On disk.
    holdings: ArcSwap<Holdings>,
    in_force: ArcSwap<InForce>,
    /// Whoever changes holdings, one at a time.
    writer: tokio::sync::Mutex<()>,
    /// Since which revision a cluster is ours.
    gained: Mutex<HashMap<ClusterId, u64, RandomState>>,
    /// Since which revision all domains of ours are.
    domains_since: AtomicU64,
    /// The revision in force when the last full List that was merged began.
    listed: Mutex<Option<u64>>,
    /// Any of the above changed.
    changes: watch::Sender<u64>,
    /// The provider has answered this process's epoch.
    announced: AtomicBool,
    /// The coordinator has answered a report, or was asked often enough.
    reported: AtomicBool,
    opening: Mutex<Opening>,
    /// When the process began, or a coordinator last named itself.
    silent_since: Mutex<Instant>,
    /// A write failed: the process must end.
    broken: CancellationToken,
    lost_clusters: Mutex<Vec<ClusterId>>,
    /// Who has clusters whose operators are here, as the coordinator said last.
    elsewhere: Mutex<HashMap<ClusterId, String, RandomState>>,
    neighbours: Mutex<Neighbours>,
    quota: Mutex<Quota>,
    /// Received machines that would be released, were they ours for good.
    unwanted: Mutex<HashSet<MachineId, RandomState>>,
    since: Mutex<Since>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(file: Option<PathBuf>, holdings: Holdings) -> Self {
        let ownership = Ownership::of(&holdings);
        let clusters = holdings.held().into_iter().flat_map(|held| held.clusters.iter().cloned());
        let gained = clusters.map(|cluster| (cluster, 0)).collect();
        Self {
            file,
            in_force: ArcSwap::from_pointee(InForce { ownership, revision: 0 }),
            holdings: ArcSwap::from_pointee(holdings),
            writer: tokio::sync::Mutex::default(),
            gained: Mutex::new(gained),
            domains_since: AtomicU64::new(0),
            listed: Mutex::default(),
            changes: watch::Sender::new(0),
            announced: AtomicBool::new(false),
            reported: AtomicBool::new(false),
            opening: Mutex::default(),
            silent_since: Mutex::new(Instant::now()),
            broken: CancellationToken::new(),
            lost_clusters: Mutex::default(),
            elsewhere: Mutex::default(),
            neighbours: Mutex::default(),
            quota: Mutex::default(),
            unwanted: Mutex::default(),
            since: Mutex::default(),
        }
    }

    /// What is ours now.
    pub(crate) fn in_force(&self) -> Arc<InForce> {
        self.in_force.load_full()
    }

    /// Rises whenever more or less is ours.
    pub(crate) fn revision(&self) -> u64 {
        self.in_force.load().revision
    }

    /// Whether anything may be done to machines: the provider refuses our
    /// predecessors, and the coordinator was asked first.
    pub(crate) fn is_open(&self) -> bool {
        self.announced() && self.reported.load(Ordering::Acquire)
    }

    /// The provider has answered this process's epoch: nothing of an earlier one arrives.
    pub(crate) fn announced(&self) -> bool {
        self.announced.load(Ordering::Acquire)
    }

    /// A report was answered, or came to nothing.
    fn attempted(&self, attempt: Attempt) {
        if attempt == Attempt::Named {
            *lock(&self.silent_since) = Instant::now();
        }
        self.open(attempt == Attempt::Answered, |opening| opening.attempted(attempt));
    }

    /// Opens after too long a silence.
    fn follow_silence(&self) {
        if lock(&self.silent_since).elapsed() >= LONGEST_WAIT {
            self.open(false, Opening::give_up);
        }
    }

    fn open(&self, answered: bool, change: impl FnOnce(&mut Opening)) {
        let mut opening = lock(&self.opening);
        change(&mut opening);
        let opens = opening.is_open() && !self.reported.swap(true, Ordering::AcqRel);
        if opens && !answered {
            tracing::warn!("no coordinator answers: going on with what the data directory says");
        }
    }

    /// A full List that began under this revision is merged.
    pub(crate) fn set_listed(&self, revision: u64) {
        *lock(&self.listed) = Some(revision);
        self.quota().recount();
        self.changed();
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Whether a full List has told of all domains that are ours: before that nobody
    /// knows what is drawn on their share.
    fn knows_domains(&self) -> bool {
        let since = self.domains_since.load(Ordering::Acquire);
        lock(&self.listed).is_some_and(|listed| listed >= since)
    }

    /// What a cluster may expect.
    pub(crate) fn serving(&self, cluster: &ClusterId) -> Serving {
        let Some(gained) = lock(&self.gained).get(cluster).copied() else { return Serving::No };
        let listed = *lock(&self.listed);
        if listed.is_some_and(|listed| listed >= gained) {
            Serving::Yes
        } else {
            Serving::TakenOver
        }
    }

    /// Resolves once a cluster is served.
    pub(crate) async fn served(&self, cluster: &ClusterId) {
        let mut changes = self.changes.subscribe();
        // The sender lives as long as we do.
        drop(changes.wait_for(|_| self.serving(cluster) == Serving::Yes).await);
    }

    /// Clusters lost since the last call.
    pub(crate) fn take_lost_clusters(&self) -> Vec<ClusterId> {
        std::mem::take(&mut *lock(&self.lost_clusters))
    }

    /// What the last Lists said of machines that are not ours.
    pub(crate) fn neighbours(&self) -> MutexGuard<'_, Neighbours> {
        lock(&self.neighbours)
    }

    /// A received machine would be released: it goes home instead.
    pub(crate) fn unwanted(&self, machine: &MachineId) {
        lock(&self.unwanted).insert(machine.clone());
    }
}
