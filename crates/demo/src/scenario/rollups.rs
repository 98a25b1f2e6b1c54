//! Scenario: a cluster sends empty roll-ups by mistake, three in a row.

use std::{collections::BTreeMap, time::Duration};

use bigfleet_scripted::operator::{Operator, OperatorOptions};
use bigfleet_wire::v1alpha1::{Machine, MachineState};
use tokio::time::{Instant, sleep};

use super::{
    record::Phase::{Act, Check, Precondition},
    stage::{PATIENCE, Played, Stage, Stop},
    view::is_decided,
};

const C: usize = 2;
const HELD: &str = "held twice, with the gauge up";
const CAPPED: &str = "the reclaim cap bounds the loss per cycle";
const STOPPED: &str = "a good roll-up stops it";
pub(crate) const CLAIMS: &[&str] = &[HELD, CAPPED, STOPPED];

/// What an alert is on (experience chapter §5).
const GAUGE: &str = "bigfleet_shard_rollup_quarantined";
const COUNTED: &str = "bigfleet_shard_inventory_machines";
/// Machines that must have left before the good operator returns.
const LEAVE: usize = 2;

pub(crate) async fn play(stage: &Stage<'_>) -> Played {
    let cluster = &stage.fleet.clusters[C];
    let shard = cluster.shard;
    stage.step(Precondition, "the shard has counted the machines of C");
    counted(stage, shard).await?;
    let before = stage.view().serving(C);
    stage.step(Act, "a broken operator of C takes over");
    cluster.stop_operator().await;
    let options = OperatorOptions::new(&cluster.name).without_record();
    let mut broken = Operator::connect(cluster.shard_addr(), cluster.security(), options).await?;
    stage.mark();
    let mut held = Vec::new();
    for number in 1..=3 {
        stage.step(Act, &format!("it sends empty roll-up {number}"));
        let answer = broken.roll_up(Vec::new()).await?;
        let gauge = stage
            .until_within(Duration::from_secs(20), &mut |view| {
                let seen =
                    view.shards[shard].sessions.iter().find(|it| it.cluster_id == cluster.name);
                let held = seen.map_or(0, |session| session.rollups_held);
                let due = if number < 3 { number } else { 0 };
                if held == due {
                    Ok(held)
                } else {
                    Err(format!("{held} held, not {due}, after {answer:?}"))
                }
            })
            .await?;
        // The session's view is what a reader asks for; the gauge is what rings at night.
        let own = stage.fleet.metrics(shard).await?.sum(GAUGE, Some(("cluster", &cluster.name)));
        if own != Some(f64::from(gauge)) {
            stage.claim(HELD, false, format!("the session says {gauge}, the gauge {own:?}"));
        }
        held.push(gauge);
        if number < 3 && stage.view().serving(C) != before {
            stage.claim(HELD, false, "machines left while it was held");
        }
    }
    stage.claim(HELD, held == [1, 2, 0], format!("session and gauge said {held:?}"));
    stage.step(Check, "machines leave one by one");
    stage
        .until(|view| {
            let left = before.difference(&view.serving(C)).count();
            let decided: usize = reclaims(stage, shard).values().sum();
            if left >= LEAVE && decided >= LEAVE {
                return Ok(());
            }
            Err(format!("{left} have left, {decided} were told to"))
        })
        .await?;
    stage.step(Act, "the good operator returns");
    broken.abort().await;
    cluster.start_operator()?;
    stage
        .until(|view| {
            let seen = view.shards[shard].sessions.iter().find(|it| it.cluster_id == cluster.name);
            let needs = seen.filter(|it| it.connected).map_or(0, |it| it.needs);
            if needs > 0 { Ok(()) } else { Err("no good roll-up yet".to_owned()) }
        })
        .await?;
    let after = stage.fleet.eyes.marks();
    stage.step(Check, "all pods run again");
    stage.until(|view| view.resting()).await?;
    let reclaims = reclaims(stage, shard);
    let cap = (before.len() / 20).max(1);
    let most = reclaims.values().max().copied().unwrap_or_default();
    let total: usize = reclaims.values().sum();
    let detail = format!("{total} machines in {} cycles, at most {most} in one", reclaims.len());
    stage.claim(CAPPED, most <= cap && total < before.len(), detail);
    stage.pass(Duration::from_secs(1)).await?;
    let late = stage.decisions().into_iter().filter(|it| {
        it.shard == shard && it.record.sequence > after[shard] && is_decided(it, "Reclaim")
    });
    let late = late.count();
    // One may have been decided between the roll-up and the look at it.
    stage.claim(STOPPED, late <= 1, format!("{late} machines left after it"));
    Ok(())
}

/// Waits until the shard has counted all machines that serve: it holds what empties a cluster of
/// ten or more, and counts them once a second at most.
async fn counted(stage: &Stage<'_>, shard: usize) -> Played {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let view = stage.look().await?;
        let serve = |it: &&Machine| it.state() == MachineState::Configured;
        let serving = view.machines(shard).filter(serve).count() as f64;
        let counted = stage.fleet.metrics(shard).await?.sum(COUNTED, Some(("state", "configured")));
        if counted == Some(serving) {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(Stop(format!("{serving} machines serve, the shard counts {counted:?}")));
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// How many machines were told to leave, by cycle.
fn reclaims(stage: &Stage<'_>, shard: usize) -> BTreeMap<i64, usize> {
    let mut counts = BTreeMap::new();
    for it in stage.decisions() {
        if it.shard == shard && is_decided(&it, "Reclaim") {
            *counts.entry(it.record.cycle).or_default() += 1;
        }
    }
    counts
}
