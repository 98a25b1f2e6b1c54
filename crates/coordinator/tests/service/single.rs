//! A replica without peers, in memory; it leads or follows as it is told.

use std::sync::{
    Mutex, RwLock,
    atomic::{AtomicBool, Ordering},
};

use bigfleet_coordinator::{
    service::{Joiner, LeaderHint, Leadership, Phase, Replica, ReplicaError, Snapshot},
    state::{Command, Effect, Refused, State},
};
use bigfleet_wire::v1alpha1::RaftStatusResponse;

pub(crate) const TERM: i64 = 7;

pub(crate) struct Single {
    pub(crate) state: RwLock<State>,
    pub(crate) phase: Mutex<Phase>,
    pub(crate) leadership: Mutex<Leadership>,
    /// No quorum: nothing is committed or confirmed.
    pub(crate) stuck: AtomicBool,
    /// No snapshot has been cut.
    pub(crate) bare: AtomicBool,
    pub(crate) joined: Mutex<Vec<Joiner>>,
}

pub(crate) fn hint() -> LeaderHint {
    LeaderHint { node_id: "node-2".into(), grpc_address: "node-2.example:7790".into() }
}

impl Single {
    pub(crate) fn new() -> Self {
        let single = Self {
            state: RwLock::default(),
            phase: Mutex::new(Phase::Open),
            leadership: Mutex::new(Leadership::Leader { term: TERM }),
            stuck: AtomicBool::new(false),
            bare: AtomicBool::new(false),
            joined: Mutex::default(),
        };
        single.apply(&Command::InitFleet { fleet_id: "u.00000000".into() }).expect("a fleet");
        single
    }

    pub(crate) fn apply(&self, command: &Command) -> Result<Effect, Refused> {
        let mut state = self.state.write().unwrap();
        let index = state.applied_index() + 1;
        state.apply(index, command)
    }

    pub(crate) fn payload(&self) -> String {
        String::from_utf8(self.state.read().unwrap().to_payload()).unwrap()
    }

    pub(crate) fn follow(&self, leader: Option<LeaderHint>) {
        *self.leadership.lock().unwrap() = Leadership::Follower { leader };
    }

    async fn quorum(&self) -> Result<(), ReplicaError> {
        if self.stuck.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        match self.leadership() {
            Leadership::Leader { .. } => Ok(()),
            Leadership::Follower { leader } => Err(ReplicaError::NotLeader(leader)),
        }
    }
}

impl Replica for Single {
    fn phase(&self) -> Phase {
        self.phase.lock().unwrap().clone()
    }

    fn leadership(&self) -> Leadership {
        self.leadership.lock().unwrap().clone()
    }

    async fn propose(&self, command: Command) -> Result<Result<Effect, Refused>, ReplicaError> {
        self.quorum().await?;
        Ok(self.apply(&command))
    }

    async fn barrier(&self) -> Result<(), ReplicaError> {
        self.quorum().await
    }

    fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.read().unwrap())
    }

    fn status(&self) -> RaftStatusResponse {
        RaftStatusResponse { node_id: "node-1".into(), term: TERM, ..RaftStatusResponse::default() }
    }

    async fn join(&self, joiner: Joiner) -> Result<(), ReplicaError> {
        self.quorum().await?;
        self.joined.lock().unwrap().push(joiner);
        Ok(())
    }

    async fn remove_server(&self, node_id: String) -> Result<(), ReplicaError> {
        self.quorum().await?;
        match node_id.as_str() {
            "node-0" => Err(ReplicaError::Refused("node-0 is an initial ordinal".into())),
            "node-9" => Ok(()),
            _ => Err(ReplicaError::NotFound(format!("{node_id} is no member"))),
        }
    }

    async fn snapshot(&self) -> Result<Option<Snapshot>, ReplicaError> {
        if self.bare.load(Ordering::SeqCst) {
            return Ok(None);
        }
        let state = self.state.read().unwrap().to_payload().into();
        Ok(Some(Snapshot { meta_json: br#"{"Index":1}"#.to_vec(), state }))
    }
}
