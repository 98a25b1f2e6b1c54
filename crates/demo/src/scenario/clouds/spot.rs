//! The provider reclaims 30 % of spot.

use std::{collections::BTreeSet, time::Duration};

use bigfleet_provider_sim::{Interrupt, Selector, Warning};
use bigfleet_wire::v1alpha1::{CapacityType, DecisionRecord, Machine, MachineState};

use super::{A, B, BATCH, CRITICAL, PRODUCTION, all_run};
use crate::{
    cluster::workload::Class,
    fleet::Fleet,
    scenario::{
        baseline::level,
        record::Phase::{Act, Check, Precondition},
        stage::{Played, Stage},
        view::{View, is_decided},
    },
    supply::SITES,
};

const SAFE: &str = "critical is bought on demand while spot is free";
const TAKEN: &str = "spot machines are taken back";
const REPLACED: &str = "replacements by effective cost";
const UNTOUCHED: &str = "critical pods are not touched";
pub(crate) const CLAIMS: &[&str] = &[SAFE, TAKEN, REPLACED, UNTOUCHED];

const SHARE: f64 = 0.3;
const NOTICE: Duration = Duration::from_secs(2);
const CRITICAL_UNITS: u32 = 4;
/// Less than there are, so that spot and machines on demand are both free when some are taken.
const SPOT_UNITS: u32 = 10;
/// Closer than any two prices are.
const CENT: f64 = 0.01;

pub(crate) async fn play(stage: &Stage<'_>) -> Played {
    let shard = stage.fleet.clusters[A].shard;
    let site = &SITES[shard];
    stage.step(Precondition, "A works on all committed machines, and B on none");
    // Otherwise B's own would serve its critical pods, and others would be bought for the rest.
    stage.demand(B, BATCH, 0);
    stage.demand(B, PRODUCTION, 0);
    stage.until(|view| view.resting()).await?;
    let committed = site.committed() as u32 - level(A, PRODUCTION);
    stage.demand(A, BATCH, committed);
    stage.until(|view| view.resting()).await?;
    stage.step(Act, "B asks for critical machines while all spot is free");
    stage.demand(B, CRITICAL, CRITICAL_UNITS);
    stage.until(|view| view.resting()).await?;
    let view = stage.view();
    let of_b = view.serving(B);
    let machines: Vec<&Machine> = view.all().filter(|it| of_b.contains(&it.id)).collect();
    let safe = machines.iter().filter(|it| it.capacity_type() == CapacityType::OnDemand).count();
    let held = safe == CRITICAL_UNITS as usize && machines.len() == safe;
    let free = view.general(shard, MachineState::Speculative);
    let free = free.iter().filter(|it| it.capacity_type() == CapacityType::Spot).count();
    let detail = format!("{safe} of {} on demand, {free} spot machines left", machines.len());
    stage.claim(SAFE, held && free == site.spot(), detail);
    stage.step(Precondition, "more than half of all spot machines work for batch");
    stage.demand(A, BATCH, committed + SPOT_UNITS);
    let on_spot = |view: &View| -> BTreeSet<String> {
        let spot = |machine: &&&Machine| machine.capacity_type() == CapacityType::Spot;
        let working = view.general(shard, MachineState::Configured);
        working.iter().filter(spot).map(|machine| machine.id.clone()).collect()
    };
    let working = stage
        .until(|view| {
            view.resting()?;
            match on_spot(view) {
                all if all.len() == SPOT_UNITS as usize => Ok(all),
                all => Err(format!("{} of {SPOT_UNITS} spot machines work", all.len())),
            }
        })
        .await?;
    let free: Vec<Price> =
        stage.view().general(shard, MachineState::Speculative).into_iter().map(Price::of).collect();
    let critical = critical_pods(stage.fleet);
    stage.guard(UNTOUCHED, move |_, fleet| {
        let now = critical_pods(fleet);
        (now != critical).then(|| format!("{now:?} run, before {critical:?}"))
    });
    stage.step(Act, "the clouds take 30 % of the spot machines that work back");
    stage.mark();
    let how = Interrupt { notice: Warning::Termination, after: Some(NOTICE) };
    let told = stage.fleet.supplies[shard]
        .controls
        .interrupt(&Selector::tier("spot").share(SHARE), how)?;
    stage.step(Check, "they are gone, and pods run on others");
    // One after the other: what replaces the first may work before the last is gone.
    let mut gone = BTreeSet::new();
    stage
        .until(|view| {
            gone.extend(working.difference(&on_spot(view)).cloned());
            match gone.len() {
                all if all >= told => Ok(()),
                some => Err(format!("{some} of {told} are gone")),
            }
        })
        .await?;
    let share = (SHARE * working.len() as f64).round() as usize;
    stage.claim(TAKEN, told == share, format!("{told} of {}", working.len()));
    stage.until(|view| all_run(view).and_then(|()| view.resting())).await?;
    let view = stage.view();
    let bought: Vec<(DecisionRecord, Price)> = stage
        .decisions()
        .into_iter()
        .filter(|it| it.shard == shard && is_decided(it, "Provision"))
        .filter_map(|it| {
            let machine =
                view.machines(shard).find(|machine| machine.id == it.record.machine_id)?;
            Some((it.record, Price::of(machine)))
        })
        .collect();
    let (holds, detail) = cheapest(&free, &bought, told);
    stage.claim(REPLACED, holds, detail);
    stage.relieve(UNTOUCHED, format!("{CRITICAL_UNITS} pods, the same all the time"));
    Ok(())
}

