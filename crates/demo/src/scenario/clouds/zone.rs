//! One zone fails.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bigfleet_provider_sim::{Freeze, Kill, Selector};
use bigfleet_wire::v1alpha1::{Machine, MachineState};
use tokio::time::Instant;

use super::{A, B, BATCH, PRODUCTION, all_run};
use crate::{
    cluster::workload::Workload,
    scenario::{
        baseline::level,
        record::Phase::{Act, Check, Precondition},
        stage::{Played, Stage},
        view::View,
    },
    supply::SITES,
};

const GROUP: &str = "the group is rebuilt in another zone, in one piece";
const SPREAD: &str = "the spread is rebuilt over other zones, no two further than one apart";
const TIME: &str = "recovery time";
const RETURNS: &str = "the zone returns by itself";
pub(crate) const CLAIMS: &[&str] = &[GROUP, SPREAD, TIME, RETURNS];

const ZONE: &str = "topology.kubernetes.io/zone";
/// One for each zone of the shard, so that every zone loses one.
const SPREAD_UNITS: u32 = 8;
const GROUP_UNITS: u32 = 3;
const BATCH_UNITS: u32 = 2;
/// Far more than it takes, far less than anybody would wait.
const SOON: Duration = Duration::from_secs(60);

pub(crate) async fn play(stage: &Stage<'_>) -> Played {
    let cluster = &stage.fleet.clusters[B];
    let shard = cluster.shard;
    let zones = |workload: Workload| -> Vec<String> {
        cluster.places(workload, ZONE).into_values().map(|(_, zone)| zone).collect()
    };
    stage.step(Precondition, "B runs a group that shares a zone, and pods spread over zones");
    // The owner's zones are to be free for the group: a zone of a cloud has slots that are for
    // sale whether anybody can deliver them or not, and work that must be spread over all zones
    // would wait there. The cloud's committed machines come first by name, and A takes them.
    let of_cloud = SITES[shard].reserved() as u32 - level(A, PRODUCTION);
    for (cluster, workload) in [(A, BATCH), (A, PRODUCTION), (B, BATCH), (B, PRODUCTION)] {
        stage.demand(cluster, workload, 0);
    }
    stage.until(|view| view.resting()).await?;
    stage.demand(A, PRODUCTION, level(A, PRODUCTION));
    stage.demand(A, BATCH, of_cloud);
    stage.until(|view| view.resting()).await?;
    // Before there is other work in B: a scheduler moves no pod for the sake of balance, and
    // would put two into a zone while another has no node yet.
    stage.demand(B, Workload::Group, GROUP_UNITS);
    stage.until(|view| view.resting()).await?;
    stage.demand(B, Workload::Spread, SPREAD_UNITS);
    stage.until(|view| view.resting()).await?;
    stage.demand(B, BATCH, BATCH_UNITS);
    stage.demand(B, PRODUCTION, level(B, PRODUCTION));
    stage.until(|view| view.resting()).await?;
    let Some(zone) = zones(Workload::Group).first().cloned() else {
        return Err("the group has no zone".into());
    };
    let in_it = |workload| zones(workload).into_iter().filter(|it| *it == zone).count();
    let (of_group, of_spread) = (in_it(Workload::Group), in_it(Workload::Spread));
    if of_spread == 0 {
        return Err(format!("no pod of the spread runs in {zone}").into());
    }
    stage.step(Act, &format!("zone {zone} fails"));
    let standing = |view: &View| -> BTreeSet<String> {
        let stands = |it: &&Machine| {
            it.zone == zone && matches!(it.state(), MachineState::Idle | MachineState::Configured)
        };
        view.machines(shard).filter(stands).map(|machine| machine.id.clone()).collect()
    };
    let committed: BTreeSet<String> = {
        let view = stage.view();
        let rented: BTreeSet<&str> = view.rented(shard).iter().map(|it| it.id.as_str()).collect();
        standing(&view).into_iter().filter(|id| !rented.contains(id.as_str())).collect()
    };
    let controls = &stage.fleet.supplies[shard].controls;
    let whom = Selector::zone(&zone);
    let answer: Freeze = serde_json::from_str(r#"{"answer": "refuse"}"#)?;
    controls.freeze(&whom, answer)?;
    let lost = controls.kill(&whom, Kill {})?;
    let begun = Instant::now();
    stage.step(Check, "all pods run again, elsewhere");
    stage
        .until(|view| {
            all_run(view)?;
            for (workload, count) in
                [(Workload::Group, GROUP_UNITS), (Workload::Spread, SPREAD_UNITS)]
            {
                // A pod whose node is gone runs nowhere, whatever it says of itself.
                let places = zones(workload);
                if places.len() != count as usize || places.contains(&zone) {
                    return Err(format!("{} runs in {places:?}", workload.name()));
                }
            }
            Ok(())
        })
        .await?;
    let took = begun.elapsed();
    let group: BTreeSet<String> = zones(Workload::Group).into_iter().collect();
    let text = group.iter().cloned().collect::<Vec<_>>().join(", ");
    stage.claim(GROUP, group.len() == 1 && !group.contains(&zone), text);
    let counts = over(cluster.offered(ZONE), &zone, &zones(Workload::Spread));
    let whole = counts.values().sum::<usize>() == SPREAD_UNITS as usize;
    let (most, least) = (counts.values().max(), counts.values().min());
    let (most, least) = (most.copied().unwrap_or_default(), least.copied().unwrap_or_default());
    let text = format!("{} zones with {least} to {most} each", counts.len());
    stage.claim(SPREAD, whole && counts.len() > 1 && skew(&counts) <= 1, text);
    let seconds = took.as_secs_f64();
    let detail = format!(
        "{lost} hosts, {of_group} pods of the group, {of_spread} of the spread lost; {seconds:.1} s"
    );
    stage.claim(TIME, took < SOON, detail);
    stage.step(Act, "the zone returns");
    stage.fleet.thaw(shard, &whom)?;
    stage.step(Check, "its hosts are repaired");
    stage
        .until(|view| {
            let back = standing(view);
            let lacking: Vec<&String> = committed.difference(&back).collect();
            if !lacking.is_empty() {
                return Err(format!("{lacking:?} do not stand yet"));
            }
            view.resting()
        })
        .await?;
    stage.claim(RETURNS, !committed.is_empty(), format!("{} machines stand", committed.len()));
    Ok(())
}

/// Pods by zone that stands and has a node for them, also where there is none.
fn over(nodes: BTreeSet<String>, failed: &str, pods: &[String]) -> BTreeMap<String, usize> {
    let standing = nodes.into_iter().filter(|zone| zone != failed);
    let count = |zone: &String| pods.iter().filter(|other| *other == zone).count();
    standing.map(|zone| (zone.clone(), count(&zone))).collect()
}

/// How much fuller the fullest is than the emptiest.
fn skew(counts: &BTreeMap<String, usize>) -> usize {
    let (most, least) = (counts.values().max(), counts.values().min());
    most.zip(least).map_or(0, |(most, least)| most - least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_without_a_pod_counts_for_the_skew() {
        let zones = ["w", "x", "y", "z"].map(str::to_owned);
        let pods = ["x", "x", "y", "y"].map(str::to_owned);
        let counts = over(zones.into(), "w", &pods);
        let all = [("x", 2), ("y", 2), ("z", 0)].map(|(zone, count)| (zone.to_owned(), count));
        assert_eq!(counts, BTreeMap::from(all));
        assert_eq!(skew(&counts), 2);
        assert_eq!(skew(&over(["x", "y"].map(str::to_owned).into(), "w", &pods)), 0);
        assert_eq!(skew(&BTreeMap::new()), 0);
    }
}
