//! How a replica comes into a fleet: forming one, or joining one. Not a single
//! step but a reconciler, on every replica and at every start.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tokio::time::{sleep, timeout};

use super::{
    handle::{Leadership, Shared},
    peers::{Joiner, MembershipError, Peers, Phase},
};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// Time of one round of questions, and of one join.
const ROUND: Duration = Duration::from_secs(10);

impl Shared {
    /// Until a leader is observed and this replica votes at its current address.
    pub(super) async fn reconcile(self: Arc<Self>) {
        let mut pause = FIRST_PAUSE;
        loop {
            if self.is_settled() || self.step().await {
                pause = FIRST_PAUSE;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn is_settled(&self) -> bool {
        self.phase() == Phase::Superseded
            || self.observe() != Leadership::None && self.votes_as_configured()
    }

    fn votes_as_configured(&self) -> bool {
        let Some(running) = self.running() else { return false };
        let members = running.members();
        members.voter_ids().any(|id| id == running.me)
            && members.get_node(&running.me) == Some(&self.config.member())
    }

    /// One attempt. True when it changed something.
    async fn step(&self) -> bool {
        let forms_alone =
            self.config.force_bootstrap || self.config.bootstrap && self.world.peers.is_none();
        if self.phase() == Phase::Empty && forms_alone {
            self.form().await;
            return true;
        }
        if self.serving().is_some() {
            // Its own entry has another address: a leader rewrites it itself.
            return self.ask_to_join(None).await;
        }
        let Some(peers) = self.world.peers.as_deref() else {
            if self.phase() == Phase::Empty {
                tracing::warn!(
                    "the data directory is empty: start with --bootstrap or --join-addr"
                );
            }
            return false;
        };
        let first = self.config.ordinal().is_some_and(|(_, ordinal)| ordinal == 0);
        if self.phase() == Phase::Empty && first && self.config.bootstrap {
            match self.ask_around(peers).await {
                Found::Fleet => {}
                Found::AllEmpty => {
                    self.form().await;
                    return true;
                }
                Found::Missing(missing) => {
                    tracing::warn!(?missing, "waiting: these replicas have not answered");
                    return false;
                }
            }
        }
        self.ask_to_join(Some(peers)).await
    }

    /// Whether every other initial replica says, now, that it is empty. One
    /// that is silent or unresolved is never taken for empty.
    async fn ask_around(&self, peers: &dyn Peers) -> Found {
        let mut missing: BTreeSet<String> =
            self.config.initial_ids().into_iter().filter(|id| *id != self.config.node_id).collect();
        let Ok(statuses) = timeout(ROUND, peers.statuses()).await else {
            return Found::Missing(missing);
        };
        for status in statuses.into_iter().flatten() {
            if status.phase != Phase::Empty {
                return Found::Fleet;
            }
            missing.remove(&status.node_id);
        }
        if missing.is_empty() { Found::AllEmpty } else { Found::Missing(missing) }
    }

    async fn ask_to_join(&self, peers: Option<&dyn Peers>) -> bool {
        let Some(running) = self.running() else { return false };
        let request = Joiner {
            node_id: self.config.node_id.clone(),
            raft_address: self.config.raft_address.clone(),
            grpc_address: self.config.grpc_address.clone(),
            fleet_id: self.fleet.get().unwrap_or_default(),
            max_kind: self.config.max_kind,
            incarnation: running.me.incarnation,
        };
        let joined = match peers {
            Some(peers) => timeout(ROUND, peers.join(request)).await,
            None => Ok(self.join(&request).await),
        };
        match joined {
            Ok(Ok(())) => true,
            Ok(Err(MembershipError::NoLongerAMember(_))) if self.phase() != Phase::Forming => {
                let why = "this replica's data is of a member that was removed or replaced: \
                           empty its data directory to join anew";
                self.fail(why.to_owned());
                false
            }
            Ok(Err(error)) => {
                tracing::info!(%error, "not joined yet");
                false
            }
            Err(_) => false,
        }
    }
}

/// What the other replicas said.
enum Found {
    /// One of them is in a fleet.
    Fleet,
    /// None of the initial ones is.
    AllEmpty,
    /// These did not answer.
    Missing(BTreeSet<String>),
}
