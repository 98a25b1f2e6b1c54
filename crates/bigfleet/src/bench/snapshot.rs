//! Scenarios 12 to 14 of engine chapter §16: parts of a cycle by themselves. The
//! engine keeps what it knows, so its state is the snapshot: building one is
//! taking everything in from nothing, and the next costs what changed.

use std::{hint::black_box, sync::Arc};

use bigfleet_engine::Tracked;
use bigfleet_model::{CapacityType, ClusterId, MachineState, Need, Stamp};

use super::{
    catalog::at,
    cycles::{Change, preparations, steps},
    driver::{Driver, Pass},
    make::{MachineSpec, Maker, NeedSpec, Size, cluster, need},
    measure::{Measurement, Run, measure},
};
use crate::error::Error;

type Measured = Result<Vec<Measurement>, Error>;

const CLUSTERS: usize = 50;

/// A gang of four machines that nobody ever delivers: each cycle it compares the
/// totals of 30 racks, and plans.
pub(super) fn domain_totals(run: &Run) -> Measured {
    const SIZE: Size = &[("cpu", "8"), ("memory", "64Gi")];
    let (mut driver, mut maker, id) = (run.driver(), Maker::default(), cluster(0));
    for i in 0..12_000 {
        driver.upsert(&maker.make(MachineSpec {
            id: format!("spec-{i}"),
            state: MachineState::Speculative,
            instance_type: "r6i.2xlarge",
            size: SIZE,
            rack: Some(format!("zone-a-rack-{}", i % 30)),
            ..MachineSpec::default()
        }));
    }
    let gang = need(NeedSpec {
        cluster: &id,
        types: &["r6i.2xlarge"],
        priority: 1000,
        penalties: (8192.0, 8192.0),
        unit: SIZE,
        units: 4,
        same_rack: true,
        group: "gang".to_owned(),
        arrival: 1,
    });
    driver.replace(&id, &[gang]);
    driver.assert_counts(12_000, 1);
    driver.cycle(Pass::Full);
    assert_eq!(driver.counts().provision, 4, "the gang is served");
    Ok(steps(run, &mut driver, "one-need", |_| Change::default()))
}

/// 800 idle and 400 bound machines for each cluster.
fn inventory() -> Vec<Tracked> {
    const TYPES: [&str; 6] =
        ["a3-highgpu-8g", "m6i.large", "m6i.xlarge", "c6i.4xlarge", "n2-standard-32", "r6i.xlarge"];
    let mut maker = Maker::default();
    let mut machines = Vec::with_capacity(CLUSTERS * 1_200);
    for c in 0..CLUSTERS {
        let id = cluster(c);
        for i in 0..1_200 {
            let bound = i >= 800;
            let stamp = Stamp {
                priority: Some(1000 + (i % 500) as i32),
                reclamation: (i % 8192) as f64,
                ..Stamp::default()
            };
            machines.push(maker.make(MachineSpec {
                id: if bound { format!("cfg-{c}-{i}") } else { format!("idle-{}", 800 * c + i) },
                state: if bound { MachineState::Configured } else { MachineState::Idle },
                cluster: bound.then_some(&id),
                instance_type: at(&TYPES, i),
                capacity_type: CapacityType::OnDemand,
                price: 1.0 + 0.05 * (i % 17) as f64,
                size: &[("cpu", "16"), ("memory", "64Gi")],
                stamp: bound.then(|| Arc::new(stamp)),
                ..MachineSpec::default()
            }));
        }
    }
    machines
}

/// `cold`: from nothing. `steady`: one machine has changed.
pub(super) fn inventory_snapshot(run: &Run) -> Measured {
    let machines = inventory();
    let mut driver = run.driver();
    machines.iter().for_each(|machine| driver.upsert(machine));
    driver.assert_counts(60_000, 0);
    driver.cycle(Pass::Full);
    let subject = run.subject("cold", 60_000, 0);
    let load = |()| {
        let mut driver = Driver::new(1);
        machines.iter().for_each(|machine| driver.upsert(machine));
        driver.prepare();
        driver
    };
    let mut measured = vec![measure(run, &subject, || (), |()| black_box(&driver).scan(), load)];
    // A bound machine has come back, and goes again.
    let mut turn = 0;
    measured.extend(preparations(run, &mut driver, "steady", |_| {
        let mut machine = machines[turn / 2 % 400 + 800].clone();
        if turn % 2 == 0 {
            machine.machine.state = MachineState::Idle;
            machine.machine.cluster = None;
            machine.machine.stamp = None;
        }
        turn += 1;
        Change { machines: vec![machine], ..Change::default() }
    }));
    Ok(measured)
}

fn gangs(id: &ClusterId, c: usize) -> Vec<Need> {
    let gang = |i: usize| {
        need(NeedSpec {
            cluster: id,
            types: &["c6i.4xlarge"],
            priority: 1000,
            penalties: (8192.0, 8192.0),
            unit: &[("cpu", "4")],
            units: 1,
            same_rack: true,
            group: format!("gang-{i}"),
            arrival: (1_000 * c + i) as i64,
        })
    };
    (0..1_000).map(gang).collect()
}

/// `cold`: all clusters from nothing, then one of them gone. `steady`: one
/// cluster goes, or has come back.
pub(super) fn needs_snapshot(run: &Run) -> Measured {
    let roll_up = |c| {
        let id = cluster(c);
        let needs = gangs(&id, c);
        (id, needs)
    };
    let roll_ups: Vec<_> = (0..CLUSTERS).map(roll_up).collect();
    let mut driver = run.driver();
    roll_ups.iter().for_each(|(id, needs)| driver.replace(id, needs));
    driver.assert_counts(0, 50_000);
    driver.cycle(Pass::Full);
    let subject = run.subject("cold", 0, 50_000);
    let load = |()| {
        let mut driver = Driver::new(1);
        roll_ups.iter().for_each(|(id, needs)| driver.replace(id, needs));
        driver.prepare();
        driver.replace(&roll_ups[0].0, &[]);
        driver.prepare();
        driver
    };
    // There are no machines to scan, so needs are read instead.
    let scan = |(): &()| {
        black_box(&roll_ups)
            .iter()
            .flat_map(|(_, needs)| needs)
            .map(|need| need.arrival)
            .sum::<i64>()
    };
    let mut measured = vec![measure(run, &subject, || (), scan, load)];
    let unit_ms = measured[0].p50_ms / measured[0].scan_ratio;
    let mut turn = 0;
    let steady = preparations(run, &mut driver, "steady", |_| {
        let (id, needs) = &roll_ups[turn / 2 % CLUSTERS];
        let needs = if turn % 2 == 0 { vec![] } else { needs.clone() };
        turn += 1;
        Change { roll_ups: vec![(id.clone(), needs)], ..Change::default() }
    });
    measured.extend(
        steady.into_iter().map(|one| Measurement { scan_ratio: one.p50_ms / unit_ms, ..one }),
    );
    Ok(measured)
}
