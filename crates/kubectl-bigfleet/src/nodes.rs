//! Machines on their way and in the cluster.

use std::{collections::BTreeMap, iter::once};

use bigfleet_crds::{CapacityRequest, UpcomingNode, keys};
use bigfleet_model::Quantity;
use bigfleet_plain::{table::table, text};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;

use crate::{needs::demand, picture::Machines, why::since};

const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
const ZONE: &str = "topology.kubernetes.io/zone";

const HEAD: [&str; 8] = ["MACHINE", "PHASE", "FOR", "AGE", "TYPE", "ZONE", "NODE", "ERROR"];

/// All machines, in the order of their names.
#[must_use]
pub fn screen(machines: &Machines) -> String {
    if machines.upcoming.is_empty() {
        return "no machine of the fleet is in this cluster or on its way to it\n".to_owned();
    }
    let nodes: BTreeMap<&str, &Node> = machines
        .nodes
        .iter()
        .filter_map(|node| Some((node.metadata.name.as_deref()?, node)))
        .collect();
    let mut sorted: Vec<&UpcomingNode> = machines.upcoming.iter().collect();
    sorted.sort_by_key(|machine| machine_id(machine));
    let rows = sorted.into_iter().map(|machine| row(machine, &nodes, machines.now));
    table(once(HEAD.map(str::to_owned).to_vec()).chain(rows))
}

fn row(machine: &UpcomingNode, nodes: &BTreeMap<&str, &Node>, now: Timestamp) -> Vec<String> {
    let label = |key: &str| text::or_dash(machine.spec.labels.get(key).map_or("", String::as_str));
    let error = machine.status.as_ref().and_then(|status| status.last_error.as_deref());
    vec![
        machine_id(machine).to_owned(),
        phase(machine),
        since(now, entered(machine)),
        since(now, begun(machine)),
        label(INSTANCE_TYPE),
        label(ZONE),
        node_name(machine).map_or_else(
            || "—".to_owned(),
            |name| format!("{name} ({})", readiness(nodes.get(name).copied())),
        ),
        text::cut(&text::or_dash(error.unwrap_or_default()), 80),
    ]
}

/// `m-17 (c5.large, zone-a) is Provisioning since 40s`.
pub(crate) fn sentence(machine: &UpcomingNode, now: Timestamp) -> String {
    let shape: Vec<&str> = [INSTANCE_TYPE, ZONE]
        .iter()
        .filter_map(|&key| machine.spec.labels.get(key).map(String::as_str))
        .collect();
    let (id, age) = (machine_id(machine), since(now, begun(machine)));
    format!("{id} ({}), {}, first heard of {age} ago", shape.join(", "), phase(machine))
}

/// Whether a machine could be the request's: its labels hold what is required, and it
/// is large enough where that is known.
pub(crate) fn fits(machine: &UpcomingNode, request: &CapacityRequest) -> bool {
    let Some(demand) = demand(request) else { return false };
    let parse = |amount: &bigfleet_crds::Quantity| amount.as_str().parse::<Quantity>().ok();
    let held = &machine.spec.resources;
    let enough = |(name, asked): (&String, &bigfleet_crds::Quantity)| {
        held.is_empty() || held.get(name).and_then(parse) >= parse(asked)
    };
    demand.need.profile().matches(&machine.spec.labels) && request.spec.resources.iter().all(enough)
}

fn machine_id(machine: &UpcomingNode) -> &str {
    let annotations = machine.metadata.annotations.as_ref();
    let id = annotations.and_then(|all| all.get(keys::MACHINE_ID)).map(String::as_str);
    id.or(machine.metadata.name.as_deref()).unwrap_or_default()
}

fn phase(machine: &UpcomingNode) -> String {
    machine.status.as_ref().map_or_else(|| "—".to_owned(), |status| format!("{:?}", status.phase))
}

fn begun(machine: &UpcomingNode) -> Option<Timestamp> {
    let started = machine.status.as_ref()?.provisioning_start_time.as_ref();
    started.or(machine.metadata.creation_timestamp.as_ref()).map(|time| time.0)
}

/// When the phase was last written, by the API server's own notes; a link to its Node
/// or an error that came later is a write, too.
fn entered(machine: &UpcomingNode) -> Option<Timestamp> {
    let writes = machine.metadata.managed_fields.as_deref().unwrap_or_default();
    let of_status = writes.iter().filter(|write| write.subresource.as_deref() == Some("status"));
    of_status.filter_map(|write| write.time.as_ref().map(|time| time.0)).max()
}

fn node_name(machine: &UpcomingNode) -> Option<&str> {
    machine.status.as_ref()?.node_ref.as_ref()?.name.as_deref()
}

fn readiness(node: Option<&Node>) -> &'static str {
    let Some(node) = node else { return "gone" };
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref());
    let ready = conditions.unwrap_or_default().iter().find(|found| found.type_ == "Ready");
    let cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
    match ready.map(|found| found.status.as_str()) {
        Some("True") if cordoned => "Ready, cordoned",
        Some("True") => "Ready",
        _ => "NotReady",
    }
}
