//! Scenario 16 of engine chapter §16, *gangs-776k*: 2,000 clusters with 361
//! gangs of 3 to 8 and 27 plain needs each.
//!
//! If all 722,000 gangs were of whole machines, four million machines would be
//! needed, eight times a shard's ceiling. So one in twelve is, and spans
//! machines of one rack; the others are of small units, up to ten of them to a
//! machine, and fold. 550,000 idle machines can serve all but a few.

use bigfleet_model::{ClusterId, Need};

use super::{
    cycles::{Change, cold, quiet, steps},
    driver::Driver,
    make::{MachineSpec, Maker, NeedSpec, Size, cluster, need},
    measure::{Measurement, Run},
    random::Random,
};
use crate::error::Error;

const SEED: u64 = 16;
const GANGS: usize = 361;
const PLAIN: usize = 27;
const RACK_MACHINES: usize = 48;

/// Type, size, and how many of them in ten thousand of the fleet.
const FLEET: [(&str, Size, usize); 3] = [
    ("whole", &[("cpu", "16"), ("memory", "64Gi")], 6_300),
    ("shared", &[("cpu", "64"), ("memory", "256Gi")], 2_500),
    ("small", &[("cpu", "4"), ("memory", "16Gi")], 1_200),
];

fn needs(id: &ClusterId, c: usize) -> Vec<Need> {
    let mut random = Random::new(SEED + c as u64);
    let wanted = |kind: usize, unit: Size, units: usize, same_rack, number: usize| {
        need(NeedSpec {
            cluster: id,
            types: &[FLEET[kind].0],
            priority: [100, 1000][number % 2],
            penalties: (1024.0, 8192.0),
            unit,
            units: units as u64,
            same_rack,
            group: format!("{}-{number}", if same_rack { "gang" } else { "plain" }),
            arrival: 1 + number as i64,
        })
    };
    let mut needs = Vec::with_capacity(GANGS + PLAIN);
    for number in 0..GANGS {
        let size = random.within(3, 8);
        needs.push(if number % 12 == 0 {
            wanted(0, FLEET[0].1, size, true, number)
        } else {
            wanted(1, &[("cpu", "2"), ("memory", "8Gi")], size, true, number)
        });
    }
    needs.extend((0..PLAIN).map(|number| wanted(2, FLEET[2].1, 1, false, number)));
    needs
}

fn build(mut driver: Driver, clusters: usize, machines: usize) -> Driver {
    let mut maker = Maker::default();
    for (kind, size, share) in FLEET {
        for i in 0..machines * share / 10_000 {
            driver.upsert(&maker.make(MachineSpec {
                id: format!("idle-{kind}-{i}"),
                instance_type: kind,
                size,
                rack: Some(format!("rack-{kind}-{}", i / RACK_MACHINES)),
                ..MachineSpec::default()
            }));
        }
    }
    for c in 0..clusters {
        let id = cluster(c);
        driver.replace(&id, &needs(&id, c));
    }
    driver.assert_counts(machines, clusters * (GANGS + PLAIN));
    driver
}

/// Of one cluster in a hundred every twelfth gang goes, or has come back.
fn churn(driver: &mut Driver, clusters: usize, random: &mut Random) -> Change {
    let machines = driver.completions();
    let mut roll_ups = Vec::new();
    for _ in 0..clusters.div_ceil(100) {
        let (c, gone) = (random.below(clusters), random.below(24));
        let id = cluster(c);
        let kept = needs(&id, c).into_iter().enumerate().filter(|(at, _)| at % 12 != gone);
        roll_ups.push((id.clone(), kept.map(|(_, need)| need).collect()));
    }
    Change { machines, roll_ups }
}

pub(super) fn gangs_776k(run: &Run) -> Result<Vec<Measurement>, Error> {
    const CLUSTERS: usize = 2_000;
    let mut driver = build(run.driver(), CLUSTERS, 550_000);
    let mut measured = cold(run, &mut driver);
    measured.extend(quiet(run, &mut driver));
    let mut random = Random::new(SEED);
    measured
        .extend(steps(run, &mut driver, "steady", |driver| churn(driver, CLUSTERS, &mut random)));
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{cycles::settle, driver::Pass};

    #[test]
    fn most_gangs_are_served_and_what_is_served_stays() {
        let mut driver = build(Driver::new(1), 20, 5_500);
        driver.cycle(Pass::Full);
        let short = driver.short();
        assert!(short * 20 < 20 * (GANGS + PLAIN), "{short} needs are short");
        assert!(settle(&mut driver, 10), "comes to rest");
    }
}
