//! One cloud refuses Create for a type.

use bigfleet_wire::v1alpha1::{CapacityType, Machine, MachineState};

use super::{A, B, BATCH, PRODUCTION, all_run, dearer};
use crate::{
    eyes::Decision,
    scenario::{
        baseline::level,
        demand::{priority, reason},
        record::Phase::{Act, Check},
        stage::{Played, Stage},
        view::{is_decided, is_rented},
    },
    supply::SITES,
};

const REFUSED: &str = "the cloud refuses";
const NEXT: &str = "served from the next cheapest";
const SHORT: &str = "shortfall with reason where none is left";
pub(crate) const CLAIMS: &[&str] = &[REFUSED, NEXT, SHORT];

/// Units that the cheaper cloud would have served, and of the other one only its spot can
/// without going to what is dearer.
const UNITS: u32 = 8;
/// Units that nobody has left.
const MISSING: u32 = 4;

pub(crate) async fn play(stage: &Stage<'_>) -> Played {
    let shard = stage.fleet.clusters[A].shard;
    let site = &SITES[shard];
    let (out, other) = (site.cheap_cloud(), site.dear_cloud());
    stage.step(Act, &format!("cloud {out} has no machine of this type left"));
    for zone in site.zones(out) {
        stage.fleet.stock(shard, zone, 0)?;
    }
    let elsewhere = (site.general() - site.committed()) as u32 / 2;
    let base = level(A, PRODUCTION) + level(B, BATCH) + level(B, PRODUCTION);
    let committed = site.committed() as u32 - base;
    stage.step(Act, &format!("batch demand in A rises by {UNITS} more than is paid for"));
    stage.mark();
    stage.demand(A, BATCH, committed + UNITS);
    let of = |id: &str, cloud: &str| id.split('-').next() == Some(cloud);
    stage.step(Check, "what is refused is told");
    // A purchase is taken, and fails when the cloud has nothing to give.
    let refusals = stage
        .until(|view| {
            let refused = view.machines(shard).filter(|it| {
                of(&it.id, out) && it.state() == MachineState::Failed && !it.last_error.is_empty()
            });
            let errors: Vec<String> = refused.map(|it| it.last_error.clone()).collect();
            if errors.is_empty() { Err("no refusal yet".to_owned()) } else { Ok(errors) }
        })
        .await?;
    stage.claim(REFUSED, true, format!("{} at once: {}", refusals.len(), refusals[0]));
    stage.step(Check, "all of it runs, on the next cheapest");
    let served = stage
        .until(|view| {
            all_run(view)?;
            let working = view.general(shard, MachineState::Configured).into_iter();
            let rented: Vec<Machine> = working.filter(|it| is_rented(it)).cloned().collect();
            match rented.len() {
                count if count == UNITS as usize => Ok(rented),
                count => Err(format!("{count} rented machines work for {UNITS} units")),
            }
        })
        .await?;
    let next = |it: &Machine| of(&it.id, other) && it.capacity_type() == CapacityType::Spot;
    let wrong = served.iter().find(|it| !next(it));
    let bought: Vec<Decision> =
        stage.decisions().into_iter().filter(|it| is_decided(it, "Provision")).collect();
    let detail = match (wrong, dearer(&bought)) {
        (Some(it), _) => format!("{} at ${:.2}/h", it.id, it.price_per_hour),
        (None, Some(dearer)) => dearer,
        (None, None) => {
            let price = served.first().map_or(0.0, |it| it.price_per_hour);
            format!("{UNITS} spot machines of {other} at ${price:.2}/h, none on demand")
        }
    };
    let told = bought.iter().filter(|it| of(&it.record.machine_id, other)).count();
    let cheapest = wrong.is_none() && dearer(&bought).is_none() && told == UNITS as usize;
    stage.claim(NEXT, cheapest, detail);
    stage.step(Act, "batch demand in A rises above what is left");
    let batch = committed + elsewhere + MISSING;
    stage.demand(A, BATCH, batch);
    stage.step(Check, &format!("every machine of {other} works"));
    stage
        .until(|view| {
            let working = view.general(shard, MachineState::Configured);
            let working = working.iter().filter(|it| is_rented(it) && of(&it.id, other)).count();
            match working {
                all if all as u32 == elsewhere => Ok(()),
                some => Err(format!("{some} of {elsewhere}")),
            }
        })
        .await?;
    stage.step(Check, "what is short says why");
    let told = stage
        .until(|view| {
            let short = view.unmet().into_iter().find(|need| {
                need.cluster_id == stage.fleet.clusters[A].name && priority(need) == 100
            });
            short
                .map(reason)
                .filter(|it| it != "UNSPECIFIED")
                .ok_or_else(|| "nothing is short".to_owned())
        })
        .await?;
    let (want, got) = (batch, stage.view().pods(A, BATCH).running);
    stage.claim(SHORT, true, format!("{told}: {got} of {want} batch pods run in A"));
    Ok(())
}
