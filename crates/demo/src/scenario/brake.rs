//! Scenario: pause, watch intentions.

use std::{collections::BTreeMap, time::Duration};

use bigfleet_wire::v1alpha1::ActuationMode;
use tokio::time::{Instant, sleep};

use super::{
    baseline::level,
    record::Phase::{Act, Check},
    stage::{Played, Stage, Stop},
    view::{View, state_name},
};
use crate::{
    cluster::workload::{Class, Workload},
    eyes::Decision,
};

const A: usize = 0;
const BATCH: Workload = Workload::Plain(Class::Batch);
const SUPPRESSED: &str = "paused: actions are counted, none is done";
const SHADOWED: &str = "dry-run: actions are told, none is done";
const RESUMED: &str = "resumed: they are done";
pub(crate) const CLAIMS: &[&str] = &[SUPPRESSED, SHADOWED, RESUMED];

const UNITS: u32 = 3;
/// Long enough for anything that is not withheld to be seen.
const WATCHED: Duration = Duration::from_secs(2);
/// Far longer than records are behind counters.
const BEHIND: Duration = Duration::from_secs(20);

/// A brake, what its records say of themselves, and what counts them.
struct Brake {
    claim: &'static str,
    outcome: &'static str,
    counter: &'static str,
}

const PAUSED: Brake = Brake {
    claim: SUPPRESSED,
    outcome: "suppressed",
    counter: "bigfleet_shard_actions_suppressed_total",
};
const DRY_RUN: Brake =
    Brake { claim: SHADOWED, outcome: "dryrun", counter: "bigfleet_shard_actions_dryrun_total" };

pub(crate) async fn play(stage: &Stage<'_>) -> Played {
    let shard = stage.fleet.clusters[A].shard;
    let before = stage.view().serving(A);
    let actuate = async |mode: ActuationMode, why: &str| {
        stage.fleet.eyes.actuate(shard, mode.into(), why).await.map_err(Stop::from)
    };
    let counted = [count(stage, shard, &PAUSED).await?, count(stage, shard, &DRY_RUN).await?];
    stage.step(Act, "the shard is paused, and demand in A rises by 3");
    stage.mark();
    let machines = machines(&stage.view());
    actuate(ActuationMode::Paused, "demo: kill switch").await?;
    // Nothing was under way: whatever moves from here on was done in spite of the brake.
    for brake in [PAUSED, DRY_RUN] {
        let still = machines.clone();
        stage.guard(brake.claim, move |view, _| moved(&still, &self::machines(view)));
    }
    stage.demand(A, BATCH, level(A, BATCH) + UNITS);
    stage.step(Check, "what it would do is counted");
    intended(stage, shard, &PAUSED).await?;
    stage.step(Act, "the shard shadows");
    actuate(ActuationMode::DryRun, "demo: dry-run").await?;
    settle(stage, shard, &PAUSED, counted[0], machines.len()).await?;
    stage.step(Check, "what it would do is told");
    intended(stage, shard, &DRY_RUN).await?;
    stage.release(SHADOWED);
    stage.step(Act, "the shard acts again");
    actuate(ActuationMode::Active, "demo: over").await?;
    settle(stage, shard, &DRY_RUN, counted[1], machines.len()).await?;
    stage.step(Check, "the pods run");
    stage.until(|view| view.resting()).await?;
    let more = stage.view().serving(A).len().saturating_sub(before.len());
    stage.claim(RESUMED, more == UNITS as usize, format!("{more} machines more"));
    Ok(())
}

/// Waits for an intention, and then for anything that is done all the same.
async fn intended(stage: &Stage<'_>, shard: usize, brake: &Brake) -> Played {
    stage
        .until(|_| match withheld(&stage.decisions(), shard, brake.outcome) {
            0 => Err("no intention yet".to_owned()),
            _ => Ok(()),
        })
        .await?;
    stage.pass(WATCHED).await
}

/// Once the brake is another one: what it counted is what it recorded, no more and no less.
async fn settle(
    stage: &Stage<'_>,
    shard: usize,
    brake: &Brake,
    before: f64,
    machines: usize,
) -> Played {
    let deadline = Instant::now() + BEHIND;
    loop {
        stage.look().await?;
        let counted = count(stage, shard, brake).await? - before;
        let recorded = withheld(&stage.decisions(), shard, brake.outcome);
        // The stream may be behind the counter for a moment.
        if counted == recorded as f64 || Instant::now() > deadline {
            let detail = format!(
                "{counted} counted, {recorded} recorded as {}, {machines} machines as before",
                brake.outcome
            );
            let holds = recorded > 0 && counted == recorded as f64;
            stage.release(brake.claim);
            stage.claim(brake.claim, holds, detail);
            return Ok(());
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// What the shard itself has counted.
async fn count(stage: &Stage<'_>, shard: usize, brake: &Brake) -> Result<f64, Stop> {
    let metrics = stage.fleet.metrics(shard).await?;
    metrics.sum(brake.counter, None).ok_or_else(|| Stop(format!("there is no {}", brake.counter)))
}

fn withheld(decisions: &[Decision], shard: usize, outcome: &str) -> usize {
    decisions.iter().filter(|it| it.shard == shard && it.record.outcome == outcome).count()
}

/// State and cluster of every machine of the fleet, and what is under way with it.
type Machines = BTreeMap<String, (String, String, String)>;

fn machines(view: &View) -> Machines {
    let views = view.shards.iter().flat_map(|shard| &shard.machines);
    let one = |(machine, in_flight): (&bigfleet_wire::v1alpha1::Machine, &String)| {
        let what = (state_name(machine.state()), machine.cluster.clone(), in_flight.clone());
        (machine.id.clone(), what)
    };
    views.filter_map(|it| Some(one((it.machine.as_ref()?, &it.in_flight)))).collect()
}

/// The first machine that is not as it was.
fn moved(before: &Machines, now: &Machines) -> Option<String> {
    let ids = before.keys().chain(now.keys());
    let other = ids.into_iter().find(|id| before.get(*id) != now.get(*id))?;
    Some(format!("{other} is {:?}, before {:?}", now.get(other), before.get(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_machine_does_is_seen() {
        let machine = |id: &str, state: &str, cluster: &str, in_flight: &str| {
            (id.to_owned(), [state, cluster, in_flight].map(str::to_owned).into())
        };
        let before = Machines::from([machine("m", "idle", "", ""), machine("n", "idle", "", "")]);
        assert_eq!(moved(&before, &before), None);
        for other in [
            machine("n", "speculative", "", ""),
            machine("n", "idle", "cluster-c", ""),
            machine("n", "idle", "", "Bootstrap"),
            machine("new", "idle", "", ""),
        ] {
            let mut now = before.clone();
            now.extend([other.clone()]);
            assert!(moved(&before, &now).is_some_and(|it| it.starts_with(&other.0)), "{other:?}");
        }
        assert!(moved(&before, &Machines::new()).is_some());
    }
}
