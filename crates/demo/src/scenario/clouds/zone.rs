//! One zone fails.

use std::{collections::BTreeSet, time::Duration};

use bigfleet_provider_sim::{Freeze, Kill, Selector};
use bigfleet_wire::v1alpha1::{Machine, MachineState};
use tokio::time::Instant;

use super::{A, B, BATCH, all_run};
use crate::{
    cluster::workload::Workload,
    scenario::{
        record::Phase::{Act, Check, Precondition},
        stage::{Played, Stage},
        view::View,
    },
};

const GROUP: &str = "the group is rebuilt in another zone, in one piece";
const SPREAD: &str = "the spread is rebuilt over other zones, no two further than one apart";
const TIME: &str = "recovery time";
const RETURNS: &str = "the zone returns by itself";
pub(crate) const CLAIMS: &[&str] = &[GROUP, SPREAD, TIME, RETURNS];

const ZONE: &str = "topology.kubernetes.io/zone";
const SPREAD_UNITS: u32 = 4;
const GROUP_UNITS: u32 = 3;
/// Far more than it takes, far less than anybody would wait.
const SOON: Duration = Duration::from_secs(60);

pub(crate) async fn play(stage: &Stage<'_>) -> Played {
    let cluster = &stage.fleet.clusters[B];
    let shard = cluster.shard;
    let zones = |workload: Workload| -> Vec<String> {
        cluster.places(workload, ZONE).into_values().map(|(_, zone)| zone).collect()
    };
    stage.step(Precondition, "B runs a group that shares a zone, and pods spread over zones");
    // Room on committed machines, so that it is the outage that costs.
    stage.demand(A, BATCH, 1);
    stage.demand(B, BATCH, 2);
    stage.until(|view| view.resting()).await?;
    stage.demand(B, Workload::Group, GROUP_UNITS);
    stage.until(|view| view.resting()).await?;
    stage.demand(B, Workload::Spread, SPREAD_UNITS);
    stage.until(|view| view.resting()).await?;
    let Some(zone) = zones(Workload::Group).first().cloned() else {
        return Err("the group has no zone".into());
    };
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
    let spread = zones(Workload::Spread);
    let count = |zone: &String| spread.iter().filter(|other| *other == zone).count();
    let counts: BTreeSet<usize> = spread.iter().map(count).collect();
    let skew = counts.last().unwrap_or(&0) - counts.first().unwrap_or(&0);
    let over = spread.iter().collect::<BTreeSet<_>>().len() > 1;
    let whole = spread.len() == SPREAD_UNITS as usize && !spread.contains(&zone);
    stage.claim(SPREAD, whole && over && skew <= 1, spread.join(", "));
    let seconds = took.as_secs_f64();
    stage.claim(TIME, took < SOON, format!("{lost} hosts lost, {seconds:.1} s to recover"));
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
