//! What the rest of the process holds of consensus.

use std::{
    path::PathBuf,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use super::{
    entropy::Entropy,
    message::{CallError, Envelope, Response, Transport},
    network::FleetCell,
    peers::{Peers, Status},
    propose::{self, Pending},
    running::Running,
    state_store::blocking,
    timers::{Compaction, Timers},
    types::Member,
};
use crate::{
    log::{DataDir, Disk, LogError, Observer},
    state::State,
};

/// How a replica takes part.
#[derive(Debug, Clone)]
pub struct Config {
    /// `--id`; with `--join-addr` it ends in `-<ordinal>`.
    pub node_id: String,
    /// `--raft-advertise`.
    pub raft_address: String,
    /// `--grpc-advertise`.
    pub grpc_address: String,
    /// The highest command kind that this version can apply.
    pub max_kind: u32,
    /// `--bootstrap`.
    pub bootstrap: bool,
    /// `--force-bootstrap`.
    pub force_bootstrap: bool,
    /// `--initial-replicas`.
    pub initial_replicas: usize,
    /// Scaled by `--raft-timer-scale`.
    pub timers: Timers,
    /// When the log is cut.
    pub compaction: Compaction,
}

impl Config {
    pub(super) fn member(&self) -> Member {
        Member {
            node_id: self.node_id.clone(),
            raft_address: self.raft_address.clone(),
            grpc_address: self.grpc_address.clone(),
            max_kind: self.max_kind,
        }
    }

    /// `<name>-<ordinal>`, split.
    pub(super) fn ordinal(&self) -> Option<(&str, usize)> {
        let (name, ordinal) = self.node_id.rsplit_once('-')?;
        Some((name, ordinal.parse().ok()?))
    }

    /// Node ids of the replicas that a fleet opens with.
    pub(super) fn initial_ids(&self) -> Vec<String> {
        let Some((name, _)) = self.ordinal() else { return Vec::new() };
        (0..self.initial_replicas).map(|ordinal| format!("{name}-{ordinal}")).collect()
    }
}

/// The world around a replica.
pub struct World {
    /// Where its data directory is.
    pub disk: Arc<dyn Disk>,
    /// `--data-dir`.
    pub root: PathBuf,
    /// To the consensus port of members.
    pub transport: Arc<dyn Transport>,
    /// The addresses behind `--join-addr`, if it is set.
    pub peers: Option<Arc<dyn Peers>>,
    /// Randomness.
    pub entropy: Arc<Entropy>,
    /// A thread for the log; without, writes happen in the caller's turn.
    pub log_thread: bool,
    /// Told how long each fsynced batch of that thread took.
    pub observe_fsync: Option<Observer>,
}

/// Why a replica cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its data directory cannot be used.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A flag does not fit the others.
    #[error("{0}")]
    Config(String),
    /// Anything else.
    #[error("consensus cannot start: {0}")]
    Consensus(String),
}

/// Who leads, as far as this replica knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Leadership {
    /// This replica, under this coordinator term, and it may serve.
    Leader {
        /// Fences what this leadership says.
        term: i64,
    },
    /// Another, with its node id and service address.
    Follower {
        /// Node id of the leader.
        leader_id: String,
        /// Where it serves.
        leader_address: String,
    },
    /// Nobody that is known of.
    #[default]
    None,
}

/// A replica. Clones are the same one.
#[derive(Clone)]
pub struct Consensus {
    pub(super) shared: Arc<Shared>,
    _tasks: Arc<JoinSet<()>>,
}

pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) dir: DataDir,
    pub(super) world: World,
    pub(super) fleet: FleetCell,
    pub(super) superseded: RwLock<Option<String>>,
    pub(super) running: RwLock<Option<Arc<Running>>>,
    /// Proposals share it, membership changes have it alone: a command kind is
    /// checked against the members that it will be appended under.
    pub(super) gate: tokio::sync::RwLock<()>,
    /// Taken while a fleet is entered, so that a replica is in one.
    pub(super) entering: tokio::sync::Mutex<()>,
    /// Leadership is being handed away: this replica no longer serves.
    pub(super) leaving: AtomicBool,
    pub(super) low_space: AtomicBool,
    pub(super) fatal: watch::Sender<Option<String>>,
    pub(super) queue: mpsc::UnboundedSender<Pending>,
    pub(super) leadership: watch::Sender<Leadership>,
}

