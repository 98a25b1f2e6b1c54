//! The provider reclaims 30 % of spot.

use std::time::Duration;

use bigfleet_provider_sim::{Interrupt, Selector, Warning};
use bigfleet_wire::v1alpha1::{CapacityType, MachineState};

use super::{A, B, BATCH, CRITICAL, all_run};
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

const TAKEN: &str = "spot machines are taken back";
const REPLACED: &str = "replacements by effective cost";
const UNTOUCHED: &str = "critical pods are not touched";
pub(crate) const CLAIMS: &[&str] = &[TAKEN, REPLACED, UNTOUCHED];

const SHARE: f64 = 0.3;
const NOTICE: Duration = Duration::from_secs(2);
const CRITICAL_UNITS: u32 = 4;

pub(crate) async fn play(stage: &Stage<'_>) -> Played {
    let shard = stage.fleet.clusters[A].shard;
    let site = &SITES[shard];
    stage.step(Precondition, "all spot machines work for batch, and B runs critical pods");
    let used = level(A, BATCH)
        + level(A, super::PRODUCTION)
        + level(B, BATCH)
        + level(B, super::PRODUCTION);
    let batch = level(A, BATCH) + (site.committed() + site.spot()) as u32 - used;
    stage.demand(A, BATCH, batch);
    let spot = |view: &View| {
        let spot = |machine: &&&bigfleet_wire::v1alpha1::Machine| {
            machine.capacity_type() == CapacityType::Spot
        };
        view.general(shard, MachineState::Configured).iter().filter(spot).count()
    };
    stage
        .until(|view| {
            view.resting()?;
            if spot(view) == site.spot() { Ok(()) } else { Err("spot is not used up".to_owned()) }
        })
        .await?;
    stage.demand(B, CRITICAL, CRITICAL_UNITS);
    stage.until(|view| view.resting()).await?;
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
    stage.claim(TAKEN, told > 0, format!("{told} of {}", site.spot()));
    stage.until(|view| all_run(view).and_then(|()| view.resting())).await?;
    let bought: Vec<_> =
        stage.decisions().into_iter().filter(|it| is_decided(it, "Provision")).collect();
    let dear = bought.iter().find(|it| {
        let (cost, other) = (it.record.effective_cost, it.record.runner_up_cost);
        other > 0.0 && cost > other
    });
    let detail = match dear {
        Some(it) => format!(
            "{} at ${:.3}, another was ${:.3}",
            it.record.machine_id, it.record.effective_cost, it.record.runner_up_cost
        ),
        None => format!("{} bought, none dearer than its runner-up", bought.len()),
    };
    stage.claim(REPLACED, dear.is_none() && bought.len() >= told, detail);
    stage.relieve(UNTOUCHED, format!("{CRITICAL_UNITS} pods, the same all the time"));
    Ok(())
}

fn critical_pods(fleet: &Fleet) -> Vec<String> {
    let places = fleet.clusters[B].places(CRITICAL, "kubernetes.io/hostname");
    places.into_keys().collect()
}
