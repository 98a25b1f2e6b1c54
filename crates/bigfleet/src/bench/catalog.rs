//! Catalog R of engine chapter §16, and how machines and needs are made from it.

use std::{collections::BTreeMap, sync::Arc};

use bigfleet_engine::Tracked;
use bigfleet_model::{
    CapacityType, ClusterId, Group, Machine, MachineState, Need, Operator, PenaltyBucket, Profile,
    Requirement, Stamp, gate::inventory, machine::INSTANCE_TYPE_LABEL,
};
use bigfleet_wire::v1alpha1 as wire;

/// Label that our fakes and benchmarks call a rack.
pub(super) const RACK: &str = "topology.bigfleet/rack";

/// Resource name and quantity.
pub(super) type Size = &'static [(&'static str, &'static str)];

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

/// What the builders vary of a machine.
pub(super) struct MachineSpec<'a> {
    pub(super) id: String,
    pub(super) state: MachineState,
    pub(super) cluster: Option<&'a str>,
    pub(super) instance_type: &'a str,
    pub(super) zone: &'a str,
    pub(super) capacity_type: CapacityType,
    pub(super) price: f64,
    pub(super) size: &'a [(&'a str, &'a str)],
    pub(super) rack: Option<String>,
    pub(super) stamp: Option<Arc<Stamp>>,
}

/// Makes machines, letting those of one class share it.
#[derive(Default)]
pub(super) struct Fleet {
    pub(super) machines: Vec<Tracked>,
    classes: BTreeMap<String, Machine>,
}

impl Fleet {
    pub(super) fn add(&mut self, spec: MachineSpec<'_>) {
        let class_key = format!(
            "{} {} {:?} {} {:?} {:?}",
            spec.instance_type, spec.zone, spec.capacity_type, spec.price, spec.size, spec.rack
        );
        let sample = self.classes.entry(class_key).or_insert_with(|| sample(&spec));
        let mut machine = sample.clone();
        let hosted = !matches!(spec.state, MachineState::Speculative | MachineState::Creating);
        machine.host = hosted.then(|| bigfleet_model::HostRef {
            provider: "bench".to_owned(),
            reference: spec.id.clone(),
        });
        machine.id = spec.id.into();
        machine.state = spec.state;
        machine.cluster = spec.cluster.map(ClusterId::from);
        machine.stamp = spec.stamp;
        self.machines.push(Tracked { machine, idle_since: None, drain: None });
    }

    /// Machine `i` of an archetype.
    pub(super) fn add_catalog(
        &mut self,
        archetype: &Archetype,
        i: usize,
        spec: impl FnOnce(MachineSpec<'static>) -> MachineSpec<'static>,
    ) {
        self.add(spec(MachineSpec {
            id: String::new(),
            state: MachineState::Idle,
            cluster: None,
            instance_type: at(archetype.types, i),
            zone: at(archetype.zones, i),
            capacity_type: CapacityType::BareMetal,
            price: 0.0,
            size: at(archetype.sizes, i),
            rack: Some(format!("rack-{}-{}", archetype.name, i % 8)),
            stamp: None,
        }));
    }
}

/// A machine of the class, through the gate like any other.
fn sample(spec: &MachineSpec<'_>) -> Machine {
    let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let message = wire::Machine {
        id: "sample".to_owned(),
        state: MachineState::Speculative.to_wire(),
        instance_type: spec.instance_type.to_owned(),
        zone: spec.zone.to_owned(),
        capacity_type: spec.capacity_type.to_wire(),
        price_per_hour: spec.price,
        resources: Some(wire::Resources { resources: spec.size.iter().map(text).collect() }),
        labels: spec.rack.iter().map(|rack| (RACK.to_owned(), rack.clone())).collect(),
        ..Default::default()
    };
    match inventory::machine(message) {
        Ok(accepted) => accepted.machine,
        Err(rejected) => panic!("a builder made a bad machine: {rejected}"),
    }
}

/// What the builders vary of a need.
pub(super) struct NeedSpec<'a> {
    pub(super) cluster: &'a ClusterId,
    pub(super) types: &'a [&'a str],
    pub(super) priority: i32,
    pub(super) penalties: (f64, f64),
    pub(super) unit: &'a [(&'a str, &'a str)],
    /// The aggregate is so many units.
    pub(super) units: u64,
    pub(super) same_rack: bool,
    pub(super) group: String,
    pub(super) arrival: i64,
}

pub(super) fn need(spec: NeedSpec<'_>) -> Need {
    let requirement = |key: &str, operator, values: &[&str]| Requirement {
        key: key.to_owned(),
        operator,
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    };
    let mut requirements = vec![requirement(INSTANCE_TYPE_LABEL, Operator::In, spec.types)];
    if spec.same_rack {
        requirements.push(requirement(RACK, Operator::Same, &[]));
    }
    let profile = Profile::new(
        requirements,
        vec![],
        spec.priority,
        PenaltyBucket::from_dollars(spec.penalties.0),
        PenaltyBucket::from_dollars(spec.penalties.1),
    );
    let class = sample(&MachineSpec {
        id: String::new(),
        state: MachineState::Speculative,
        cluster: None,
        instance_type: "",
        zone: "",
        capacity_type: CapacityType::Unspecified,
        price: 0.0,
        size: spec.unit,
        rack: None,
        stamp: None,
    })
    .class;
    let unit = class.capacity().clone();
    Need {
        cluster: spec.cluster.clone(),
        profile: Arc::new(profile),
        group: Group::from(spec.group),
        aggregate: unit.scale(spec.units),
        min_unit: unit,
        arrival: spec.arrival,
    }
}

/// Need `i` of an archetype.
pub(super) fn catalog_need(
    archetype: &Archetype,
    cluster: &ClusterId,
    i: usize,
    units: u64,
) -> Need {
    need(NeedSpec {
        cluster,
        types: &[at(archetype.types, i)],
        priority: at(archetype.priorities, i),
        penalties: (8192.0, 8192.0),
        unit: at(archetype.sizes, i),
        units,
        same_rack: archetype.same_rack,
        group: String::new(),
        arrival: i as i64 + 1,
    })
}