impl Consensus {
    /// Opens the data directory and takes part.
    pub async fn start(config: Config, world: World) -> Result<Self, StartError> {
        if world.peers.is_some() {
            if config.ordinal().is_none() {
                let problem = "--id must end in -<ordinal> with --join-addr";
                return Err(StartError::Config(problem.to_owned()));
            }
            if config.initial_replicas < 3 {
                let problem = "--initial-replicas is below 3; a single replica has no --join-addr";
                return Err(StartError::Config(problem.to_owned()));
            }
        }
        let dir = DataDir::lock(world.disk.clone(), &world.root)?;
        let (queue, proposals) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            config,
            dir,
            world,
            fleet: FleetCell::default(),
            superseded: RwLock::default(),
            running: RwLock::default(),
            gate: tokio::sync::RwLock::default(),
            entering: tokio::sync::Mutex::default(),
            leaving: AtomicBool::new(false),
            low_space: AtomicBool::new(false),
            fatal: watch::channel(None).0,
            queue,
            leadership: watch::channel(Leadership::None).0,
        });
        shared.open().await?;
        let mut tasks = JoinSet::new();
        tasks.spawn(propose::pump(Arc::clone(&shared), proposals));
        tasks.spawn(Arc::clone(&shared).tend());
        tasks.spawn(Arc::clone(&shared).compact());
        tasks.spawn(Arc::clone(&shared).arrange());
        tasks.spawn(Arc::clone(&shared).reconcile());
        tasks.spawn(Arc::clone(&shared).look_for_successors());
        Ok(Self { shared, _tasks: Arc::new(tasks) })
    }

    /// Answers a peer on the consensus port.
    pub async fn answer(&self, envelope: Envelope) -> Result<Response, CallError> {
        self.shared.answer(envelope).await
    }

    /// Set once, when this process must exit with 1.
    #[must_use]
    pub fn fatal(&self) -> watch::Receiver<Option<String>> {
        self.shared.fatal.subscribe()
    }

    /// Who leads. A leader that reaches no quorum within the lease, or hands
    /// over, is none.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        self.shared.observe()
    }

    /// Told at every change of [`Consensus::leadership`].
    #[must_use]
    pub fn watch_leadership(&self) -> watch::Receiver<Leadership> {
        self.shared.leadership.subscribe()
    }

    /// Whether clients may be sent here: a leader is observed and the disk has room.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.leadership() != Leadership::None && !self.shared.low_space.load(Ordering::Relaxed)
    }

    /// Size of the newest snapshot's state on disk; 0 while there is none.
    #[must_use]
    pub fn snapshot_bytes(&self) -> u64 {
        self.shared.running().map_or(0, |running| running.state.snapshot_bytes())
    }

    /// The state with everything acknowledged before this call, on the leader.
    ///
    /// No quorum round is needed: under a valid lease nobody else can have
    /// committed anything, and a commit is acknowledged only after it was
    /// applied here.
    pub fn read<R>(&self, look: impl FnOnce(&State) -> R) -> Option<R> {
        self.shared.serving()?;
        Some(look(&self.shared.running()?.state.read().state))
    }

    /// The state as far as this replica has applied it; for metrics only.
    pub fn peek<R>(&self, look: impl FnOnce(&State) -> R) -> Option<R> {
        Some(look(&self.shared.running()?.state.read().state))
    }

    /// The newest state as the two artefacts of a backup, on the leader.
    #[must_use]
    pub fn snapshot(&self) -> Option<crate::log::StoredSnapshot> {
        self.shared.serving()?;
        let cut = self.shared.running()?.state.cut()?;
        blocking(|| cut.into_snapshot()).ok()
    }

    /// `RaftStatus`.
    #[must_use]
    pub fn status(&self) -> Status {
        self.shared.status()
    }

    /// Hands leadership over, then stops. Waits for a successor at most four
    /// election timeouts.
    pub async fn shutdown(&self) {
        self.shared.hand_over().await;
        if let Some(running) = self.shared.running() {
            let _ = running.raft.shutdown().await;
        }
    }

    /// Gives leadership away and stays: the disk is almost full, say.
    pub async fn hand_over(&self) {
        self.shared.hand_over().await;
    }
}

impl Shared {
    pub(super) fn running(&self) -> Option<Arc<Running>> {
        self.running.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_running(&self, running: Option<Arc<Running>>) {
        *self.running.write().unwrap_or_else(PoisonError::into_inner) = running;
    }

    pub(super) fn superseded_by(&self) -> Option<String> {
        self.superseded.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn fail(&self, why: String) {
        self.fatal.send_if_modified(|fatal| {
            let first = fatal.is_none();
            if first {
                tracing::error!(reason = why, "this replica cannot go on");
                *fatal = Some(why);
            }
            first
        });
    }
}
