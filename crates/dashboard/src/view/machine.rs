//! A machine, and what happened to it.

use std::collections::BTreeMap;

use bigfleet_wire::v1alpha1::{Machine as WireMachine, MachineTransition, MachineView};
use serde::Serialize;

use super::{capacity_type, dollars, finite, instant, sequence, state, vector};
use crate::auth::Viewer;

/// A machine as its shard knows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Machine<'a> {
    id: &'a str,
    state: &'static str,
    since_unix_nanos: Option<i64>,
    instance_type: &'a str,
    zone: &'a str,
    capacity_type: &'static str,
    price_per_hour: Option<f64>,
    interruption_probability: Option<f64>,
    host_provider: Option<&'a str>,
    host_ref: Option<&'a str>,
    resources: Option<&'a BTreeMap<String, String>>,
    allocatable: Option<&'a BTreeMap<String, String>>,
    labels: &'a BTreeMap<String, String>,
    last_error: &'a str,
    cluster: &'a str,
    assigned_priority: Option<i32>,
    assigned_interruption_penalty_dollars: Option<f64>,
    assigned_reclamation_penalty_dollars: Option<f64>,
    assigned_pinned: bool,
    assigned_fingerprint: &'a str,
    assigned_group: &'a str,
    in_flight: &'a str,
    claimed_by_fingerprint: &'a str,
    claimed_by_group: &'a str,
    not_acquirable_until_unix_nanos: Option<i64>,
}

/// A need that the viewer may not know.
const HIDDEN: &str = "hidden";

impl<'a> Machine<'a> {
    /// As the shard says. Everybody sees a machine that no cluster has yet, but it may be meant for
    /// one that the viewer may not see: which need that is, and what went wrong on the way, is then
    /// left out.
    #[must_use]
    pub(crate) fn new(view: &'a MachineView, machine: &'a WireMachine, viewer: &Viewer) -> Self {
        let told = !viewer.is_scoped() || !machine.cluster.is_empty();
        let text = |text: &'a String| if told { text.as_str() } else { "" };
        let bound = told && !view.assigned_fingerprint.is_empty();
        let penalty = |penalty| told.then(|| dollars(penalty)).flatten();
        Self {
            id: &machine.id,
            state: state(machine.state),
            since_unix_nanos: instant(view.since_unix_nanos),
            instance_type: &machine.instance_type,
            zone: &machine.zone,
            capacity_type: capacity_type(machine.capacity_type),
            price_per_hour: finite(machine.price_per_hour),
            interruption_probability: finite(machine.interruption_probability),
            host_provider: machine.host.as_ref().map(|host| host.provider.as_str()),
            host_ref: machine.host.as_ref().map(|host| host.r#ref.as_str()),
            resources: vector(machine.resources.as_ref()),
            allocatable: vector(machine.allocatable.as_ref()),
            labels: &machine.labels,
            last_error: text(&machine.last_error),
            cluster: &machine.cluster,
            assigned_priority: bound.then_some(view.assigned_priority),
            assigned_interruption_penalty_dollars: penalty(
                view.assigned_interruption_penalty_dollars,
            ),
            assigned_reclamation_penalty_dollars: penalty(
                view.assigned_reclamation_penalty_dollars,
            ),
            assigned_pinned: told && view.assigned_interruption_penalty_dollars == f64::INFINITY,
            assigned_fingerprint: text(&view.assigned_fingerprint),
            assigned_group: text(&view.assigned_group),
            in_flight: &view.in_flight,
            // That it is claimed at all says no more than its state.
            claimed_by_fingerprint: match view.claimed_by_fingerprint.as_str() {
                "" => "",
                fingerprint if told => fingerprint,
                _ => HIDDEN,
            },
            claimed_by_group: text(&view.claimed_by_group),
            not_acquirable_until_unix_nanos: instant(view.not_acquirable_until_unix_nanos),
        }
    }
}

/// One move of a machine.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Transition<'a> {
    from: &'static str,
    to: &'static str,
    time_unix_nanos: Option<i64>,
    cause: &'a str,
    of_sequence: Option<String>,
    error: &'a str,
    cluster_id: Option<&'a str>,
}

impl<'a> Transition<'a> {
    /// As the shard says; a cluster that the viewer may not see stays unnamed. What went wrong while
    /// there was none may be about one of those, as with the machine itself.
    #[must_use]
    pub(crate) fn new(wire: &'a MachineTransition, viewer: &Viewer) -> Self {
        let seen = viewer.sees(&wire.cluster_id);
        let told = seen && !(viewer.is_scoped() && wire.cluster_id.is_empty());
        Self {
            from: state(wire.from),
            to: state(wire.to),
            time_unix_nanos: instant(wire.time_unix_nanos),
            cause: &wire.cause,
            of_sequence: sequence(wire.of_sequence).filter(|_| told),
            error: if told { &wire.error } else { "" },
            cluster_id: seen.then_some(wire.cluster_id.as_str()),
        }
    }
}
