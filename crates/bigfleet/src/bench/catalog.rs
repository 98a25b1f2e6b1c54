//! Catalog R of engine chapter §16.

use bigfleet_model::ClusterId;

use super::make::{MachineSpec, NeedSpec, Size};

/// One kind of workload with the machines it runs on.
pub(super) struct Archetype {
    pub(super) name: &'static str,
    pub(super) weight: usize,
    pub(super) types: &'static [&'static str],
    pub(super) zones: &'static [&'static str],
    pub(super) sizes: &'static [Size],
    pub(super) priorities: &'static [i32],
    pub(super) same_rack: bool,
}

const ABC: &[&str] = &["zone-a", "zone-b", "zone-c"];

/// Weights sum to 100.
pub(super) const CATALOG: [Archetype; 6] = [
    Archetype {
        name: "gpu-training",
        weight: 5,
        types: &["a3-highgpu-8g"],
        zones: ABC,
        sizes: &[&[("nvidia.com/gpu", "8")], &[("nvidia.com/gpu", "16")]],
        priorities: &[1000],
        same_rack: true,
    },
    Archetype {
        name: "gpu-inference",
        weight: 15,
        types: &["a3-highgpu-1g", "a2-highgpu-1g"],
        zones: ABC,
        sizes: &[&[("nvidia.com/gpu", "1")], &[("nvidia.com/gpu", "2")]],
        priorities: &[100, 1000],
        same_rack: false,
    },
    Archetype {
        name: "cpu-batch",
        weight: 35,
        types: &["c6i.4xlarge", "c6i.8xlarge", "n2-standard-32"],
        zones: ABC,
        sizes: &[
            &[("cpu", "4"), ("memory", "8Gi")],
            &[("cpu", "8"), ("memory", "16Gi")],
            &[("cpu", "16"), ("memory", "32Gi")],
            &[("cpu", "32"), ("memory", "64Gi")],
        ],
        priorities: &[100],
        same_rack: false,
    },
    Archetype {
        name: "cpu-service",
        weight: 30,
        types: &["m6i.large", "m6i.xlarge", "m6i.2xlarge"],
        zones: ABC,
        sizes: &[
            &[("cpu", "2"), ("memory", "8Gi")],
            &[("cpu", "4"), ("memory", "16Gi")],
            &[("cpu", "8"), ("memory", "32Gi")],
            &[("cpu", "16"), ("memory", "64Gi")],
        ],
        priorities: &[1000],
        same_rack: false,
    },
    Archetype {
        name: "memory-db",
        weight: 10,
        types: &["r6i.xlarge", "r6i.2xlarge"],
        zones: &["zone-a", "zone-b"],
        sizes: &[
            &[("cpu", "4"), ("memory", "32Gi")],
            &[("cpu", "4"), ("memory", "64Gi")],
            &[("cpu", "8"), ("memory", "128Gi")],
        ],
        priorities: &[1000],
        same_rack: true,
    },
    Archetype {
        name: "critical-realtime",
        weight: 5,
        types: &["c6i.4xlarge", "m6i.2xlarge"],
        zones: ABC,
        sizes: &[&[("cpu", "8"), ("memory", "16Gi")], &[("cpu", "16"), ("memory", "32Gi")]],
        priorities: &[1_000_000],
        same_rack: false,
    },
];

/// The archetype of a running number.
pub(super) fn pick(k: usize) -> &'static Archetype {
    let mut rest = k % 100;
    let found = CATALOG.iter().find(|archetype| {
        let here = rest < archetype.weight;
        rest = rest.saturating_sub(archetype.weight);
        here
    });
    found.unwrap_or(&CATALOG[0])
}

/// Element `i mod length`.
pub(super) fn at<T: Copy>(list: &[T], i: usize) -> T {
    list[i % list.len()]
}

/// Machine `i` of an archetype, idle.
pub(super) fn catalog_machine(archetype: &Archetype, i: usize, id: String) -> MachineSpec<'static> {
    MachineSpec {
        id,
        instance_type: at(archetype.types, i),
        zone: at(archetype.zones, i),
        size: at(archetype.sizes, i),
        rack: Some(format!("rack-{}-{}", archetype.name, i % 8)),
        ..MachineSpec::default()
    }
}

/// Need `i` of an archetype. With a group of its own it merges with no other:
/// the scenarios count needs as they are made.
pub(super) fn catalog_need<'a>(
    archetype: &Archetype,
    cluster: &'a ClusterId,
    i: usize,
) -> NeedSpec<'a> {
    NeedSpec {
        cluster,
        types: std::slice::from_ref(&archetype.types[i % archetype.types.len()]),
        priority: at(archetype.priorities, i),
        penalties: (8192.0, 8192.0),
        unit: at(archetype.sizes, i),
        units: 1,
        same_rack: archetype.same_rack,
        group: format!("need-{i}"),
        arrival: i as i64 + 1,
    }
}
