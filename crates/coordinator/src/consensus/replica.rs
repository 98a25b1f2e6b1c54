//! [`Consensus`] as the service sees it.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bigfleet_wire::v1alpha1::RaftStatusResponse;

use super::{
    handle::{Consensus, Leadership},
    peers::{self, MembershipError},
    propose::ProposeError,
};
use crate::{
    log::SnapshotMeta,
    service::{self, Joiner, LeaderHint, Replica, ReplicaError, Snapshot},
    state::{Command, Effect, Refused, State},
};

/// A commit that takes longer: outcome unknown. The caller's deadline may be shorter.
const COMMIT: Duration = Duration::from_secs(5);

impl Consensus {
    fn hint(&self) -> Option<LeaderHint> {
        match self.leadership() {
            Leadership::Follower { leader_id, leader_address } => {
                Some(LeaderHint { node_id: leader_id, grpc_address: leader_address })
            }
            Leadership::Leader { .. } | Leadership::None => None,
        }
    }

    fn not_leader(&self) -> ReplicaError {
        ReplicaError::NotLeader(self.hint())
    }

    fn refusal(&self, error: &MembershipError) -> ReplicaError {
        let text = error.to_string();
        match error {
            MembershipError::NotLeader => self.not_leader(),
            MembershipError::NotFound(_) => ReplicaError::NotFound(text),
            MembershipError::Unavailable(_) => ReplicaError::Unavailable(text),
            MembershipError::NoLongerAMember(_)
            | MembershipError::Refused(_)
            | MembershipError::Aborted(_) => ReplicaError::Refused(text),
        }
    }
}

impl Replica for Consensus {
    fn phase(&self) -> service::Phase {
        match self.shared.phase() {
            peers::Phase::Empty => service::Phase::Empty,
            peers::Phase::Forming => service::Phase::Forming,
            peers::Phase::Open => service::Phase::Open,
            peers::Phase::Superseded => {
                service::Phase::Superseded { by: self.shared.superseded_by().unwrap_or_default() }
            }
        }
    }

    fn leadership(&self) -> service::Leadership {
        match Self::leadership(self) {
            Leadership::Leader { term } => service::Leadership::Leader { term },
            _ => service::Leadership::Follower { leader: self.hint() },
        }
    }

    fn ailing(&self) -> Option<&'static str> {
        let low = self.shared.low_space.load(Ordering::Relaxed);
        low.then_some("less than 128 MiB free under --data-dir")
    }

    async fn propose(&self, command: Command) -> Result<Result<Effect, Refused>, ReplicaError> {
        match Self::propose(self, &command, COMMIT).await {
            Ok(committed) => Ok(committed.outcome),
            // Every command may be sent again, so a deposed leader's callers only need to
            // know where to go on.
            Err(ProposeError::NotLeader | ProposeError::Deposed | ProposeError::Superseded(_)) => {
                Err(self.not_leader())
            }
            Err(error @ ProposeError::TooNew { .. }) => {
                Err(ReplicaError::Refused(error.to_string()))
            }
            Err(error) => Err(ReplicaError::Unavailable(error.to_string())),
        }
    }

    async fn barrier(&self) -> Result<(), ReplicaError> {
        // The lease is the barrier: see `Consensus::read`.
        self.read(|_| ()).ok_or_else(|| self.not_leader())
    }

    fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        match self.shared.running() {
            Some(running) => look(&running.state.read().state),
            // Between a wipe and the new beginning there is nothing.
            None => look(&State::default()),
        }
    }

    fn status(&self) -> RaftStatusResponse {
        let status = Self::status(self);
        let index = |index| i64::try_from(index).unwrap_or(i64::MAX);
        RaftStatusResponse {
            node_id: status.node_id,
            fleet_id: status.fleet_id,
            phase: status.phase.number(),
            role: status.role.to_owned(),
            term: status.term,
            leader_id: status.leader_id,
            leader_grpc_address: status.leader_grpc_address,
            commit_index: index(status.commit_index),
            applied_index: index(status.applied_index),
            voters: status.voters,
        }
    }

    async fn join(&self, joiner: Joiner) -> Result<(), ReplicaError> {
        Self::join(self, &joiner).await.map_err(|error| self.refusal(&error))
    }

    async fn remove_server(&self, node_id: String) -> Result<(), ReplicaError> {
        Self::remove_server(self, &node_id).await.map_err(|error| self.refusal(&error))
    }

    async fn snapshot(&self) -> Result<Option<Snapshot>, ReplicaError> {
        self.shared.serving().ok_or_else(|| self.not_leader())?;
        let Some(stored) = Self::snapshot(self) else { return Ok(None) };
        // A restore makes a group of its own: how this one knows itself is its affair.
        let meta = SnapshotMeta { membership: None, ..stored.meta };
        let meta_json = serde_json::to_vec(&meta)
            .map_err(|error| ReplicaError::Unavailable(error.to_string()))?;
        Ok(Some(Snapshot { meta_json, state: Arc::from(stored.state) }))
    }
}
