//! Scenario: a cluster sends empty roll-ups by mistake, three in a row.

use std::{collections::BTreeMap, time::Duration};

use bigfleet_scripted::operator::{Operator, OperatorOptions};

use super::{
    record::Phase::{Act, Check},
    stage::{Played, Stage},
    view::is_decided,
};

const C: usize = 2;
const HELD: &str = "held twice, with the gauge up";
const CAPPED: &str = "the reclaim cap bounds the loss per cycle";
const STOPPED: &str = "a good roll-up stops it";
pub(crate) const CLAIMS: &[&str] = &[HELD, CAPPED, STOPPED];

/// Machines that must have left before the good operator returns.
const LEAVE: usize = 2;

pub(crate) async fn play(stage: &Stage<'_>) -> Played {
    let cluster = &stage.fleet.clusters[C];
    let shard = cluster.shard;
    let before = stage.view().serving(C);
    stage.step(Act, "a broken operator of C takes over");
    cluster.stop_operator().await;
    let options = OperatorOptions::new(&cluster.name).without_record();
    let mut broken = Operator::connect(cluster.shard_addr(), cluster.security(), options).await?;
    stage.mark();
    let mut held = Vec::new();
    for number in 1..=3 {
        stage.step(Act, &format!("it sends empty roll-up {number}"));
        broken.roll_up(Vec::new()).await?;
        let gauge = stage
            .until_within(Duration::from_secs(20), &mut |view| {
                let seen =
                    view.shards[shard].sessions.iter().find(|it| it.cluster_id == cluster.name);
                let held = seen.map_or(0, |session| session.rollups_held);
                let due = if number < 3 { number } else { 0 };
                if held == due { Ok(held) } else { Err(format!("{held} held, not {due}")) }
            })
            .await?;
        held.push(gauge);
        if number < 3 && stage.view().serving(C) != before {
            stage.claim(HELD, false, "machines left while it was held");
        }
    }
    stage.claim(HELD, held == [1, 2, 0], format!("the gauge said {held:?}"));
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
