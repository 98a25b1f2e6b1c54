//! The Node of a machine, as objects.

use std::collections::BTreeMap;

use bigfleet_provider_kit::Machine;
use k8s_openapi::{
    api::{
        coordination::v1::{Lease, LeaseSpec},
        core::v1::{Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo},
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference, Time},
    },
    jiff::Timestamp,
};

use crate::{
    flags::Kubelet,
    names::{is_label_value, node_name, provider_id},
};

/// The operator finds a machine's Node by this label.
const MACHINE_ID: &str = "bigfleet.lucy.sh/machine-id";
/// Which Configure made the Node: Ready counts from then on.
const OPERATION: &str = "local.bigfleet.lucy.sh/operation";
/// Which cluster id it was made for: several may share an API server.
const CLUSTER: &str = "local.bigfleet.lucy.sh/cluster";
const KWOK: &str = "kwok.x-k8s.io/node";
/// As a kubelet's default.
const PODS: &str = "110";
/// Beats in four of them.
const LEASE_SECONDS: i32 = 40;
/// Conditions other than Ready, all of them fine.
const PRESSURES: [&str; 3] = ["MemoryPressure", "DiskPressure", "PIDPressure"];

/// The Node to make.
pub(super) fn node(machine: &Machine, cluster: &str, operation: &str, kubelet: Kubelet) -> Node {
    let (id, class) = (machine.id.as_str(), &machine.class);
    let name = node_name(id);
    let mut labels = class.labels.clone();
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    for (key, value) in [
        ("kubernetes.io/hostname", name.as_str()),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", arch),
        ("node.kubernetes.io/instance-type", &class.instance_type),
        ("topology.kubernetes.io/zone", &class.zone),
        (MACHINE_ID, id),
    ] {
        labels.insert(key.to_owned(), value.to_owned());
    }
    // An API server refuses the whole Node for one label. Such a machine is still found
    // by its providerID.
    labels.retain(|_, value| is_label_value(value));
    let mut annotations = BTreeMap::from([
        (MACHINE_ID.to_owned(), id.to_owned()),
        (OPERATION.to_owned(), operation.to_owned()),
        (CLUSTER.to_owned(), cluster.to_owned()),
    ]);
    if kubelet == Kubelet::Kwok {
        annotations.insert(KWOK.to_owned(), "fake".to_owned());
    }
    let (capacity, allocatable) = quantities(machine);
    let info = NodeSystemInfo {
        architecture: arch.to_owned(),
        operating_system: "linux".to_owned(),
        kubelet_version: concat!("bigfleet-local-", env!("CARGO_PKG_VERSION")).to_owned(),
        ..NodeSystemInfo::default()
    };
    Node {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            labels: Some(labels),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec { provider_id: Some(provider_id(id)), ..NodeSpec::default() }),
        status: Some(NodeStatus {
            capacity: Some(capacity),
            allocatable: Some(allocatable),
            addresses: Some(vec![NodeAddress { type_: "Hostname".to_owned(), address: name }]),
            node_info: Some(info),
            ..NodeStatus::default()
        }),
    }
}

type Quantities = BTreeMap<String, Quantity>;

/// Capacity is what pods may use and what the node keeps: a machine's base shape.
fn quantities(machine: &Machine) -> (Quantities, Quantities) {
    let map = |text: &BTreeMap<String, String>| -> Quantities {
        let quantity = |(key, value): (&String, &String)| (key.clone(), Quantity(value.clone()));
        text.iter().map(quantity).collect()
    };
    let (base, usable) = (machine.class.resources.text(), machine.class.allocatable.text());
    let usable = if usable.is_empty() { base } else { usable };
    // What only the usable side names is not reserved from.
    let mut capacity = map(usable);
    capacity.extend(map(base));
    let mut allocatable = map(usable);
    for quantities in [&mut capacity, &mut allocatable] {
        quantities.insert("pods".to_owned(), Quantity(PODS.to_owned()));
    }
    (capacity, allocatable)
}

/// Which operation made the Node.
pub(super) fn operation(node: &Node) -> Option<&str> {
    annotation(node, OPERATION)
}

/// Which cluster the Node was made for.
pub(super) fn cluster(node: &Node) -> Option<&str> {
    annotation(node, CLUSTER)
}

