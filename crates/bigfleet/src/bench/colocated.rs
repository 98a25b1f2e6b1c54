//! Scenario 7 of engine chapter §16: gangs that fit a machine beside gangs that
//! do not, with folding and without.

use std::sync::Arc;

use bigfleet_model::{ClusterId, MachineState, Need, Stamp};

use super::{
    cycles::{cold, full},
    make::{MachineSpec, Maker, NeedSpec, Size, cluster, need},
    measure::{Measurement, Run},
};
use crate::error::Error;

/// A machine with the unit that its allocatable is a multiple of.
struct Shape {
    kind: &'static str,
    unit: Size,
    allocatable: Size,
    /// Infix of its racks.
    racks: Option<&'static str>,
    bound: usize,
}

const SMALL: Shape = Shape {
    kind: "m6i.large",
    unit: &[("cpu", "400m"), ("memory", "500Mi")],
    allocatable: &[("cpu", "40"), ("memory", "50000Mi")],
    racks: None,
    bound: 175,
};
const SERVICE: Shape = Shape {
    kind: "m6i.xlarge",
    unit: &[("cpu", "2200m"), ("memory", "8500Mi")],
    allocatable: &[("cpu", "22"), ("memory", "85000Mi")],
    racks: None,
    bound: 30,
};
const MEMORY: Shape = Shape {
    kind: "r6i.2xlarge",
    unit: &[("cpu", "4"), ("memory", "32Gi")],
    allocatable: &[("cpu", "40"), ("memory", "320Gi")],
    racks: Some("r6i"),
    bound: 30,
};
const GPU: Shape = Shape {
    kind: "a3-highgpu-8g",
    unit: &[("cpu", "64"), ("nvidia.com/gpu", "8")],
    allocatable: &[("cpu", "64"), ("nvidia.com/gpu", "8")],
    racks: Some("a3"),
    bound: 15,
};

impl Shape {
    fn machine(&self, i: usize, id: String) -> MachineSpec<'static> {
        MachineSpec {
            id,
            instance_type: self.kind,
            size: self.allocatable,
            rack: self.racks.map(|infix| format!("zone-a-{infix}-rack-{}", i / 8 % 12)),
            ..MachineSpec::default()
        }
    }
}

fn needs(id: &ClusterId) -> Vec<Need> {
    let wanted = |shape: &Shape, types: &[&str], priority, units, gang: Option<usize>| {
        need(NeedSpec {
            cluster: id,
            types,
            priority,
            penalties: (8192.0, 8192.0),
            unit: shape.unit,
            units,
            same_rack: gang.is_some(),
            group: gang.map(|number| format!("{}-{number}", shape.kind)).unwrap_or_default(),
            arrival: 1,
        })
    };
    let mut needs = vec![
        wanted(&SMALL, &[SMALL.kind, SERVICE.kind], 100, 17_500, None),
        wanted(&SERVICE, &[SERVICE.kind], 1000, 3_000, None),
    ];
    needs.extend((0..95).map(|gang| wanted(&MEMORY, &[MEMORY.kind], 1000, 4, Some(gang))));
    needs.extend((0..32).map(|gang| wanted(&GPU, &[GPU.kind], 1000, 5, Some(gang))));
    needs
}

pub(super) fn colocated_5k(run: &Run) -> Result<Vec<Measurement>, Error> {
    let (mut driver, mut maker) = (run.driver(), Maker::default());
    let stamp = Arc::new(Stamp {
        priority: Some(1000),
        interruption: 8192.0,
        reclamation: 8192.0,
        ..Stamp::default()
    });
    for c in 0..20 {
        let id = cluster(c);
        let mut number = 0;
        for shape in [&SMALL, &SERVICE, &MEMORY, &GPU] {
            for i in 0..shape.bound {
                driver.upsert(&maker.make(MachineSpec {
                    state: MachineState::Configured,
                    cluster: Some(&id),
                    stamp: Some(stamp.clone()),
                    ..shape.machine(i, format!("cfg-{c}-{number}"))
                }));
                number += 1;
            }
        }
        driver.replace(&id, &needs(&id));
    }
    let rotating = [&SMALL, &MEMORY, &GPU];
    for i in 0..1_000 {
        driver.upsert(&maker.make(rotating[i % 3].machine(i, format!("idle-{i}"))));
    }
    for i in 0..12_000 {
        let machine = rotating[i % 3].machine(i, format!("spec-{i}"));
        driver.upsert(&maker.make(MachineSpec { state: MachineState::Speculative, ..machine }));
    }
    driver.assert_counts(18_000, 2_580);
    let mut measured = cold(run, &mut driver);
    driver.set_folding(false);
    measured.extend(full(run, &mut driver, "unfolded"));
    Ok(measured)
}
