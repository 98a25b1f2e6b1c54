//! Scenario: pause, watch intentions.

use std::time::Duration;

use bigfleet_wire::v1alpha1::ActuationMode;

use super::{
    baseline::level,
    record::Phase::{Act, Check},
    stage::{Played, Stage, Stop},
};
use crate::cluster::workload::{Class, Workload};

const A: usize = 0;
const BATCH: Workload = Workload::Plain(Class::Batch);
const SUPPRESSED: &str = "paused: actions are counted, none is done";
const SHADOWED: &str = "dry-run: actions are told, none is done";
const RESUMED: &str = "resumed: they are done";
pub(crate) const CLAIMS: &[&str] = &[SUPPRESSED, SHADOWED, RESUMED];

const UNITS: u32 = 3;

pub(crate) async fn play(stage: &Stage<'_>) -> Played {
    let shard = stage.fleet.clusters[A].shard;
    let before = stage.view().serving(A);
    let actuate = async |mode: ActuationMode, why: &str| {
        stage.fleet.eyes.actuate(shard, mode.into(), why).await.map_err(Stop::from)
    };
    stage.step(Act, "the shard is paused, and demand in A rises by 3");
    stage.mark();
    actuate(ActuationMode::Paused, "demo: kill switch").await?;
    stage.demand(A, BATCH, level(A, BATCH) + UNITS);
    stage.step(Check, "what it would do is counted");
    for (claim, outcome) in [(SUPPRESSED, "suppressed"), (SHADOWED, "dryrun")] {
        let count = stage
            .until(|_| match withheld(stage, shard, outcome) {
                0 => Err("no intention yet".to_owned()),
                count => Ok(count),
            })
            .await?;
        // Long enough for anything that is not withheld to be seen.
        stage.pass(Duration::from_secs(2)).await?;
        let same = stage.view().serving(A) == before;
        stage.claim(claim, same, format!("{count} actions {outcome}, machines as before"));
        if outcome == "suppressed" {
            stage.step(Act, "the shard shadows");
            actuate(ActuationMode::DryRun, "demo: dry-run").await?;
            stage.step(Check, "what it would do is told");
        }
    }
    stage.step(Act, "the shard acts again");
    actuate(ActuationMode::Active, "demo: over").await?;
    stage.step(Check, "the pods run");
    stage.until(|view| view.resting()).await?;
    let more = stage.view().serving(A).len().saturating_sub(before.len());
    stage.claim(RESUMED, more == UNITS as usize, format!("{more} machines more"));
    Ok(())
}

fn withheld(stage: &Stage<'_>, shard: usize, outcome: &str) -> usize {
    let all = stage.decisions().into_iter();
    all.filter(|it| it.shard == shard && it.record.outcome == outcome).count()
}
