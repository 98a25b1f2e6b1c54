//! Who belongs to the group: joins, promotions, removals, one at a time.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    sync::Arc,
    time::Duration,
};

use openraft::ChangeMembers;
use tokio::time::{sleep, timeout};

use super::{
    fleet,
    handle::{Consensus, Shared},
    peers::{Joiner, MembershipError, Phase},
    running::Running,
    types::{Member, MemberId, Membership, Proposal},
};
use crate::state::Command;

/// More voters make every commit slower and no fleet safer.
const MAX_VOTERS: usize = 5;
/// A learner this close to the end of the log may vote.
const CLOSE: u64 = 100;
/// A membership change that is not committed by then: outcome unknown.
const PATIENCE: Duration = Duration::from_secs(5);

type Changed<T = ()> = Result<T, MembershipError>;

impl Consensus {
    /// `JoinRaftCluster`, on the leader.
    pub async fn join(&self, request: &Joiner) -> Changed {
        self.shared.join(request).await
    }

    /// `RemoveRaftServer`, on the leader.
    pub async fn remove_server(&self, node_id: &str) -> Changed {
        self.shared.remove_server(node_id).await
    }
}

impl Shared {
    fn leading(&self) -> Changed<Arc<Running>> {
        let running = self.running().filter(|_| self.serving().is_some());
        running.ok_or(MembershipError::NotLeader)
    }

    pub(super) async fn join(&self, request: &Joiner) -> Changed {
        let refused = |why: String| Err(MembershipError::Refused(why));
        // Alone: no proposal is appended while members change.
        let _gate = self.gate.write().await;
        let running = self.leading()?;
        if !request.fleet_id.is_empty() && Some(&request.fleet_id) != self.fleet.get().as_ref() {
            return refused(self.foreign(&request.fleet_id));
        }
        let kind = running.log.kind().max(running.state.read().state.kind_in_use());
        if request.max_kind < kind {
            let known = request.max_kind;
            return refused(format!(
                "this replica applies commands up to kind {known}, kind {kind} is in use: upgrade it"
            ));
        }
        self.finish_change(&running).await?;
        let members = running.members();
        let namesakes: Vec<(MemberId, Member)> = members
            .nodes()
            .filter(|(id, _)| id.is_node(&request.node_id))
            .map(|(id, member)| (*id, member.clone()))
            .collect();
        if let Some((_, other)) = namesakes.iter().find(|(_, one)| one.node_id != request.node_id) {
            return refused(format!("node id collides with {}: choose another", other.node_id));
        }
        let member = Member {
            node_id: request.node_id.clone(),
            raft_address: request.raft_address.clone(),
            grpc_address: request.grpc_address.clone(),
            max_kind: request.max_kind,
        };
        let same = |(id, _): &&(MemberId, Member)| {
            request.incarnation == 0 || id.incarnation == request.incarnation
        };
        if let Some((id, known)) = namesakes.iter().find(same) {
            if *known == member {
                return Ok(());
            }
            self.record(&running, request, id.incarnation).await?;
            let nodes = BTreeMap::from([(*id, member)]);
            return change(&running, ChangeMembers::SetNodes(nodes), true).await;
        }
        // It was let in, and the leader that wrote so was lost before that was committed:
        // then the table knows it still. It never voted, and its disk is the one it had.
        let known = running.state.read().state.replicas().get(&request.node_id).cloned();
        let awaited = known.is_some_and(|known| known.incarnation == request.incarnation);
        if !request.fleet_id.is_empty() && !awaited {
            return Err(MembershipError::NoLongerAMember(request.node_id.clone()));
        }
        let others = members.nodes().count() - namesakes.len();
        if others >= MAX_VOTERS {
            return refused(format!("the group has {MAX_VOTERS} members already"));
        }
        self.record(&running, request, request.incarnation).await?;
        // The disk of the old incarnation is gone: what it was must not count.
        for (old, _) in namesakes {
            remove(&running, &members, old).await?;
        }
        let nodes =
            BTreeMap::from([(MemberId::new(&request.node_id, request.incarnation), member)]);
        change(&running, ChangeMembers::AddNodes(nodes), true).await
    }

    fn foreign(&self, fleet_id: &str) -> String {
        let mine = self.fleet.get().unwrap_or_default();
        match (mine.parse(), fleet_id.parse()) {
            (Ok(me), Ok(other)) if fleet::supersedes(&me, &other) => {
                format!("superseded by {mine}: empty this replica's data directory")
            }
            _ => format!("this is fleet {mine}, not {fleet_id}"),
        }
    }

    /// Writes the replica into the replicated table, where a kind that it
    /// cannot apply is found by every leader alike.
    async fn record(&self, running: &Running, request: &Joiner, incarnation: u64) -> Changed {
        let command = Command::UpsertReplica {
            node_id: request.node_id.clone(),
            incarnation,
            raft_address: request.raft_address.clone(),
            grpc_address: request.grpc_address.clone(),
            max_kind: request.max_kind,
        };
        let refusal = commit(running, &command).await?;
        refusal.map_or(Ok(()), |why| Err(MembershipError::Refused(why)))
    }

