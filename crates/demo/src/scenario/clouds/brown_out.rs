//! One provider slow and failing for two minutes.

use std::{collections::BTreeSet, time::Duration};

use bigfleet_provider_sim::{Freeze, Selector};
use bigfleet_wire::v1alpha1::MachineState;

use super::{A, B, BATCH, PRODUCTION, all_run};
use crate::{
    scenario::{
        baseline::level,
        record::Phase::{Act, Check},
        stage::{Played, Stage},
        view::{View, is_rented},
    },
    supply::SITES,
};

const BACKOFF: &str = "calls fail, and are not repeated at once";
const KEPT: &str = "no machine lost";
const ONCE: &str = "no double buy";
const RECOVERS: &str = "recovers by itself";
pub(crate) const CLAIMS: &[&str] = &[BACKOFF, KEPT, ONCE, RECOVERS];

/// As the chapter has it, for who watches; a headless run has seen enough after a few seconds.
const GUIDED: Duration = Duration::from_secs(120);
const HEADLESS: Duration = Duration::from_secs(12);
/// Units that the slow cloud would serve.
const UNITS: u32 = 10;

pub(crate) async fn play(stage: &Stage<'_>) -> Played {
    let shard = stage.fleet.clusters[A].shard;
    let site = &SITES[shard];
    let cloud = site.cheap_cloud();
    let length = if stage.guided { GUIDED } else { HEADLESS };
    let used = level(A, BATCH) + level(A, PRODUCTION) + level(B, BATCH) + level(B, PRODUCTION);
    let batch = level(A, BATCH) + site.committed() as u32 - used + UNITS;
    let before = configured(&stage.view(), shard);
    let total = stage.view().machines(shard).count();
    stage.guard(KEPT, move |view, _| {
        let lost: Vec<String> = before.difference(&configured(view, shard)).cloned().collect();
        let known = view.machines(shard).count();
        (!lost.is_empty() || known != total).then(|| format!("{known} known, lost {lost:?}"))
    });
    stage.step(Act, &format!("cloud {cloud} hangs and fails for {} s", length.as_secs()));
    let controls = &stage.fleet.supplies[shard].controls;
    for (tier, answer) in [("spot", "refuse"), ("ondemand", "hang")] {
        let how = format!(r#"{{"answer": "{answer}", "for": "{}s"}}"#, length.as_secs());
        let how: Freeze = serde_json::from_str(&how)?;
        let whom = Selector { cloud: Some(cloud.to_owned()), ..Selector::tier(tier) };
        controls.freeze(&whom, how)?;
    }
    stage.step(Act, "batch demand in A rises by what it would serve");
    stage.mark();
    stage.demand(A, BATCH, batch);
    stage.step(Check, "purchases there wait or fail");
    let of = |id: &str| id.split('-').next() == Some(cloud);
    let tried = stage
        .until(|view| {
            let slow = view
                .machines(shard)
                .filter(|it| of(&it.id) && it.state() == MachineState::Creating);
            let failed = stage
                .decisions()
                .into_iter()
                .filter(|it| of(&it.record.machine_id) && !it.record.error.is_empty());
            let (slow, failed) = (slow.count(), failed.count());
            match slow + failed {
                0 => Err("nothing was bought there yet".to_owned()),
                _ => Ok(format!("{slow} hang, {failed} failed")),
            }
        })
        .await?;
    stage.pass(length / 2).await?;
    let attempts = attempts(stage, cloud);
    let most = attempts.values().copied().max().unwrap_or_default();
    // The first wait is ten seconds and doubles: three attempts are past any of these lengths
    // only if nobody waits.
    let detail = format!("{tried}; at most {most} attempts at one machine");
    stage.claim(BACKOFF, most <= 4, detail);
    stage.step(Check, "all pods run in the end");
    stage
        .until_within(length + Duration::from_secs(90), &mut |view: &View| {
            all_run(view).and_then(|()| view.resting())
        })
        .await?;
    stage.claim(RECOVERS, true, "nobody did anything");
    let rented = stage.view().rented(shard).iter().filter(|it| is_rented(it)).count();
    stage.claim(ONCE, rented == UNITS as usize, format!("{rented} rented for {UNITS} units"));
    stage.relieve(KEPT, format!("{total} machines, every one that worked still works"));
    Ok(())
}

fn configured(view: &View, shard: usize) -> BTreeSet<String> {
    let working = view.general(shard, MachineState::Configured);
    working.into_iter().map(|machine| machine.id.clone()).collect()
}

/// How often each machine of a cloud was to be bought.
fn attempts(stage: &Stage<'_>, cloud: &str) -> std::collections::BTreeMap<String, usize> {
    let mut counts = std::collections::BTreeMap::new();
    for it in stage.decisions() {
        let record = it.record;
        let here = record.machine_id.split('-').next() == Some(cloud);
        if here && record.kind == "Provision" && record.of_sequence == 0 {
            *counts.entry(record.machine_id).or_default() += 1;
        }
    }
    counts
}
