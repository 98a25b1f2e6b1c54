//! Scenario 15 of engine chapter §16, *fleet-500k*, and `scan` over its records.
//!
//! 200 clusters hold 2,000 machines of catalog R each. Their operators send one
//! need per profile and unit, and one per rack where machines must share it;
//! demand is what is bound, and machines carry the stamp of their need, so that
//! nothing is left to do. Each cycle a tenth of the clusters reports a fifth
//! more or less of everything: 2 % of demand moves.

use std::{collections::BTreeMap, sync::Arc};

use bigfleet_engine::Tracked;
use bigfleet_model::{ClusterId, MachineState, Need, Stamp};

use super::{
    assignment::speculative,
    catalog::{catalog_machine, catalog_need, pick},
    cycles::{Change, cold, quiet, settle, steps},
    driver::{Driver, Pass},
    make::{MachineSpec, Maker, NeedSpec, cluster, need},
    measure::{Measurement, Run, Samples, timed},
    random::Random,
};
use crate::error::Error;

const SEED: u64 = 15;

/// How large it is.
#[derive(Clone, Copy)]
struct Size {
    clusters: usize,
    bound_each: usize,
    idle: usize,
    speculative: usize,
}

const FULL: Size = Size { clusters: 200, bound_each: 2_000, idle: 50_000, speculative: 50_000 };

/// A cluster with what it wants at rest; units are the aggregate's.
pub(super) struct Cluster {
    pub(super) id: ClusterId,
    pub(super) needs: Vec<Need>,
}

fn build(mut driver: Driver, size: Size) -> (Driver, Vec<Cluster>) {
    let mut maker = Maker::default();
    let bind = |c: usize| {
        let bound = bound_cluster(&mut |made| driver.upsert(&made), &mut maker, size.bound_each, c);
        driver.replace(&bound.id, &bound.needs);
        bound
    };
    let clusters: Vec<_> = (0..size.clusters).map(bind).collect();
    for i in 0..size.idle {
        driver.upsert(&maker.make(catalog_machine(pick(i), i, format!("idle-{i}"))));
    }
    for i in 0..size.speculative {
        driver.upsert(&speculative(&mut maker, pick(i), i));
    }
    let machines = size.clusters * size.bound_each + size.idle + size.speculative;
    driver.assert_counts(machines, clusters.iter().map(|one| one.needs.len()).sum());
    (driver, clusters)
}

/// Makes the bound machines of one cluster, and a demand for exactly these.
pub(super) fn bound_cluster(
    take: &mut dyn FnMut(Tracked),
    maker: &mut Maker,
    bound_each: usize,
    c: usize,
) -> Cluster {
    let id = cluster(c);
    let mut needs: BTreeMap<String, (Need, Arc<Stamp>)> = BTreeMap::new();
    for j in 0..bound_each {
        let k = bound_each * c + j;
        let archetype = pick(k);
        let machine = catalog_machine(archetype, k, format!("cfg-{c}-{j}"));
        let shared = machine.rack.as_deref().filter(|_| archetype.same_rack).unwrap_or_default();
        let group = format!("{} {:?} {shared}", machine.instance_type, machine.size);
        let spec = NeedSpec { arrival: 1, ..catalog_need(archetype, &id, k) };
        let key = format!("{} {group}", spec.priority);
        let stamp = match needs.get_mut(&key) {
            Some((known, stamp)) => {
                known.aggregate.add_assign(&known.min_unit.clone());
                stamp.clone()
            }
            None => {
                let made = need(NeedSpec { group, ..spec });
                let stamp = Arc::new(Stamp::of(&made));
                needs.insert(key, (made, stamp.clone()));
                stamp
            }
        };
        take(maker.make(MachineSpec {
            state: MachineState::Configured,
            cluster: Some(&id),
            stamp: Some(stamp),
            ..machine
        }));
    }
    Cluster { id, needs: needs.into_values().map(|(need, _)| need).collect() }
}

/// Units of a need, times `percent`, at least one.
fn scaled(need: &Need, percent: usize) -> Need {
    let units = need
        .min_unit
        .iter()
        .map(|(dimension, one)| need.aggregate.get(dimension) / i128::from(one));
    let units = units.max().unwrap_or(1) as usize;
    let units = (units * percent).div_ceil(100).max(1);
    Need { aggregate: need.min_unit.scale(units as u64), ..need.clone() }
}

