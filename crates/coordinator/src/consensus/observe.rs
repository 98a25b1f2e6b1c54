//! Who leads, as far as a replica knows, and giving that away.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bigfleet_model::FleetId;
use openraft::ServerState;
use tokio::time::{Instant, sleep};

use super::{
    fleet,
    handle::{Leadership, Shared},
    message::Request,
    peers::{Phase, Status},
    running::Running,
    types::MemberId,
};

impl Shared {
    /// How far this replica has come.
    pub(super) fn phase(&self) -> Phase {
        if self.superseded_by().is_some() {
            return Phase::Superseded;
        }
        let open = self.running().is_some_and(|running| {
            running.log.has_init_fleet() || running.state.read().state.fleet_id().is_some()
        });
        match (open, self.fleet.get()) {
            (true, _) => Phase::Open,
            (false, Some(_)) => Phase::Forming,
            (false, None) => Phase::Empty,
        }
    }

    pub(super) fn fleet_name(&self) -> Option<FleetId> {
        self.fleet.get()?.parse().ok()
    }

    /// The consensus term under which this replica may serve now.
    pub(super) fn serving(&self) -> Option<u64> {
        if self.leaving.load(Ordering::Relaxed) || self.superseded_by().is_some() {
            return None;
        }
        self.running()?.serving_term()
    }

    pub(super) fn observe(&self) -> Leadership {
        let fleet = self.fleet_name();
        if let (Some(term), Some(fleet)) = (self.serving(), &fleet) {
            return Leadership::Leader { term: fleet::coordinator_term(fleet, term) };
        }
        let Some(running) = self.running() else { return Leadership::None };
        let metrics = running.raft.metrics();
        let metrics = metrics.borrow();
        let other = metrics.current_leader.filter(|leader| *leader != running.me);
        // A leader that has been silent for as long as it takes to elect the
        // next one is not observed any more.
        let fresh = running.lease().silence() < self.config.timers.election * 2;
        let members = metrics.membership_config.membership();
        let leader = other.filter(|_| fresh).and_then(|leader| members.get_node(&leader));
        leader.map_or(Leadership::None, |leader| Leadership::Follower {
            leader_id: leader.node_id.clone(),
            leader_address: leader.grpc_address.clone(),
        })
    }

    pub(super) fn status(&self) -> Status {
        let mut status = Status {
            node_id: self.config.node_id.clone(),
            fleet_id: self.fleet.get().unwrap_or_default(),
            phase: self.phase(),
            role: "follower",
            ..Status::default()
        };
        match self.observe() {
            Leadership::Leader { .. } => {
                status.leader_id.clone_from(&self.config.node_id);
                status.leader_grpc_address.clone_from(&self.config.grpc_address);
            }
            Leadership::Follower { leader_id, leader_address } => {
                (status.leader_id, status.leader_grpc_address) = (leader_id, leader_address);
            }
            Leadership::None => {}
        }
        let Some(running) = self.running() else { return status };
        let metrics = running.raft.metrics();
        let metrics = metrics.borrow();
        status.role = match metrics.state {
            ServerState::Leader => "leader",
            ServerState::Candidate => "candidate",
            ServerState::Learner => "learner",
            _ => "follower",
        };
        let term = metrics.current_term;
        let plain = i64::try_from(term).unwrap_or(i64::MAX);
        status.term =
            self.fleet_name().map_or(plain, |fleet| fleet::coordinator_term(&fleet, term));
        status.applied_index = running.state.read().last.map_or(0, |at| at.index);
        // The library tells the applied index alone; what is committed is
        // applied within the same turn.
        status.commit_index = status.applied_index;
        let members = metrics.membership_config.membership();
        let voters = members.voter_ids().filter_map(|id| members.get_node(&id));
        status.voters = voters.map(|member| member.node_id.clone()).collect();
        status.voters.sort_unstable();
        status
    }

    /// Stops serving, asks the voter whose log is longest to stand, and waits
    /// until somebody else leads.
    pub(super) async fn hand_over(&self) {
        let leads =
            |running: &Arc<Running>| running.serving_term().is_some() || running.halted_as_leader();
        let Some(running) = self.running().filter(leads) else {
            return;
        };
        self.leaving.store(true, Ordering::Relaxed);
        let (successor, member) = {
            let metrics = running.raft.metrics();
            let metrics = metrics.borrow();
            let members = metrics.membership_config.membership().clone();
            let matched = |id: &MemberId| metrics.replication.as_ref()?.get(id).copied().flatten();
            let others = members.voter_ids().filter(|id| *id != running.me);
            let best = others.max_by_key(|id| (matched(id), *id));
            let Some(best) = best else {
                self.leaving.store(false, Ordering::Relaxed);
                return;
            };
            (best, members.get_node(&best).cloned().unwrap_or_default())
        };
        running.quiet.store(true, Ordering::Relaxed);
        let begun = Instant::now();
        let limit = self.config.timers.election * 4;
        let asked = running.speaker.call(successor, &member, Request::Campaign);
        let _ = tokio::time::timeout(self.config.timers.lease, asked).await;
        while begun.elapsed() < limit && running.awaits_successor() {
            sleep(Duration::from_millis(20)).await;
        }
        running.quiet.store(false, Ordering::Relaxed);
        self.leaving.store(false, Ordering::Relaxed);
    }

    /// Whether the disk has become too full to lead.
    pub(super) fn check_space(&self) -> bool {
        match self.dir.is_low() {
            Ok(low) => {
                self.low_space.store(low, Ordering::Relaxed);
                low
            }
            Err(error) => {
                tracing::warn!(%error, "free space is not known");
                false
            }
        }
    }
}
