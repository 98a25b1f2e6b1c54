//! The provider reclaims 30 % of spot.

use std::time::Duration;

use bigfleet_provider_sim::{Interrupt, Selector, Warning};
use bigfleet_wire::v1alpha1::{CapacityType, Machine, MachineState};

use super::{A, B, BATCH, CRITICAL, PRODUCTION, all_run, dearer};
use crate::{
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
    stage.step(Precondition, "all spot machines work for batch");
    stage.demand(A, BATCH, committed + site.spot() as u32);
    let spot = |view: &View| {
        let spot = |machine: &&&Machine| machine.capacity_type() == CapacityType::Spot;
        view.general(shard, MachineState::Configured).iter().filter(spot).count()
    };
    stage
        .until(|view| {
            view.resting()?;
            if spot(view) == site.spot() { Ok(()) } else { Err("spot is not used up".to_owned()) }
        })
        .await?;
    let critical = critical_pods(stage.fleet);
    stage.guard(UNTOUCHED, move |_, fleet| {
        let now = critical_pods(fleet);
        (now != critical).then(|| format!("{now:?} run, before {critical:?}"))
    });
    stage.step(Act, "the clouds take 30 % of their spot machines back");
    stage.mark();
    let how = Interrupt { notice: Warning::Termination, after: Some(NOTICE) };
    let told = stage.fleet.supplies[shard]
        .controls
        .interrupt(&Selector::tier("spot").share(SHARE), how)?;
    stage.step(Check, "they are gone, and pods run on others");
    stage
        .until(|view| match spot(view) {
            left if left + told <= site.spot() => Ok(()),
            left => Err(format!("{left} spot machines work")),
        })
        .await?;
    let share = (SHARE * site.spot() as f64).round() as usize;
    stage.claim(TAKEN, told == share, format!("{told} of {}", site.spot()));
    stage.until(|view| all_run(view).and_then(|()| view.resting())).await?;
    let bought: Vec<_> =
        stage.decisions().into_iter().filter(|it| is_decided(it, "Provision")).collect();
    let dear = dearer(&bought);
    let cheapest = dear.is_none() && bought.len() >= told;
    let none = || format!("{} bought, none dearer than its runner-up", bought.len());
    stage.claim(REPLACED, cheapest, dear.unwrap_or_else(none));
    stage.relieve(UNTOUCHED, format!("{CRITICAL_UNITS} pods, the same all the time"));
    Ok(())
}

fn critical_pods(fleet: &Fleet) -> Vec<String> {
    let places = fleet.clusters[B].places(CRITICAL, "kubernetes.io/hostname");
    places.into_keys().collect()
}
