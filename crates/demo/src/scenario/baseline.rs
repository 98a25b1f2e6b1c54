//! The busy baseline on committed machines, and the way back to it from anywhere.

use std::collections::BTreeMap;

use super::{
    record::Phase::Precondition,
    stage::{Played, Stage, Stop},
    view::{View, is_rented},
};
use crate::cluster::workload::{Class, Workload};

/// Batch and production pods of each cluster.
pub(crate) const BASELINE: [[u32; 2]; 3] = [[8, 6], [4, 6], [8, 6]];

/// How often demand stands back; once is enough unless a machine is bought meanwhile.
const ROUNDS: u32 = 5;

/// Pods of a workload at the baseline.
pub(crate) const fn level(cluster: usize, workload: Workload) -> u32 {
    match workload {
        Workload::Plain(Class::Batch) => BASELINE[cluster][0],
        Workload::Plain(Class::Production) => BASELINE[cluster][1],
        _ => 0,
    }
}

/// Heals everything, returns to the baseline and waits until nothing moves and nothing costs.
pub(crate) async fn reset(stage: &Stage<'_>) -> Played {
    stage.step(Precondition, "everything runs and obeys");
    stage.fleet.heal().await?;
    stage.until(|_| stage.fleet.missing().map_or(Ok(()), Err)).await?;
    stage.fleet.release_brakes().await?;
    stage.step(Precondition, "baseline demand is met on committed machines, at $0/h");
    to_baseline(stage, |_| 0);
    for round in 0.. {
        let rented = stage.until(|view| view.resting().map(|()| rented(view))).await?;
        let count: u32 = rented.values().sum();
        if count == 0 {
            break;
        }
        if round == ROUNDS {
            return Err(Stop(format!("{count} rented machines are still in use")));
        }
        // Nothing moves a pod off a rented machine as long as its demand stands; so it stands
        // back for a moment, and what is dear goes first. A rented machine may hold either class.
        to_baseline(stage, |cluster| rented.get(&cluster).copied().unwrap_or_default());
        stage.until(|view| view.resting()).await?;
        to_baseline(stage, |_| 0);
    }
    let free = |view: &View| match view.dollars() {
        0.0 => Ok(()),
        dollars => Err(format!("${dollars:.2}/h")),
    };
    stage.until(|view| view.resting().and_then(|()| free(view))).await?;
    stage.mark();
    Ok(())
}

/// Every workload of every cluster at its level, or so much less of it.
fn to_baseline(stage: &Stage<'_>, less: impl Fn(usize) -> u32) {
    for cluster in 0..BASELINE.len() {
        for workload in Workload::ALL {
            let level = level(cluster, workload).saturating_sub(less(cluster));
            stage.demand(cluster, workload, level);
        }
    }
}

/// Rented machines that serve each cluster.
fn rented(view: &View) -> BTreeMap<usize, u32> {
    let count = |cluster: usize| {
        let serving = view.serving(cluster);
        let rented = view.all().filter(|machine| is_rented(machine));
        rented.filter(|machine| serving.contains(&machine.id)).count() as u32
    };
    (0..BASELINE.len()).map(|cluster| (cluster, count(cluster))).collect()
}
