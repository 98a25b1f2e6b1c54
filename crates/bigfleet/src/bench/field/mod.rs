//! `field-5k`, `field-50k`, `field-500k`: the standard catalogue of experience
//! chapter §7 as a shard meets it in the field, steady with 2 % churn a minute;
//! and `growth`.
//!
//! A cluster has all objects of the catalogue, about 5,200 machines and 4,600
//! needs. Machines carry the stamp of the need they were bought for. A twentieth
//! more is idle; the rest, up to 4.5 records for 1 of 5,000, is for sale. Only
//! machines of archetypes that ask for a common rack have one.

mod archetype;
mod demand;

use std::{collections::BTreeMap, sync::Arc};

use bigfleet_model::{CapacityType, MachineState, Stamp};

use super::{
    catalog::at,
    cycles::{Change, Recorder, cold, incremental, quiet, settle, steps},
    driver::Driver,
    make::{MachineSpec, Maker},
    measure::{Measurement, Run},
    random::Random,
};
use crate::error::Error;
use archetype::{CATALOGUE, Together};
use demand::Demand;

const SEED: u64 = 7;
/// Machine records for each cluster.
const RECORDS: usize = 22_500;
const NEEDS: usize = 4_600;
const RACK_MACHINES: usize = 32;
/// 2 % a minute of 24,586 objects, in cycles of five seconds.
const CHURN: usize = 41;

/// Places new machines: zones in turn, racks filled one after the other.
#[derive(Default)]
struct Site {
    maker: Maker,
    /// Machines made, by archetype.
    made: [usize; CATALOGUE.len()],
}

impl Site {
    fn add<'a>(
        &mut self,
        driver: &mut Driver,
        archetype: usize,
        vary: impl FnOnce(MachineSpec<'a>) -> MachineSpec<'a>,
    ) {
        let row = &CATALOGUE[archetype];
        let i = self.made[archetype];
        self.made[archetype] += 1;
        let racked = matches!(row.together, Together::Rack(..));
        let rack = i / RACK_MACHINES;
        let spec = MachineSpec {
            id: format!("{}-{i}", row.name),
            instance_type: row.name,
            zone: at(&["zone-a", "zone-b", "zone-c"], if racked { rack } else { i }),
            capacity_type: CapacityType::OnDemand,
            price: row.price,
            size: row.capacity,
            rack: racked.then(|| format!("rack-{}-{rack}", row.name)),
            ..MachineSpec::default()
        };
        driver.upsert(&self.maker.make(vary(spec)));
    }

    /// Leaves the rest of a rack to others if it is smaller than this.
    fn want_in_one_rack(&mut self, archetype: usize, machines: usize) -> usize {
        let left = RACK_MACHINES - self.made[archetype] % RACK_MACHINES;
        if machines <= left { 0 } else { left }
    }
}

/// Binds what a cluster wants.
fn bind(driver: &mut Driver, site: &mut Site, demand: &Demand) {
    // Gangs that fit a machine share machines with gangs of the same size.
    let mut places: BTreeMap<(usize, u64), u64> = BTreeMap::new();
    for item in &demand.items {
        let row = &CATALOGUE[item.archetype];
        let stamp = Arc::new(Stamp::of(&item.need));
        let gang = matches!(row.together, Together::Rack(..));
        let machines = if gang && item.units <= row.pods_per_machine {
            let left = places.entry((item.archetype, item.units)).or_default();
            let full = *left == 0;
            *left = if full { row.pods_per_machine / item.units } else { *left } - 1;
            u64::from(full)
        } else {
            item.units.div_ceil(row.pods_per_machine)
        };
        let configured = |spec| MachineSpec {
            state: MachineState::Configured,
            cluster: Some(&demand.id),
            stamp: Some(stamp.clone()),
            ..spec
        };
        if gang {
            for _ in 0..site.want_in_one_rack(item.archetype, machines as usize) {
                site.add(driver, item.archetype, |spec| spec);
            }
        }
        for _ in 0..machines {
            site.add(driver, item.archetype, configured);
        }
    }
}

fn build(mut driver: Driver, clusters: usize) -> (Driver, Vec<Demand>) {
    let mut site = Site::default();
    let shared = demand::shared();
    let mut demands = Vec::with_capacity(clusters);
    for c in 0..clusters {
        let demand = Demand::new(c, &shared, SEED);
        bind(&mut driver, &mut site, &demand);
        driver.replace(&demand.id, &demand.needs());
        demands.push(demand);
    }
    let bound = site.made;
    for (archetype, bound) in bound.into_iter().enumerate() {
        for _ in 0..bound.div_ceil(20) {
            site.add(&mut driver, archetype, |spec| spec);
        }
    }
    let (taken, all) = (driver.machines(), clusters * RECORDS);
    let bound_in_all: usize = bound.iter().sum();
    for (archetype, bound) in bound.into_iter().enumerate() {
        let last = archetype + 1 == CATALOGUE.len();
        let left = all - driver.machines();
        let share = if last { left } else { ((all - taken) * bound / bound_in_all).min(left) };
        for _ in 0..share {
            site.add(&mut driver, archetype, |spec| MachineSpec {
                state: MachineState::Speculative,
                ..spec
            });
        }
    }
    driver.assert_counts(clusters * RECORDS, clusters * NEEDS);
    (driver, demands)
}

