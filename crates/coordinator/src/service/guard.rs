//! Who is answered, and until when.

use bigfleet_net::{
    grpc::Deadline,
    peer::{Gate, Peer},
    rule::Rule,
};
use tokio::time::{Instant, timeout_at};
use tonic::{Request, Status};

use super::{COMMIT_TIMEOUT, Coordinator, Leadership, Phase, Replica, status::not_leader};
use crate::state::{Command, Effect, Refused};

/// A call that a leader answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Led {
    /// The leadership that it belongs to.
    pub(super) term: i64,
    /// When its caller stops waiting, or we do.
    pub(super) until: Instant,
}

/// Which replicas answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Serves {
    /// Those of an open fleet.
    Open,
    /// Also those of one that forms.
    Forming,
}

impl<R: Replica> Coordinator<R> {
    /// The first check of every RPC but RaftStatus. Where the leader is, is told to
    /// those alone whom it would answer.
    pub(super) fn lead<T>(
        &self,
        request: &Request<T>,
        rule: &Rule,
        serves: Serves,
    ) -> Result<Led, Status> {
        match self.replica.phase() {
            Phase::Superseded { by } => {
                return Err(Status::failed_precondition(format!("superseded by {by}")));
            }
            Phase::Empty | Phase::Forming if serves == Serves::Open => {
                return Err(Status::unavailable("forming"));
            }
            Phase::Empty | Phase::Forming | Phase::Open => {}
        }
        match self.replica.leadership() {
            Leadership::Leader { term } => {
                let ours = Instant::now() + COMMIT_TIMEOUT;
                let until = Deadline::of(request).map_or(ours, |theirs| theirs.min(ours));
                Ok(Led { term, until })
            }
            Leadership::Follower { leader } => {
                let admitted = Peer::of(request).is_some_and(|peer| peer.require(rule).is_ok());
                Err(not_leader(leader.as_ref().filter(|_| admitted)))
            }
        }
    }

    /// The identity check, with its counter.
    pub(super) fn admit<T>(
        &self,
        rpc: &'static str,
        request: &Request<T>,
        rule: &Rule,
    ) -> Result<(), Status> {
        Gate::new(self.metrics.identity_rejected(rpc)).admit(request, rule)
    }

    /// Both, for every RPC whose caller is looked at before its arguments.
    pub(super) fn enter<T>(
        &self,
        rpc: &'static str,
        request: &Request<T>,
        rule: &Rule,
    ) -> Result<Led, Status> {
        let led = self.lead(request, rule, Serves::Open)?;
        self.admit(rpc, request, rule)?;
        Ok(led)
    }

    /// Returns when what is read next is not older than the call.
    pub(super) async fn barrier(&self, led: Led) -> Result<(), Status> {
        let barrier = timeout_at(led.until, self.replica.barrier()).await;
        Ok(barrier.map_err(|_| Status::unavailable("no quorum in time; retry"))??)
    }

    /// Commits a command. What it did is in the state, and shards will be told.
    pub(super) async fn commit(
        &self,
        led: Led,
        command: Command,
    ) -> Result<Result<Effect, Refused>, Status> {
        let begun = Instant::now();
        let proposed = timeout_at(led.until, self.replica.propose(command)).await;
        let outcome = match proposed {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => {
                self.metrics.apply_failed();
                return Err(error.into());
            }
            Err(_) => {
                self.metrics.apply_failed();
                let why = "not committed in time; the outcome is unknown, and it is safe to retry";
                return Err(Status::unavailable(why));
            }
        };
        self.metrics.applied(&outcome, begun.elapsed());
        // It counts although the leadership may be over: then the next leader tells them.
        let _ = self.soft(led.term, |reports, state, now| reports.committed(state, &outcome, now));
        Ok(outcome)
    }
}
