//! One provider slow and failing for two minutes.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bigfleet_provider_sim::{Freeze, Selector};
use bigfleet_wire::v1alpha1::{Machine, MachineState};
use tokio::time::Instant;

use super::{A, B, BATCH, PRODUCTION, all_run};
use crate::{
    eyes::Decision,
    scenario::{
        baseline::level,
        record::Phase::{Act, Check},
        stage::{Played, Stage, now},
        view::{View, is_decided, is_rented},
    },
    supply::{FAILED_HOLD, SITES},
};

const BACKOFF: &str = "calls fail, and are not repeated at once";
const KEPT: &str = "no machine lost";
const ONCE: &str = "no double buy";
const RECOVERS: &str = "recovers by itself";
pub(crate) const CLAIMS: &[&str] = &[BACKOFF, KEPT, ONCE, RECOVERS];

/// As the chapter has it, for who watches; a headless run has seen enough after a few seconds.
const GUIDED: Duration = Duration::from_secs(120);
const HEADLESS: Duration = Duration::from_secs(12);
/// More than the other cloud has, so that the slow one is needed; as many as a level allows.
const UNITS: u32 = 28;
/// Past what any purchase takes of a cloud that answers.
const SLOW: Duration = Duration::from_secs(3);

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
    stage.guard(ONCE, move |view, _| {
        let bought = in_use(view, shard);
        (bought > UNITS as usize).then(|| format!("{bought} at once for {UNITS} units"))
    });
    stage.step(Act, &format!("cloud {cloud} hangs and fails for {} s", length.as_secs()));
    let begun = Instant::now();
    let slow = Selector { cloud: Some(cloud.to_owned()), ..Selector::tier("ondemand") };
    stage.fleet.supplies[shard].controls.freeze(&slow, Freeze::default())?;
    stock(stage, shard, 0)?;
    stage.step(Act, "batch demand in A rises by what it would serve");
    stage.mark();
    stage.demand(A, BATCH, batch);
    stage.step(Check, "purchases there wait or fail");
    let of = |id: &str| id.split('-').next() == Some(cloud);
    let mut failed = BTreeSet::new();
    let mut hung = BTreeSet::new();
    stage
        .until(|view| {
            let there = view.shards[shard].machines.iter().filter_map(|it| {
                it.machine.as_ref().filter(|machine| of(&machine.id)).map(|machine| (it, machine))
            });
            for (it, machine) in there {
                let since = Duration::from_millis(
                    now().saturating_sub(it.since_unix_nanos / 1_000_000).max(0) as u64,
                );
                match machine.state() {
                    MachineState::Failed if !machine.last_error.is_empty() => {
                        failed.insert(machine.id.clone())
                    }
                    MachineState::Creating if since > SLOW => hung.insert(machine.id.clone()),
                    _ => false,
                };
            }
            let again = attempts(&stage.decisions(), cloud).values().any(|times| times.len() > 1);
            match failed.is_empty() || hung.is_empty() || !again {
                true => Err(format!(
                    "{} hang, {} failed, none was tried again",
                    hung.len(),
                    failed.len()
                )),
                false => Ok(()),
            }
        })
        .await?;
    stage.pass(length.saturating_sub(begun.elapsed())).await?;
    let attempts = attempts(&stage.decisions(), cloud);
    let soonest = soonest(&attempts).unwrap_or_default();
    let detail = format!(
        "{} hung, {} failed; tried again after {:.1} s at the soonest",
        hung.len(),
        failed.len(),
        soonest.as_secs_f64()
    );
    stage.claim(BACKOFF, soonest >= FAILED_HOLD, detail);
    stage.step(Act, &format!("cloud {cloud} works again"));
    stock(stage, shard, u32::MAX)?;
    stage.fleet.thaw(shard, &slow)?;
    stage.step(Check, "all pods run in the end");
    stage
        .until_within(length + Duration::from_secs(90), &mut |view: &View| {
            all_run(view).and_then(|()| view.resting())
        })
        .await?;
    stage.claim(RECOVERS, true, "nobody did anything");
    let bought = in_use(&stage.view(), shard);
    stage.claim(ONCE, bought == UNITS as usize, format!("{bought} rented for {UNITS} units"));
    stage.relieve(ONCE, format!("{bought} rented for {UNITS} units, at no time more"));
    stage.relieve(KEPT, format!("{total} machines, every one that worked still works"));
    Ok(())
}

fn configured(view: &View, shard: usize) -> BTreeSet<String> {
    let working = view.general(shard, MachineState::Configured);
    working.into_iter().map(|machine| machine.id.clone()).collect()
}

/// Rented machines that there are, and that are or were meant to work.
fn in_use(view: &View, shard: usize) -> usize {
    use MachineState::{Configured, Configuring, Draining, Idle};
    let here = |it: &&Machine| {
        is_rented(it) && matches!(it.state(), Idle | Configuring | Configured | Draining)
    };
    view.machines(shard).filter(here).count()
}

/// What the cheaper cloud has left. None at all is a purchase that fails at once.
fn stock(stage: &Stage<'_>, shard: usize, count: u32) -> Played {
    let site = &SITES[shard];
    for zone in site.zones(site.cheap_cloud()) {
        stage.fleet.stock(shard, zone, count)?;
    }
    Ok(())
}

/// When each machine of a cloud was to be bought, in nanoseconds.
fn attempts(decisions: &[Decision], cloud: &str) -> BTreeMap<String, Vec<i64>> {
    let mut times: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for it in decisions.iter().filter(|it| is_decided(it, "Provision")) {
        let record = &it.record;
        if record.machine_id.split('-').next() == Some(cloud) {
            times.entry(record.machine_id.clone()).or_default().push(record.time_unix_nanos);
        }
    }
    times
}

/// The shortest time between two attempts at one machine.
fn soonest(attempts: &BTreeMap<String, Vec<i64>>) -> Option<Duration> {
    let pauses = attempts.values().flat_map(|times| times.windows(2)).map(|two| two[1] - two[0]);
    pauses.min().map(|nanos| Duration::from_nanos(nanos.max(0) as u64))
}

#[cfg(test)]
mod tests {
    use bigfleet_wire::v1alpha1::DecisionRecord;

    use super::*;

    #[test]
    fn the_shortest_pause_is_between_attempts_at_one_machine() {
        let attempt = |id: &str, kind: &str, seconds: i64, of_sequence| Decision {
            shard: 0,
            record: DecisionRecord {
                machine_id: id.to_owned(),
                kind: kind.to_owned(),
                time_unix_nanos: seconds * 1_000_000_000,
                of_sequence,
                ..DecisionRecord::default()
            },
        };
        let mut decisions = vec![
            attempt("beta-1", "Provision", 10, 0),
            attempt("beta-1", "Provision", 11, 1),
            attempt("beta-2", "Provision", 12, 0),
            attempt("alpha-1", "Provision", 12, 0),
            attempt("alpha-1", "Provision", 12, 0),
            attempt("beta-1", "Bootstrap", 13, 0),
        ];
        assert_eq!(soonest(&attempts(&decisions, "beta")), None, "nothing was tried again");
        decisions.push(attempt("beta-1", "Provision", 15, 0));
        decisions.push(attempt("beta-1", "Provision", 17, 0));
        assert_eq!(soonest(&attempts(&decisions, "beta")), Some(Duration::from_secs(2)));
    }
}