/// `objects` come or go, in one cluster of twelve.
fn churn(
    driver: &mut Driver,
    demands: &mut [Demand],
    objects: usize,
    random: &mut Random,
) -> Change {
    let machines = driver.completions();
    let changing = demands.len().div_ceil(12);
    let mut roll_ups = Vec::with_capacity(changing);
    for _ in 0..changing {
        let chosen = random.below(demands.len());
        let demand = &mut demands[chosen];
        for _ in 0..objects / changing {
            demand.churn(random);
        }
        roll_ups.push((demand.id.clone(), demand.needs()));
    }
    Change { machines, roll_ups }
}

fn measure(run: &Run, clusters: usize) -> Vec<Measurement> {
    let (mut driver, mut demands) = build(run.driver(), clusters);
    settle(&mut driver, 20);
    let mut measured = cold(run, &mut driver);
    measured.extend(quiet(run, &mut driver));
    let mut random = Random::new(SEED);
    measured.extend(steps(run, &mut driver, "steady", |driver| {
        churn(driver, &mut demands, CHURN * clusters, &mut random)
    }));
    measured.extend(steps(run, &mut driver, "burst", |driver| {
        for demand in &demands {
            driver.replace(&demand.id, &demand.needs());
        }
        settle(driver, 10);
        let grown = |demand: &Demand| (demand.id.clone(), demand.grown());
        Change { roll_ups: demands.iter().map(grown).collect(), ..Change::default() }
    }));
    measured
}

pub(super) fn field_5k(run: &Run) -> Result<Vec<Measurement>, Error> {
    Ok(measure(run, 1))
}

pub(super) fn field_50k(run: &Run) -> Result<Vec<Measurement>, Error> {
    Ok(measure(run, 10))
}

pub(super) fn field_500k(run: &Run) -> Result<Vec<Measurement>, Error> {
    Ok(measure(run, 100))
}

/// Machines doubled three times, at the churn of a single cluster. The sizes take
/// turns, so that all meet the same noise. Memory is that of all of them.
pub(super) fn growth(run: &Run) -> Result<Vec<Measurement>, Error> {
    let build = |clusters| {
        let (mut driver, demands) = build(run.driver(), clusters);
        settle(&mut driver, 20);
        (driver, demands, Random::new(SEED), Recorder::new(run, "incremental"))
    };
    let mut sizes = [1, 2, 4, 8].map(build);
    let steps = sizes[0].3.steps();
    run.progress.expect("incremental", steps);
    for _ in 0..steps {
        for (driver, demands, random, recorder) in &mut sizes {
            let at = random.below(demands.len());
            let next = churn(driver, &mut demands[at..=at], CHURN, random);
            recorder.step(driver, &next, incremental);
        }
        run.progress.step();
    }
    let mut measured = Vec::new();
    for (driver, demands, _, recorder) in sizes {
        let name = format!("{}-x{}", run.name, demands.len());
        let found = recorder.measurements(run, &driver);
        measured.extend(found.into_iter().map(|one| Measurement { name: name.clone(), ..one }));
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::driver::Pass;

    #[test]
    fn a_cluster_of_the_field_is_served_and_stays_at_rest() {
        let (mut driver, _) = build(Driver::new(1), 1);
        driver.cycle(Pass::Full);
        let counts = driver.counts();
        assert_eq!((counts.sum(), driver.short()), (0, 0), "{counts:?}");
        driver.restamp();
        driver.cycle(Pass::Full);
        assert_eq!(driver.counts().sum(), 0, "re-stamping changes nothing");
    }

    #[test]
    fn churn_moves_a_few_machines_and_the_same_ones_for_a_seed() {
        let moved = || {
            let ((mut driver, mut demands), mut random) =
                (build(Driver::new(1), 1), Random::new(1));
            let mut moved = 0;
            for _ in 0..6 {
                churn(&mut driver, &mut demands, CHURN, &mut random).apply(&mut driver);
                driver.cycle(Pass::Incremental);
                driver.restamp();
                moved += driver.counts().sum();
            }
            moved
        };
        let first = moved();
        assert!((1..500).contains(&first), "{first} actions");
        assert_eq!(first, moved());
    }
}
