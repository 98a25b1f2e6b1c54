//! One machine, as it is now, and what happened to it.

use bigfleet_engine::{Reader, Tracked};
use bigfleet_model::MachineId;
use bigfleet_wire::v1alpha1 as wire;
use tokio::time::Instant;

use crate::{
    live::{Desk, Transition},
    outcome::Kind,
};

/// A value that is not there.
const NONE: f64 = -1.0;

impl Desk<'_> {
    /// A machine with its moves.
    pub(super) fn get_machine(&self, id: &MachineId) -> Option<wire::GetMachineResponse> {
        let tracked = self.tracked(id)?;
        let view = self.machine_view(&self.decider.engine.reader(), tracked);
        let transitions = self.live.history.of(id).map(transition).collect();
        Some(wire::GetMachineResponse { view: Some(view), transitions })
    }

    /// A machine as it is now.
    pub(super) fn machine_view(&self, reader: &Reader<'_>, tracked: Tracked) -> wire::MachineView {
        let Tracked { machine, idle_since, .. } = tracked;
        let clock = &self.shard.clock;
        let since = self.live.history.since(&machine.id);
        let since = since.or_else(|| Some(clock.wall_of(clock.instant_of(idle_since?))));
        let pending = self.live.pending(&machine.id).map(|pending| &pending.action.kind);
        let held = self.live.backoffs.of(&machine.id).map(|failing| failing.until);
        let held = held.filter(|until| *until > Instant::now());
        let mut view = wire::MachineView {
            machine: Some(wire::Machine {
                shard_metadata: Default::default(),
                ..(&machine).into()
            }),
            since_unix_nanos: since.unwrap_or(0),
            assigned_interruption_penalty_dollars: NONE,
            assigned_reclamation_penalty_dollars: NONE,
            in_flight: pending.map_or("", |kind| Kind::from(kind).label()).to_owned(),
            not_acquirable_until_unix_nanos: held.map_or(0, |until| clock.wall_of(until)),
            ..wire::MachineView::default()
        };
        if let Some(stamp) = &machine.stamp {
            view.assigned_priority = stamp.priority.unwrap_or(0);
            view.assigned_interruption_penalty_dollars = stamp.interruption;
            view.assigned_reclamation_penalty_dollars = stamp.reclamation;
            view.assigned_fingerprint = stamp.fingerprint.to_string();
            view.assigned_group = stamp.group.to_string();
        }
        if let Some(need) = reader.claimant(&machine.id) {
            view.claimed_by_fingerprint = need.fingerprint.to_string();
            view.claimed_by_group = need.group.to_string();
        }
        view
    }
}

fn transition(transition: &Transition) -> wire::MachineTransition {
    wire::MachineTransition {
        from: transition.from.map_or(0, bigfleet_model::MachineState::to_wire),
        to: transition.to.to_wire(),
        time_unix_nanos: transition.wall,
        cause: transition.cause.name().to_owned(),
        of_sequence: transition.decision,
        error: transition.error.as_deref().unwrap_or_default().to_owned(),
        cluster_id: transition.cluster.as_deref().unwrap_or_default().to_owned(),
    }
}
