//! Scenarios of the decision engine (engine chapter §16). Every builder asserts
//! its counts before anything is timed: a silently rejected seed would make the
//! numbers meaningless.

use std::sync::Arc;

use bigfleet_engine::{CycleInput, decide};
use bigfleet_model::{CapacityType, ClusterId, MachineState, Need, Stamp};

use super::{
    catalog::{CATALOG, Fleet, MachineSpec, NeedSpec, at, catalog_need, need, pick},
    measure::{Measurement, Subject, measure},
};
use crate::error::Error;

const TYPES: [&str; 5] =
    ["a3-highgpu-8g", "m6i.large", "c6i.4xlarge", "n2-standard-32", "r6i.xlarge"];

fn cluster(number: usize) -> ClusterId {
    ClusterId::from(format!("cluster-{number:05}"))
}

fn world(fleet: Fleet, demand: Vec<Need>, machines: usize, needs: usize) -> CycleInput {
    let demand = bigfleet_engine::input::merge(demand);
    assert_eq!(fleet.machines.len(), machines, "machines of the scenario");
    assert_eq!(demand.len(), needs, "needs of the scenario");
    let bound = fleet.machines.iter().filter_map(|tracked| tracked.machine.cluster.clone());
    CycleInput {
        ready: bound.chain(demand.iter().map(|need| need.cluster.clone())).collect(),
        snapshot: fleet.machines,
        demand,
        ..CycleInput::default()
    }
}

/// Gives a need a group of its own, so that it merges with no other: the
/// scenarios count needs as they are made.
fn apart(need: Need, number: usize) -> Need {
    Need { group: format!("need-{number}").into(), ..need }
}

/// Times whole cycles, cold: nothing is kept from one to the next.
fn full(name: &'static str, cycles: u32, input: &CycleInput) -> Vec<Measurement> {
    let (machines, needs) = (input.snapshot.len(), input.demand.len());
    let subject = Subject { name, variant: "cold", machines, needs };
    let scan = |input: &&CycleInput| {
        let machines = input.snapshot.iter().map(|one| one.machine.class.price_per_hour);
        machines.sum::<f64>() + input.demand.iter().map(|need| need.arrival as f64).sum::<f64>()
    };
    vec![measure(&subject, cycles, || input, scan, decide)]
}

pub(super) fn realistic_50k(name: &'static str, cycles: u32) -> Result<Vec<Measurement>, Error> {
    let mut fleet = Fleet::default();
    for archetype in &CATALOG {
        for i in 0..600 * archetype.weight {
            let id = format!("idle-{}", fleet.machines.len());
            fleet.add_catalog(archetype, i, |spec| MachineSpec { id, ..spec });
        }
    }
    let mut demand = Vec::new();
    for c in 0..50 {
        for i in 0..1_000 {
            demand.push(apart(catalog_need(pick(1_000 * c + i), &cluster(c), i, 1), i));
        }
    }
    let input = world(fleet, demand, 60_000, 50_000);
    Ok(full(name, cycles, &input))
}

pub(super) fn late_5k(name: &'static str, cycles: u32) -> Result<Vec<Measurement>, Error> {
    let mut fleet = Fleet::default();
    for c in 0..20 {
        for j in 0..250 {
            let (id, name) = (format!("cfg-{c}-{j}"), format!("cluster-{c:05}"));
            let spec = |spec| MachineSpec { id, state: MachineState::Configured, ..spec };
            fleet.add_catalog(pick(250 * c + j), j, spec);
            if let Some(last) = fleet.machines.last_mut() {
                last.machine.cluster = Some(ClusterId::from(name));
            }
        }
    }
    for i in 0..1_000 {
        let id = format!("idle-{i}");
        fleet.add_catalog(pick(i), i, |spec| MachineSpec { id, ..spec });
    }
    for i in 0..12_000 {
        let id = format!("spec-{i}");
        fleet.add_catalog(pick(i), i, |spec| MachineSpec {
            id,
            state: MachineState::Speculative,
            capacity_type: CapacityType::OnDemand,
            price: 1.0,
            ..spec
        });
    }
    let of_cluster = |c: usize| {
        (0..8).map(move |f| apart(catalog_need(pick(8 * c + f), &cluster(c), f, 3_125), f))
    };
    let input = world(fleet, (0..20).flat_map(of_cluster).collect(), 18_000, 160);
    Ok(full(name, cycles, &input))
}

pub(super) fn phase3_high_demand(
    name: &'static str,
    cycles: u32,
) -> Result<Vec<Measurement>, Error> {
    let stamp = Arc::new(Stamp {
        priority: Some(100),
        interruption: 1.0,
        reclamation: 1.0,
        ..Stamp::default()
    });
    let mut fleet = Fleet::default();
    for i in 0..500_000 {
        let bound = format!("cluster-{:05}", i % 50);
        fleet.add(MachineSpec {
            id: format!("cfg-{}-{}", i % 50, i),
            state: MachineState::Configured,
            cluster: Some(&bound),
            instance_type: at(&TYPES, i),
            zone: "zone-a",
            capacity_type: CapacityType::OnDemand,
            price: 0.0,
            size: &[("cpu", "1")],
            rack: None,
            stamp: Some(stamp.clone()),
        });
    }
    let of_cluster = |c: usize| {
        (0..3).map(move |k| {
            need(NeedSpec {
                cluster: &cluster(c),
                types: &[at(&TYPES, c + k)],
                priority: 1_000_000,
                penalties: (8192.0, f64::INFINITY),
                unit: &[("cpu", "1")],
                units: 3_333,
                same_rack: false,
                group: String::new(),
                arrival: 1,
            })
        })
    };
    let input = world(fleet, (0..50).flat_map(of_cluster).collect(), 500_000, 150);
    Ok(full(name, cycles, &input))
}