    async fn remove_server(&self, node_id: &str) -> Changed {
        let _gate = self.gate.write().await;
        let running = self.leading()?;
        self.finish_change(&running).await?;
        let members = running.members();
        let found: Vec<MemberId> = members
            .nodes()
            .filter(|(_, member)| member.node_id == node_id)
            .map(|(id, _)| *id)
            .collect();
        if found.is_empty() {
            return Err(MembershipError::NotFound(node_id.to_owned()));
        }
        if self.world.peers.is_some() && self.config.initial_ids().iter().any(|id| id == node_id) {
            let why = format!("{node_id} is one of the initial replicas: wipe it, or keep it");
            return Err(MembershipError::Aborted(why));
        }
        let rest: BTreeSet<MemberId> =
            members.voter_ids().filter(|id| !found.contains(id)).collect();
        let after = Membership::new(vec![rest.clone()], BTreeMap::<MemberId, Member>::new());
        let term = running.raft.metrics().borrow().current_term;
        if rest.is_empty() || !running.lease().is_held(running.me, term, &after) {
            let why = format!("without {node_id} there is no quorum: repair the others first");
            return Err(MembershipError::Aborted(why));
        }
        // First, for a replica that is in the table and no member is let in again.
        let command = Command::RemoveReplica { node_id: node_id.to_owned() };
        commit(&running, &command).await?;
        for id in found {
            remove(&running, &members, id).await?;
        }
        Ok(())
    }

    /// A leader that died in the middle of a change left both sets in force.
    async fn finish_change(&self, running: &Running) -> Changed {
        let members = running.members();
        match members.get_joint_config().as_slice() {
            [_, .., goal] => {
                change(running, ChangeMembers::ReplaceAllVoters(goal.clone()), false).await
            }
            _ => Ok(()),
        }
    }

    /// The leader's chores: finish changes, promote learners, open the fleet.
    pub(super) async fn arrange(self: Arc<Self>) {
        loop {
            sleep(self.config.timers.heartbeat).await;
            if self.serving().is_some()
                && let Err(error) = self.arrange_once().await
            {
                tracing::debug!(%error, "membership not settled yet");
            }
        }
    }

    async fn arrange_once(&self) -> Changed {
        {
            let _gate = self.gate.write().await;
            let running = self.leading()?;
            self.finish_change(&running).await?;
            if let Some(learner) = promotable(&running) {
                let voters = BTreeSet::from([learner]);
                change(&running, ChangeMembers::AddVoterIds(voters), true).await?;
            }
        }
        let running = self.leading()?;
        let opened = running.state.read().state.fleet_id().is_some();
        if !opened && self.may_open(&running.members()) {
            let fleet_id = self.fleet.get().unwrap_or_default();
            tracing::info!(fleet_id, "opening the fleet");
            let done = self.propose(&Command::InitFleet { fleet_id }, PATIENCE).await;
            done.map_err(|error| MembershipError::Unavailable(error.to_string()))?;
        }
        Ok(())
    }

    /// All initial replicas are voters; a replica without `--join-addr`, or
    /// told by a human that no other fleet exists, opens alone.
    fn may_open(&self, members: &Membership) -> bool {
        if self.phase() == Phase::Superseded {
            return false;
        }
        let voters: BTreeSet<MemberId> = members.voter_ids().collect();
        let votes = |id: &String| {
            members.nodes().any(|(one, member)| member.node_id == *id && voters.contains(one))
        };
        self.world.peers.is_none()
            || self.config.force_bootstrap
            || self.config.initial_ids().iter().all(votes)
    }
}

/// A learner that has caught up, while there is room for a voter.
fn promotable(running: &Running) -> Option<MemberId> {
    let metrics = running.raft.metrics();
    let metrics = metrics.borrow();
    let members = metrics.membership_config.membership();
    if members.voter_ids().count() >= MAX_VOTERS {
        return None;
    }
    let applied = metrics.last_applied?.index;
    let matched = |id: &MemberId| metrics.replication.as_ref()?.get(id).copied().flatten();
    members.learner_ids().find(|id| matched(id).is_some_and(|at| at.index + CLOSE >= applied))
}

async fn remove(running: &Running, members: &Membership, id: MemberId) -> Changed {
    let ids = BTreeSet::from([id]);
    if members.voter_ids().any(|voter| voter == id) {
        change(running, ChangeMembers::RemoveVoters(ids), false).await
    } else {
        change(running, ChangeMembers::RemoveNodes(ids), false).await
    }
}

async fn change(
    running: &Running,
    changes: ChangeMembers<MemberId, Member>,
    retain: bool,
) -> Changed {
    let changed = running.raft.change_membership(changes, retain);
    within(async { changed.await.map(drop).map_err(|error| error.to_string()) }).await
}

/// Commits one command past the gate, which the caller holds. Gives back why
/// the state machine refused it.
async fn commit(running: &Running, command: &Command) -> Changed<Option<String>> {
    let proposal = Proposal { commands: vec![command.encode()] };
    let written = running.raft.client_write(proposal);
    within(async {
        let done = written.await.map_err(|error| error.to_string())?;
        let refusal = done.data.0.into_iter().next().and_then(Result::err);
        Ok(refusal.map(|refusal| refusal.to_string()))
    })
    .await
}

async fn within<T>(work: impl Future<Output = Result<T, String>>) -> Changed<T> {
    match timeout(PATIENCE, work).await {
        Ok(done) => done.map_err(MembershipError::Unavailable),
        Err(_) => Err(MembershipError::Unavailable("no quorum in time".to_owned())),
    }
}
