//! The gates: what foreign input costs at the edge.

use bigfleet_model::{
    ClusterId,
    gate::{Refusal, demand, inventory},
};
use bigfleet_wire::v1alpha1 as wire;

use super::measure::{Measurement, Run, measure};
use crate::error::Error;

const TYPES: [&str; 5] =
    ["a3-highgpu-8g", "m6i.large", "c6i.4xlarge", "n2-standard-32", "r6i.xlarge"];
const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];
const RACK: &str = "topology.bigfleet/rack";

/// Needs as a large cluster sends them: three requirements each, every fifth a
/// gang, every seventh spread over zones, three dimensions for GPUs. All differ.
fn need_message(i: usize) -> wire::CapacityNeed {
    let requirement = |key: &str, operator, values: &[&str]| wire::NodeSelectorRequirement {
        key: key.to_owned(),
        operator,
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    };
    let instance_type = TYPES[i % TYPES.len()];
    let mut need = wire::CapacityNeed {
        requirements: vec![
            requirement("topology.kubernetes.io/zone", 1, &[ZONES[(i + 1) % 3], ZONES[i % 3]]),
            requirement("node.kubernetes.io/instance-type", 1, &[instance_type]),
            requirement("example.com/pool", 1, &[&format!("pool-{i}")]),
        ],
        priority: 1000 * (i as i32 % 10),
        interruption_penalty_bucket: 1 + i as i32 % 27,
        reclamation_penalty_bucket: 1 + i as i32 / 27 % 27,
        ..Default::default()
    };
    let mut resource = |name: &str, sum: String, unit: &str| {
        need.aggregate_resources.insert(name.to_owned(), sum);
        need.min_unit.insert(name.to_owned(), unit.to_owned());
    };
    resource("cpu", format!("{}m", 500 * (i + 1)), "500m");
    resource("memory", format!("{}Mi", 2048 * (i + 1)), "2Gi");
    if instance_type.starts_with("a3") {
        resource("nvidia.com/gpu", (8 * (i + 1)).to_string(), "8");
    }
    if i.is_multiple_of(5) {
        need.requirements.push(requirement(RACK, 5, &[]));
        need.group = format!("{RACK}\0app=training-{i},;\0team-{}", i % 40);
    }
    if i.is_multiple_of(7) {
        need.spread.push(wire::TopologySpread {
            topology_key: "topology.kubernetes.io/zone".to_owned(),
            max_skew: 1,
            when_unsatisfiable: 1,
        });
    }
    need
}

fn roll_up_message(needs: usize) -> wire::ClusterCapacityNeeds {
    wire::ClusterCapacityNeeds {
        cluster_id: "bench".to_owned(),
        timestamp_unix_nanos: 1,
        needs: (0..needs).map(need_message).collect(),
    }
}

/// Touches every need once.
fn scan_needs(needs: &[wire::CapacityNeed]) -> i64 {
    let touch = |need: &wire::CapacityNeed| {
        i64::from(need.priority) + need.requirements.iter().map(|r| r.key.len() as i64).sum::<i64>()
    };
    needs.iter().map(touch).sum()
}

pub(super) fn needs(run: &Run) -> Result<Vec<Measurement>, Error> {
    const NEEDS: usize = 1_000;
    let cluster = ClusterId::from("bench");
    let messages: Vec<_> = (0..NEEDS).map(need_message).collect();
    let gate = |messages: Vec<wire::CapacityNeed>| {
        messages
            .into_iter()
            .map(|message| demand::need(&cluster, 1, message))
            .collect::<Result<Vec<_>, Refusal>>()
    };
    accepted(run.name, gate(messages.clone()))?;
    let subject = run.subject("gate", 0, NEEDS);
    let scan = |needs: &Vec<wire::CapacityNeed>| scan_needs(needs);
    Ok(vec![measure(run, &subject, || messages.clone(), scan, gate)])
}

/// How the needs of a roll-up are ordered.
#[derive(Clone, Copy)]
enum Order {
    /// By identity, as our operators send them.
    Identity,
    /// As they come, which the contract allows.
    Any,
}

pub(super) fn ordered_roll_up(run: &Run) -> Result<Vec<Measurement>, Error> {
    roll_up(run, Order::Identity)
}

pub(super) fn unordered_roll_up(run: &Run) -> Result<Vec<Measurement>, Error> {
    roll_up(run, Order::Any)
}

fn roll_up(run: &Run, order: Order) -> Result<Vec<Measurement>, Error> {
    const NEEDS: usize = 25_000;
    let cluster = ClusterId::from("bench");
    let gate = |message| demand::roll_up(&cluster, message);
    let mut message = roll_up_message(NEEDS);
    let rolled_up = accepted(run.name, gate(message.clone()))?;
    // A builder that made equal needs would measure fewer than it says.
    assert_eq!(rolled_up.needs.len(), NEEDS, "the builder makes distinct needs");
    if matches!(order, Order::Identity) {
        message.needs = rolled_up.needs.iter().map(Into::into).collect();
    }
    let subject = run.subject("gate", 0, NEEDS);
    let scan = |message: &wire::ClusterCapacityNeeds| scan_needs(&message.needs);
    Ok(vec![measure(run, &subject, || message.clone(), scan, gate)])
}

fn machine_message(i: usize) -> wire::Machine {
    let map = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    wire::Machine {
        id: format!("idle-{i}"),
        state: 3,
        host: Some(wire::HostRef { provider: "bench".to_owned(), r#ref: format!("host-{i}") }),
        instance_type: TYPES[i % TYPES.len()].to_owned(),
        zone: ZONES[i % ZONES.len()].to_owned(),
        capacity_type: 1 + i as i32 % 4,
        price_per_hour: 1.0 + 0.05 * (i % 17) as f64,
        interruption_probability: 0.01,
        resources: Some(wire::Resources { resources: map(&[("cpu", "16"), ("memory", "64Gi")]) }),
        labels: map(&[(RACK, &format!("rack-{}", i % 64))]),
        ..Default::default()
    }
}

pub(super) fn machines(run: &Run) -> Result<Vec<Measurement>, Error> {
    const MACHINES: usize = 100_000;
    let messages: Vec<_> = (0..MACHINES).map(machine_message).collect();
    let gate = |messages: Vec<wire::Machine>| {
        messages
            .into_iter()
            .map(|message| inventory::machine(message).map_err(|rejected| rejected.refusal))
            .collect::<Result<Vec<_>, Refusal>>()
    };
    accepted(run.name, gate(messages.clone()))?;
    let scan = |machines: &Vec<wire::Machine>| {
        machines.iter().map(|m| m.price_per_hour + m.id.len() as f64).sum::<f64>()
    };
    let subject = run.subject("gate", MACHINES, 0);
    Ok(vec![measure(run, &subject, || messages.clone(), scan, gate)])
}

fn accepted<T>(scenario: &'static str, result: Result<T, Refusal>) -> Result<T, Error> {
    result.map_err(|refusal| Error::BadScenario { scenario, refusal })
}