/// What a machine costs whom: its price, and what its interruption would.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Price {
    capacity: CapacityType,
    dollars: f64,
    probability: f64,
}

impl Price {
    fn of(machine: &Machine) -> Self {
        Self {
            capacity: machine.capacity_type(),
            dollars: machine.price_per_hour,
            probability: machine.interruption_probability,
        }
    }

    /// Engine chapter §2.
    fn effective(self, class: Class) -> f64 {
        self.probability.mul_add(class.penalty(), self.dollars)
    }
}

/// Whether what was bought for batch is the cheapest of what was free, by its own price and not
/// by what the engine says it compared with; and whether there was a choice between two tiers.
fn cheapest(free: &[Price], bought: &[(DecisionRecord, Price)], told: usize) -> (bool, String) {
    let cost = |price: Price| price.effective(Class::Batch);
    let mut costs: Vec<f64> = free.iter().copied().map(cost).collect();
    costs.sort_by(f64::total_cmp);
    let Some((limit, dearest)) = costs.get(told.saturating_sub(1)).zip(costs.last()) else {
        return (false, format!("{} machines were free", costs.len()));
    };
    if dearest <= limit {
        return (false, format!("nothing free was dearer than ${limit:.2}"));
    }
    for (record, price) in bought {
        let (machine, own) = (&record.machine_id, cost(*price));
        if own > limit + CENT {
            return (false, format!("{machine} costs ${own:.2}, others ${limit:.2}"));
        }
        if (own - record.effective_cost).abs() > CENT {
            let said = record.effective_cost;
            return (false, format!("{machine} costs ${own:.2}, the engine says ${said:.2}"));
        }
    }
    let spot = bought.iter().filter(|(_, price)| price.capacity == CapacityType::Spot).count();
    let detail =
        format!("{spot} spot of {} bought, ${limit:.2} while ${dearest:.2} was free", bought.len());
    (bought.len() >= told && spot == bought.len(), detail)
}

fn critical_pods(fleet: &Fleet) -> Vec<String> {
    let places = fleet.clusters[B].places(CRITICAL, "kubernetes.io/hostname");
    places.into_keys().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPOT: Price = Price { capacity: CapacityType::Spot, dollars: 0.12, probability: 0.3 };
    const ON_DEMAND: Price =
        Price { capacity: CapacityType::OnDemand, dollars: 0.38, probability: 0.05 };

    fn bought(price: Price, said: f64) -> (DecisionRecord, Price) {
        let record = DecisionRecord { effective_cost: said, ..DecisionRecord::default() };
        (record, price)
    }

    #[test]
    fn replacements_are_judged_by_prices_and_only_where_there_was_a_choice() {
        let free = [ON_DEMAND, SPOT, SPOT, ON_DEMAND];
        let (spot, dear) = (bought(SPOT, 0.12), bought(ON_DEMAND, 0.38));
        assert!(cheapest(&free, &[spot.clone(), spot.clone()], 2).0);
        assert!(!cheapest(&free, &[spot.clone(), dear], 2).0, "spot was free");
        assert!(!cheapest(&free, std::slice::from_ref(&spot), 2).0, "one was not replaced");
        assert!(!cheapest(&free, &[spot.clone(), bought(SPOT, 0.2)], 2).0, "it says otherwise");
        assert!(!cheapest(&[SPOT, SPOT], &[spot.clone(), spot.clone()], 2).0, "no choice");
        assert!(!cheapest(&[SPOT], &[spot.clone(), spot], 2).0, "too few were free");
    }

    #[test]
    fn what_an_interruption_costs_decides_for_critical_work_alone() {
        for (class, rides_spot) in
            [(Class::Batch, true), (Class::Production, true), (Class::Critical, false)]
        {
            assert_eq!(SPOT.effective(class) < ON_DEMAND.effective(class), rides_spot);
        }
    }
}
