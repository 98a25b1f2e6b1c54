//! Scenarios 1 to 6 and 11 of engine chapter §16: Phase 1 in the main.

use bigfleet_engine::Tracked;
use bigfleet_model::{CapacityType, ClusterId, MachineState, Need};

use super::{
    catalog::{Archetype, CATALOG, at, catalog_machine, catalog_need, pick},
    cycles::{Change, cold, settle, steps},
    driver::Driver,
    make::{MachineSpec, Maker, NeedSpec, Size, cluster, need},
    measure::{Measurement, Run},
};
use crate::error::Error;

type Measured = Result<Vec<Measurement>, Error>;

/// 600 idle machines for each point of an archetype's weight.
fn idle_catalog(driver: &mut Driver, maker: &mut Maker) {
    for archetype in &CATALOG {
        for i in 0..600 * archetype.weight {
            let id = format!("idle-{}", driver.machines());
            driver.upsert(&maker.make(catalog_machine(archetype, i, id)));
        }
    }
}

/// Replaces the needs of every cluster by `count` catalog needs, changed at will.
fn catalog_needs(
    driver: &mut Driver,
    (clusters, count): (usize, usize),
    vary: impl Fn(NeedSpec<'_>) -> NeedSpec<'_>,
) {
    for c in 0..clusters {
        let id = cluster(c);
        let made = |i| need(vary(catalog_need(pick(count * c + i), &id, i)));
        driver.replace(&id, &(0..count).map(made).collect::<Vec<_>>());
    }
}

pub(super) fn realistic_50k(run: &Run) -> Measured {
    let mut driver = run.driver();
    idle_catalog(&mut driver, &mut Maker::default());
    catalog_needs(&mut driver, (50, 1_000), |spec| spec);
    driver.assert_counts(60_000, 50_000);
    Ok(cold(run, &mut driver))
}

pub(super) fn realistic_50k_all_same(run: &Run) -> Measured {
    let mut driver = run.driver();
    idle_catalog(&mut driver, &mut Maker::default());
    catalog_needs(&mut driver, (50, 1_000), |spec| NeedSpec { same_rack: true, ..spec });
    driver.assert_counts(60_000, 50_000);
    Ok(cold(run, &mut driver))
}

/// 5,000 bound, 1,000 idle and 12,000 speculative machines.
fn late_fleet(driver: &mut Driver) {
    let mut maker = Maker::default();
    for c in 0..20 {
        let bound = cluster(c);
        for j in 0..250 {
            let machine = catalog_machine(pick(250 * c + j), j, format!("cfg-{c}-{j}"));
            let state = MachineState::Configured;
            let spec = MachineSpec { state, cluster: Some(&bound), ..machine };
            driver.upsert(&maker.make(spec));
        }
    }
    for i in 0..1_000 {
        driver.upsert(&maker.make(catalog_machine(pick(i), i, format!("idle-{i}"))));
    }
    for i in 0..12_000 {
        driver.upsert(&speculative(&mut maker, pick(i), i));
    }
}

/// On demand, for a dollar an hour.
pub(super) fn speculative(maker: &mut Maker, archetype: &Archetype, i: usize) -> Tracked {
    maker.make(MachineSpec {
        state: MachineState::Speculative,
        capacity_type: CapacityType::OnDemand,
        price: 1.0,
        ..catalog_machine(archetype, i, format!("spec-{i}"))
    })
}

pub(super) fn late_5k(run: &Run) -> Measured {
    let mut driver = run.driver();
    late_fleet(&mut driver);
    catalog_needs(&mut driver, (20, 8), |spec| NeedSpec { units: 3_125, ..spec });
    driver.assert_counts(18_000, 160);
    Ok(cold(run, &mut driver))
}

pub(super) fn late_5k_unaggregated(run: &Run) -> Measured {
    let mut driver = run.driver();
    late_fleet(&mut driver);
    catalog_needs(&mut driver, (20, 12_500), |spec| spec);
    driver.assert_counts(18_000, 250_000);
    Ok(cold(run, &mut driver))
}

/// One gang of one unit per cluster.
fn single_gangs(driver: &mut Driver, clusters: usize, kind: &str, unit: Size) {
    for c in 0..clusters {
        let id = cluster(c);
        let gang = need(NeedSpec {
            cluster: &id,
            types: &[kind],
            priority: 1000,
            penalties: (8192.0, 8192.0),
            unit,
            units: 1,
            same_rack: true,
            group: "gang".to_owned(),
            arrival: c as i64 + 1,
        });
        driver.replace(&id, &[gang]);
    }
}

fn racked_idle(driver: &mut Driver, count: usize, kind: &str, size: Size, rack: &str) {
    let mut maker = Maker::default();
    for i in 0..count {
        driver.upsert(&maker.make(MachineSpec {
            id: format!("idle-{i}"),
            instance_type: kind,
            size,
            rack: Some(format!("{rack}-{}", i % 8)),
            ..MachineSpec::default()
        }));
    }
}

pub(super) fn same_pool_100k(run: &Run) -> Measured {
    const SIZE: Size = &[("cpu", "4"), ("memory", "32Gi")];
    let mut driver = run.driver();
    racked_idle(&mut driver, 100_000, "r6i.2xlarge", SIZE, "rack-mem");
    single_gangs(&mut driver, 20_000, "r6i.2xlarge", SIZE);
    driver.assert_counts(100_000, 20_000);
    Ok(cold(run, &mut driver))
}

pub(super) fn same_repeated(run: &Run) -> Measured {
    const SIZE: Size = &[("cpu", "4")];
    let mut driver = run.driver();
    racked_idle(&mut driver, 10_000, "c6i.4xlarge", SIZE, "rack");
    single_gangs(&mut driver, 50_000, "c6i.4xlarge", SIZE);
    driver.assert_counts(10_000, 50_000);
    Ok(cold(run, &mut driver))
}

/// The types of scenarios 8, 9 and 11, and what one machine of each offers in 11.
pub(super) const TYPES: [&str; 5] =
    ["a3-highgpu-8g", "m6i.large", "c6i.4xlarge", "n2-standard-32", "r6i.xlarge"];
const SIZES: [Size; 5] = [
    &[("nvidia.com/gpu", "8")],
    &[("cpu", "2"), ("memory", "8Gi")],
    &[("cpu", "16"), ("memory", "32Gi")],
    &[("cpu", "32"), ("memory", "128Gi")],
    &[("cpu", "4"), ("memory", "32Gi")],
];

fn steady_needs(id: &ClusterId, c: usize) -> Vec<Need> {
    let made = |i: usize| {
        need(NeedSpec {
            cluster: id,
            types: &[at(&TYPES, c + i)],
            priority: 1000 + 1000 * (i as i32 % 10),
            penalties: (8192.0, 8192.0),
            unit: at(&SIZES, c + i),
            units: 1,
            same_rack: false,
            group: format!("need-{i}"),
            arrival: i as i64 + 1,
        })
    };
    (0..1_000).map(made).collect()
}

/// Everything from scratch, then the step of a shard whose instant provider has
/// done all there was to do.
fn cycle_steady(run: &Run, machines: usize) -> Measured {
    let mut driver = run.driver();
    let mut maker = Maker::default();
    for i in 0..machines {
        driver.upsert(&maker.make(MachineSpec {
            id: format!("idle-{i}"),
            instance_type: at(&TYPES, i),
            zone: at(&["zone-a", "zone-b", "zone-c"], i),
            size: at(&SIZES, i),
            ..MachineSpec::default()
        }));
    }
    for c in 0..50 {
        let id = cluster(c);
        driver.replace(&id, &steady_needs(&id, c));
    }
    driver.assert_counts(machines, 50_000);
    let mut measured = cold(run, &mut driver);
    settle(&mut driver, 10);
    measured.extend(steps(run, &mut driver, "steady", |driver| Change {
        machines: driver.completions(),
        ..Change::default()
    }));
    Ok(measured)
}

pub(super) fn cycle_steady_1k(run: &Run) -> Measured {
    cycle_steady(run, 1_000)
}

pub(super) fn cycle_steady_10k(run: &Run) -> Measured {
    cycle_steady(run, 10_000)
}

pub(super) fn cycle_steady_50k(run: &Run) -> Measured {
    cycle_steady(run, 50_000)
}

pub(super) fn cycle_steady_100k(run: &Run) -> Measured {
    cycle_steady(run, 100_000)
}

pub(super) fn cycle_steady_500k(run: &Run) -> Measured {
    cycle_steady(run, 500_000)
}