pub(super) fn roll_up(
    cluster: &Cluster,
    mut percent: impl FnMut() -> usize,
) -> (ClusterId, Vec<Need>) {
    let needs = cluster.needs.iter().map(|need| scaled(need, percent())).collect();
    (cluster.id.clone(), needs)
}

/// Every need of a tenth of the clusters a fifth up or down, or back to rest.
fn churn(driver: &mut Driver, clusters: &[Cluster], random: &mut Random) -> Change {
    let machines = driver.completions();
    let mut roll_ups = Vec::new();
    for _ in 0..clusters.len().div_ceil(10) {
        let cluster = &clusters[random.below(clusters.len())];
        roll_ups.push(roll_up(cluster, || [80, 100, 120][random.below(3)]));
    }
    Change { machines, roll_ups }
}

fn measure(run: &Run, size: Size) -> Vec<Measurement> {
    let (mut driver, clusters) = build(run.driver(), size);
    driver.cycle(Pass::Full);
    assert_eq!((driver.counts().sum(), driver.short()), (0, 0), "the fleet is at rest");
    let mut measured = cold(run, &mut driver);
    measured.extend(quiet(run, &mut driver));
    let rest =
        |clusters: &[Cluster]| clusters.iter().map(|one| roll_up(one, || 100)).collect::<Vec<_>>();

    measured.extend(steps(run, &mut driver, "burst", |driver| {
        for (id, needs) in rest(&clusters) {
            driver.replace(&id, &needs);
        }
        settle(driver, 10);
        Change {
            roll_ups: clusters.iter().map(|one| roll_up(one, || 110)).collect(),
            ..Change::default()
        }
    }));

    for (id, needs) in rest(&clusters) {
        driver.replace(&id, &needs);
    }
    settle(&mut driver, 10);
    let mut random = Random::new(SEED);
    measured
        .extend(steps(run, &mut driver, "steady", |driver| churn(driver, &clusters, &mut random)));
    measured
}

pub(super) fn fleet_500k(run: &Run) -> Result<Vec<Measurement>, Error> {
    Ok(measure(run, FULL))
}

/// The unit of all ratios, by itself: its own ratio is 1 but for noise.
pub(super) fn scan(run: &Run) -> Result<Vec<Measurement>, Error> {
    let (driver, _) = build(run.driver(), FULL);
    run.progress.expect("scanning", u64::from(run.cycles));
    let mut samples = Samples::default();
    for _ in 0..run.cycles {
        samples.scanned.push(timed(|| driver.scan()));
        samples.worked.push(timed(|| driver.scan()));
        run.progress.step();
    }
    let subject = run.subject("scan", driver.machines(), driver.needs());
    Ok(vec![samples.measurement(&subject)])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Size = Size { clusters: 4, bound_each: 500, idle: 250, speculative: 250 };

    #[test]
    fn a_fleet_is_at_rest_and_a_tenth_more_demand_binds_about_a_tenth() {
        let (mut driver, clusters) = build(Driver::new(1), SMALL);
        assert!(settle(&mut driver, 1), "built at rest");
        for (id, needs) in clusters.iter().map(|one| roll_up(one, || 110)) {
            driver.replace(&id, &needs);
        }
        driver.cycle(Pass::Incremental);
        let counts = driver.counts();
        assert!((200..600).contains(&(counts.bootstrap + counts.provision)), "{counts:?}");
        // A gang may move to a rack with room for all of it.
        assert!(counts.reclaim < 50 && counts.delete == 0, "{counts:?}");
    }

    #[test]
    fn the_same_seed_churns_the_same() {
        let actions = || {
            let ((mut driver, clusters), mut random) =
                (build(Driver::new(1), SMALL), Random::new(SEED));
            for _ in 0..3 {
                let change = churn(&mut driver, &clusters, &mut random);
                change.apply(&mut driver);
                driver.cycle(Pass::Incremental);
                driver.restamp();
            }
            driver.actions().to_vec()
        };
        let first = actions();
        assert!(!first.is_empty());
        assert_eq!(first, actions());
    }
}
