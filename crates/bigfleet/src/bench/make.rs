//! Machines and needs as builders make them, through the gates like any other.

use std::{collections::HashMap, fmt::Write, sync::Arc};

use bigfleet_engine::Tracked;
use bigfleet_model::{
    CapacityType, ClusterId, Group, Machine, MachineState, Need, Operator, PenaltyBucket, Profile,
    Requirement, Resources, Stamp, gate::inventory, machine::INSTANCE_TYPE_LABEL,
};
use bigfleet_wire::v1alpha1 as wire;

/// Label that our fakes and benchmarks call a rack.
pub(super) const RACK: &str = "topology.bigfleet/rack";

/// Resource name and quantity.
pub(super) type Size = &'static [(&'static str, &'static str)];

/// What the builders vary of a machine.
pub(super) struct MachineSpec<'a> {
    pub(super) id: String,
    pub(super) state: MachineState,
    pub(super) cluster: Option<&'a ClusterId>,
    pub(super) instance_type: &'a str,
    pub(super) zone: &'a str,
    pub(super) capacity_type: CapacityType,
    pub(super) price: f64,
    pub(super) probability: f64,
    pub(super) size: &'a [(&'a str, &'a str)],
    pub(super) rack: Option<String>,
    pub(super) stamp: Option<Arc<Stamp>>,
}

/// What engine chapter §16 says of machines unless it says otherwise.
impl Default for MachineSpec<'_> {
    fn default() -> Self {
        Self {
            id: String::new(),
            state: MachineState::Idle,
            cluster: None,
            instance_type: "",
            zone: "zone-a",
            capacity_type: CapacityType::BareMetal,
            price: 0.0,
            probability: 0.0,
            size: &[],
            rack: None,
            stamp: None,
        }
    }
}

/// Makes machines, letting those of one class share it.
#[derive(Default)]
pub(super) struct Maker {
    classes: HashMap<String, Machine>,
    key: String,
}

impl Maker {
    pub(super) fn make(&mut self, spec: MachineSpec<'_>) -> Tracked {
        self.key.clear();
        // Writing to a string cannot fail.
        let _ = write!(
            self.key,
            "{} {} {:?} {} {} {:?} {:?}",
            spec.instance_type,
            spec.zone,
            spec.capacity_type,
            spec.price,
            spec.probability,
            spec.size,
            spec.rack
        );
        if !self.classes.contains_key(&self.key) {
            self.classes.insert(self.key.clone(), sample(&spec));
        }
        let mut machine = self.classes[&self.key].clone();
        let hosted = !matches!(spec.state, MachineState::Speculative | MachineState::Creating);
        machine.host = hosted.then(|| bigfleet_model::HostRef {
            provider: "bench".to_owned(),
            reference: spec.id.clone(),
        });
        machine.id = spec.id.into();
        machine.state = spec.state;
        machine.cluster = spec.cluster.cloned();
        machine.stamp = spec.stamp;
        Tracked { machine, idle_since: None, drain: None }
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
        interruption_probability: spec.probability,
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

/// The cluster of a number.
pub(super) fn cluster(number: usize) -> ClusterId {
    ClusterId::from(format!("cluster-{number:05}"))
}

pub(super) fn requirement(key: &str, operator: Operator, values: &[&str]) -> Requirement {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    Requirement { key: key.to_owned(), operator, values }
}

/// A vector, through the gate like any other.
pub(super) fn vector(size: &[(&str, &str)]) -> Resources {
    sample(&MachineSpec { size, ..MachineSpec::default() }).class.capacity().clone()
}

pub(super) fn need(spec: NeedSpec<'_>) -> Need {
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
    let unit = vector(spec.unit);
    Need {
        cluster: spec.cluster.clone(),
        profile: Arc::new(profile),
        group: Group::from(spec.group),
        aggregate: unit.scale(spec.units),
        min_unit: unit,
        arrival: spec.arrival,
    }
}
