//! What the engine makes of one world.

use super::{
    super::{
        cycles::{Change, settle},
        driver::{Driver, Pass},
        make::cluster,
    },
    first_fit::{Opening, first_fit},
    lp::{Amounts, Offer, bound},
    optimum::optimum,
    world::{Kind, World},
};

/// Costs per hour, effective.
pub(super) struct Bought {
    pub(super) cost: f64,
    pub(super) machines: usize,
    pub(super) types: usize,
    pub(super) lower_bound: f64,
    /// None where it is not asked for, or was not found in time.
    pub(super) optimum: Option<f64>,
    pub(super) first_fit: [Option<f64>; 2],
}

fn start(world: &World) -> Driver {
    let mut driver = Driver::new(1);
    world.sell(&mut driver);
    driver.replace(&cluster(0), &[world.need(100)]);
    driver
}

/// Buys for a need from empty; none if it is left short, which with plentiful
/// supply is a defect.
pub(super) fn buy(seed: u64, kind: Kind, exact: bool) -> Option<Bought> {
    let world = World::new(seed, kind);
    let mut driver = start(&world);
    driver.cycle(Pass::Full);
    if driver.short() > 0 {
        return None;
    }
    let cost = driver.actions().iter().map(|action| action.cost).sum();
    let offers = world.offers();
    let demand = world.demand();
    Some(Bought {
        cost,
        machines: driver.actions().len(),
        types: world.types(),
        lower_bound: bound(&offers, demand),
        optimum: exact.then(|| least(&offers, demand, cost, kind.gang)).flatten(),
        first_fit: [Opening::Cheapest, Opening::Densest]
            .map(|opening| first_fit(&offers, &world.pods, opening)),
    })
}

/// The optimum. A gang that fits one machine folds, so it is held to the
/// cheapest machine that it fits.
fn least(offers: &[Offer], demand: Amounts, cost: f64, gang: bool) -> Option<f64> {
    let alone = |offer: &&Offer| (0..3).all(|d| offer.brings[d] >= demand[d]);
    let alone = offers.iter().filter(alone).map(|offer| offer.cost).min_by(f64::total_cmp);
    alone.filter(|_| gang).or_else(|| optimum(offers, demand, cost))
}

/// What a world does once it has what it wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Afterwards {
    /// Actions at constant demand after convergence.
    pub(super) restless: usize,
    /// Machines reclaimed, and bought, after demand fell to a half.
    pub(super) reclaimed: usize,
    pub(super) rebought: usize,
}

pub(super) fn afterwards(seed: u64, kind: Kind) -> Afterwards {
    const CYCLES: usize = 10;
    let world = World::new(seed, kind);
    let mut driver = start(&world);
    settle(&mut driver, 10);
    let mut seen = Afterwards::default();
    for cycle in 0..2 * CYCLES {
        if cycle == CYCLES {
            driver.replace(&cluster(0), &[world.need(50)]);
        }
        driver.cycle(Pass::Incremental);
        driver.restamp();
        let counts = driver.counts();
        if cycle < CYCLES {
            seen.restless += counts.sum();
        } else {
            seen.reclaimed += counts.reclaim;
            seen.rebought += counts.bootstrap + counts.provision;
        }
        let machines = driver.completions();
        Change { machines, ..Change::default() }.apply(&mut driver);
    }
    seen
}
