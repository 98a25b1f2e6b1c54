//! Scenarios 8, 9, 9b, 10 and 17 of engine chapter §16: bound machines, of which
//! Phases 2 and 3 take some.

use std::sync::Arc;

use bigfleet_engine::ActionCounts;
use bigfleet_model::{CapacityType, ClusterId, MachineState, Stamp};

use super::{
    assignment::TYPES,
    catalog::at,
    cycles::cold,
    driver::Pass,
    make::{MachineSpec, Maker, NeedSpec, cluster, need},
    measure::{Measurement, Run},
};
use crate::error::Error;

type Measured = Result<Vec<Measurement>, Error>;

/// One core, as all machines here are.
const CORE: &[(&str, &str)] = &[("cpu", "1")];

fn stamp(priority: i32, interruption: f64, reclamation: f64) -> Arc<Stamp> {
    let priority = Some(priority);
    Arc::new(Stamp { priority, interruption, reclamation, ..Stamp::default() })
}

/// Machine `i` of a cluster.
fn bound<'a>(
    cluster: &'a (usize, ClusterId),
    i: usize,
    kind: &'a str,
    stamp: &Arc<Stamp>,
) -> MachineSpec<'a> {
    MachineSpec {
        id: format!("cfg-{}-{i}", cluster.0),
        state: MachineState::Configured,
        cluster: Some(&cluster.1),
        instance_type: kind,
        size: CORE,
        stamp: Some(stamp.clone()),
        ..MachineSpec::default()
    }
}

fn clusters(from: usize, count: usize) -> Vec<(usize, ClusterId)> {
    (from..from + count).map(|number| (number, cluster(number))).collect()
}

fn cores<'a>(
    cluster: &'a ClusterId,
    kind: &'a [&'a str],
    priority: i32,
    units: u64,
) -> NeedSpec<'a> {
    NeedSpec {
        cluster,
        types: kind,
        priority,
        penalties: (8192.0, f64::INFINITY),
        unit: CORE,
        units,
        same_rack: false,
        group: String::new(),
        arrival: 1,
    }
}

/// The holders have not reported, so that nothing is excess: every machine taken
/// is a victim.
pub(super) fn phase2_inversions(run: &Run) -> Measured {
    let (mut driver, mut maker) = (run.driver(), Maker::default());
    let (stamp, holders) = (stamp(100, 1.0, 1.0), clusters(0, 10));
    for i in 0..100_000 {
        driver.upsert(maker.make(bound(&holders[i % 10], i, at(&TYPES, i), &stamp)));
    }
    for (i, (_, id)) in clusters(10, 100).iter().enumerate() {
        driver.replace(id, vec![need(cores(id, &[at(&TYPES, i)], 1_000_000, 5))]);
    }
    driver.assert_counts(100_000, 100);
    driver.cycle(Pass::Full);
    assert_eq!(
        driver.counts(),
        ActionCounts { preempt: 500, ..ActionCounts::default() },
        "victims"
    );
    Ok(cold(run, &mut driver))
}

pub(super) fn phase3_high_demand(run: &Run) -> Measured {
    high_demand(run, |i| i)
}

pub(super) fn phase3_high_demand_mixed(run: &Run) -> Measured {
    high_demand(run, |i| i / 50)
}

fn high_demand(run: &Run, kind: impl Fn(usize) -> usize) -> Measured {
    let (mut driver, mut maker) = (run.driver(), Maker::default());
    let (stamp, holders) = (stamp(100, 1.0, 1.0), clusters(0, 50));
    for i in 0..500_000 {
        let machine = bound(&holders[i % 50], i, at(&TYPES, kind(i)), &stamp);
        let on_demand = MachineSpec { capacity_type: CapacityType::OnDemand, ..machine };
        driver.upsert(maker.make(on_demand));
    }
    for (c, id) in &holders {
        let of_kind = |k| need(cores(id, &[at(&TYPES, c + k)], 1_000_000, 3_333));
        driver.replace(id, (0..3).map(of_kind).collect());
    }
    driver.assert_counts(500_000, 150);
    Ok(cold(run, &mut driver))
}

/// Every need is short, but nobody is less important: Phase 2 must see that at
/// once.
pub(super) fn phase3_keep_all(run: &Run) -> Measured {
    const KIND: &str = "a3-highgpu-8g";
    let (mut driver, mut maker) = (run.driver(), Maker::default());
    let stamp = stamp(1_000_000, 8192.0, 65_536.0);
    for holder in clusters(0, 50) {
        for i in 0..9_000 {
            driver.upsert(maker.make(bound(&holder, i, KIND, &stamp)));
        }
        let wanted = cores(&holder.1, &[KIND], 1000, 10_000);
        let wanted = NeedSpec { penalties: (8192.0, 65_536.0), ..wanted };
        driver.replace(&holder.1, vec![need(wanted)]);
    }
    driver.assert_counts(450_000, 50);
    driver.cycle(Pass::Full);
    assert_eq!(driver.counts(), ActionCounts::default(), "nothing is taken");
    Ok(cold(run, &mut driver))
}

/// 50 clusters hold 10,000 machines each, all of them claimed: per type and
/// priority (100 to 2,000) a need of 100 machines. Then 5,000 needs of five
/// machines come from 100 other clusters, half of them above all holders, half
/// in the middle, where only half of the fleet may be taken.
pub(super) fn preempt_storm(run: &Run) -> Measured {
    let (mut driver, mut maker) = (run.driver(), Maker::default());
    for holder in clusters(0, 50) {
        let mut needs = Vec::new();
        for slot in 0..100 {
            let (kind, priority) = (at(&TYPES, slot), 100 * (1 + slot as i32 / 5));
            let group = format!("slot-{slot}");
            let held = need(NeedSpec {
                penalties: (64.0, 64.0),
                group,
                ..cores(&holder.1, &[kind], priority, 100)
            });
            let stamp = Arc::new(Stamp::of(&held));
            for i in 0..100 {
                driver.upsert(maker.make(bound(&holder, 100 * slot + i, kind, &stamp)));
            }
            needs.push(held);
        }
        driver.replace(&holder.1, needs);
    }
    for (c, id) in clusters(50, 100) {
        let residual = |k: usize| {
            let priority = if k.is_multiple_of(2) { 1_000_000 } else { 1_050 };
            let group = format!("storm-{k}");
            need(NeedSpec { group, ..cores(&id, &[at(&TYPES, c + k / 2)], priority, 5) })
        };
        driver.replace(&id, (0..50).map(residual).collect());
    }
    driver.assert_counts(500_000, 10_000);
    driver.cycle(Pass::Full);
    assert_eq!(
        driver.counts(),
        ActionCounts { preempt: 25_000, ..ActionCounts::default() },
        "victims"
    );
    Ok(cold(run, &mut driver))
}