fn annotation<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    node.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// A healthy node's conditions, as of now.
pub(super) fn conditions(node: &Node, now: Timestamp) -> Vec<NodeCondition> {
    let known = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let old: BTreeMap<&str, &NodeCondition> =
        known.map(|condition| (condition.type_.as_str(), condition)).collect();
    let condition = |type_: &str, status: &str, reason: &str| NodeCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some("posted by bigfleet-provider-local".to_owned()),
        last_heartbeat_time: Some(Time(now)),
        // Others tell by it how long a node has been as it is.
        last_transition_time: old
            .get(type_)
            .filter(|old| old.status == status)
            .and_then(|old| old.last_transition_time.clone())
            .or(Some(Time(now))),
    };
    let ready = condition("Ready", "True", "KubeletReady");
    let fine = PRESSURES.into_iter().map(|type_| condition(type_, "False", "KubeletHasEnough"));
    std::iter::once(ready).chain(fine).collect()
}

/// The Lease of a Node, renewed now. It goes with the Node.
pub(super) fn lease(node: &Node, now: Timestamp) -> Lease {
    let name = node.metadata.name.clone().unwrap_or_default();
    Lease {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            owner_references: Some(vec![OwnerReference {
                api_version: "v1".to_owned(),
                kind: "Node".to_owned(),
                name: name.clone(),
                uid: node.metadata.uid.clone().unwrap_or_default(),
                ..OwnerReference::default()
            }]),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(name),
            lease_duration_seconds: Some(LEASE_SECONDS),
            renew_time: Some(MicroTime(now)),
            ..LeaseSpec::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_provider_kit::ShapeCheck;

    use super::*;
    use crate::slots::slots;

    fn machine(provider: &str) -> Machine {
        ShapeCheck::new("local").machine(&slots(provider, 2)[1]).unwrap()
    }

    #[test]
    fn a_node_tells_its_machine() {
        let machine = machine("local");
        let node = node(&machine, "c-1", "op-1", Kubelet::Own);
        let labels = node.metadata.labels.as_ref().unwrap();
        assert_eq!(labels["bigfleet.lucy.sh/machine-id"], "local-000001");
        assert_eq!(labels["node.kubernetes.io/instance-type"], "local.medium");
        assert_eq!(labels["topology.kubernetes.io/zone"], "local-a");
        assert_eq!(labels["topology.bigfleet/rack"], "local-a-rack-1");
        let spec = node.spec.as_ref().unwrap();
        assert_eq!(spec.provider_id.as_deref(), Some("bigfleet-local://local-000001"));
        assert_eq!((operation(&node), cluster(&node)), (Some("op-1"), Some("c-1")));
        assert!(!node.metadata.annotations.as_ref().unwrap().contains_key(KWOK));
        let status = node.status.as_ref().unwrap();
        let (capacity, allocatable) =
            (status.capacity.as_ref().unwrap(), status.allocatable.as_ref().unwrap());
        assert_eq!((&*capacity["cpu"].0, &*allocatable["cpu"].0), ("4500m", "4000m"));
        assert_eq!((&*capacity["memory"].0, &*allocatable["memory"].0), ("17Gi", "16Gi"));
        assert_eq!((&*capacity["pods"].0, &*allocatable["pods"].0), ("110", "110"));
        assert!(status.conditions.is_none(), "nobody has seen it Ready");
    }

    #[test]
    fn kwok_finds_its_nodes() {
        let node = node(&machine("local"), "c-1", "op-1", Kubelet::Kwok);
        assert_eq!(node.metadata.annotations.unwrap()[KWOK], "fake");
    }

    #[test]
    fn an_id_that_is_no_label_is_kept_as_an_annotation() {
        let node = node(&machine("eu/west"), "c-1", "op-1", Kubelet::Own);
        assert!(!node.metadata.labels.unwrap().contains_key(MACHINE_ID));
        assert_eq!(node.metadata.annotations.unwrap()[MACHINE_ID], "eu/west-000001");
    }

    #[test]
    fn a_condition_that_stays_keeps_its_time() {
        let (early, late) = (Timestamp::UNIX_EPOCH, Timestamp::MAX);
        let mut node = node(&machine("local"), "c-1", "op-1", Kubelet::Own);
        let status = node.status.as_mut().unwrap();
        status.conditions = Some(conditions(&Node::default(), early));
        let ready = &conditions(&node, late)[0];
        assert_eq!(ready.last_transition_time, Some(Time(early)));
        assert_eq!(ready.last_heartbeat_time, Some(Time(late)));
        node.status.as_mut().unwrap().conditions.as_mut().unwrap()[0].status = "Unknown".into();
        assert_eq!(conditions(&node, late)[0].last_transition_time, Some(Time(late)));
    }
}
