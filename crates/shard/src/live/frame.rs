//! NodeStateUpdates (wire chapter §4).

use bigfleet_model::{
    ClusterId, Machine, MachineState,
    machine::{INSTANCE_TYPE_LABEL, ZONE_LABEL},
};
use bigfleet_wire::v1alpha1::{self as wire, shard_message::Payload};

/// What its provider dropped.
pub(crate) const REMOVED: &str = "removed by provider";

/// The key under which a newer frame of a machine replaces an older one.
pub(crate) fn key(machine: &str) -> String {
    format!("node:{machine}")
}

/// How a machine is told to its cluster.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told<'a> {
    /// It is no longer this cluster's.
    pub(crate) gone: bool,
    /// Its last instruction that is over.
    pub(crate) ended: Option<&'a str>,
}

/// One machine as a cluster sees it.
pub(crate) fn node_state(
    machine: &Machine,
    cluster: &ClusterId,
    told: Told<'_>,
) -> wire::ShardMessage {
    let class = &machine.class;
    let mut labels = class.labels.clone();
    for (label, value) in [(INSTANCE_TYPE_LABEL, &class.instance_type), (ZONE_LABEL, &class.zone)] {
        if !value.is_empty() {
            labels.insert(label.to_owned(), value.clone());
        }
    }
    let resources =
        if class.allocatable.text().is_empty() { &class.resources } else { &class.allocatable };
    let failed = machine.state == MachineState::Failed;
    let configured = machine.state == MachineState::Configured;
    let update = wire::NodeStateUpdate {
        supersedes_key: key(&machine.id),
        machine_id: machine.id.to_string(),
        cluster_id: cluster.to_string(),
        state: machine.state.to_wire(),
        provider_id: machine.host.as_ref().map(|host| host.reference.clone()).unwrap_or_default(),
        last_error: if failed { machine.last_error.clone() } else { String::new() },
        labels,
        resources: Some(wire::Resources { resources: resources.text().clone() }),
        gone: told.gone,
        ended_instruction_id: told.ended.filter(|_| configured).unwrap_or_default().to_owned(),
        ..wire::NodeStateUpdate::default()
    };
    wire::ShardMessage { payload: Some(Payload::NodeStateUpdate(update)) }
}
