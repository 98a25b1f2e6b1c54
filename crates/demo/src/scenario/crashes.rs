//! Scenarios of processes that die.

use std::{collections::BTreeSet, time::Duration};

use tokio::time::Instant;

use super::{
    baseline::level,
    record::Phase::{Act, Check},
    stage::{PATIENCE, Played, Stage, Stop},
    view::is_decided,
};
use crate::{
    cluster::workload::{Class, Workload},
    eyes::Decision,
    fleet::Fleet,
};

const A: usize = 0;
const BATCH: Workload = Workload::Plain(Class::Batch);

/// Who leads, as it says itself; a replica that does not run has no say.
async fn leader(stage: &Stage<'_>) -> Option<usize> {
    for (number, node) in stage.fleet.coordinators.iter().enumerate() {
        if node.part.pid().is_none() {
            continue;
        }
        if let Some(status) = stage.fleet.eyes.ask_replica(number).await
            && status.leader_id == node.part.id
        {
            return Some(number);
        }
    }
    None
}

async fn until_leader(stage: &Stage<'_>) -> Result<usize, Stop> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        stage.look().await?;
        match leader(stage).await {
            Some(number) => return Ok(number),
            None if Instant::now() > deadline => return Err(Stop("nobody leads".to_owned())),
            None => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// All demand of A is served, however it changes.
async fn served(stage: &Stage<'_>, batch: u32) -> Played {
    stage.demand(A, BATCH, batch);
    stage
        .until(|view| match view.pods(A, BATCH) {
            pods if pods.settled() => Ok(()),
            pods => Err(format!("{} of {} run", pods.running, pods.wanted)),
        })
        .await
}

/// Pods that run, of all clusters but one.
fn running(fleet: &Fleet, but: Option<usize>) -> BTreeSet<String> {
    let clusters = fleet.clusters.iter().enumerate().filter(|(at, _)| Some(*at) != but);
    let pods = clusters.flat_map(|(at, cluster)| {
        cluster.running().into_iter().map(move |uid| format!("{at}/{uid}"))
    });
    pods.collect()
}

/// Fails the claim when one of the pods that run now does no more. Says how many they are.
fn keep_running(stage: &Stage<'_>, claim: &'static str) -> usize {
    keep(stage, claim, None)
}

/// The same, of all clusters but this one.
fn keep_running_but(stage: &Stage<'_>, claim: &'static str, cluster: usize) {
    keep(stage, claim, Some(cluster));
}

fn keep(stage: &Stage<'_>, claim: &'static str, but: Option<usize>) -> usize {
    let pods = running(stage.fleet, but);
    let count = pods.len();
    stage.guard(claim, move |_, fleet| {
        let gone = pods.difference(&running(fleet, but)).count();
        (gone > 0).then(|| format!("{gone} of {count} pods are gone"))
    });
    count
}

/// Machines that were told to leave since the mark.
fn drains(stage: &Stage<'_>) -> usize {
    let drain = |it: &Decision| is_decided(it, "Reclaim") || is_decided(it, "Preempt");
    let machines = stage.decisions().into_iter().filter(drain).map(|it| it.record.machine_id);
    machines.collect::<BTreeSet<_>>().len()
}

/// Kill the coordinator's leader.
pub(crate) mod leader {
    use super::*;

    const SOON: &str = "new leader < 2 s";
    const UNAFFECTED: &str = "data plane unaffected";
    pub(crate) const CLAIMS: &[&str] = &[SOON, UNAFFECTED];

    const MORE: u32 = 2;

    pub(crate) async fn play(stage: &Stage<'_>) -> Played {
        let old = until_leader(stage).await?;
        let node = &stage.fleet.coordinators[old];
        let pods = keep_running(stage, UNAFFECTED);
        stage.step(Act, &format!("{} leads; it is killed, and demand in A rises", node.part.id));
        stage.mark();
        node.part.kill().await;
        let begun = Instant::now();
        // While nobody leads: what follows is to be served all the same.
        stage.demand(A, BATCH, level(A, BATCH) + MORE);
        stage.step(Check, "another one leads");
        let new = until_leader(stage).await?;
        let took = begun.elapsed();
        let name = &stage.fleet.coordinators[new].part.id;
        let detail = format!("{name} after {:.2} s", took.as_secs_f64());
        stage.claim(SOON, took < Duration::from_secs(2) && new != old, detail);
        stage.step(Check, "demand is served meanwhile");
        served(stage, level(A, BATCH) + MORE).await?;
        let served = begun.elapsed().as_secs_f64();
        stage.step(Check, "the replica comes back");
        node.part.start().await?;
        stage.until(|_| stage.fleet.missing().map_or(Ok(()), Err)).await?;
        let drains = drains(stage);
        stage.claim(UNAFFECTED, drains == 0, format!("{drains} drains"));
        let detail = format!("{MORE} units more after {served:.1} s, {pods} pods run on, no drain");
        stage.relieve(UNAFFECTED, detail);
        Ok(())
    }
}

/// Kill all replicas.
pub(crate) mod coordinator {
    use super::*;

    const CONTINUES: &str = "data plane continues";
    const RESUMES: &str = "reports resume on return";
    pub(crate) const CLAIMS: &[&str] = &[CONTINUES, RESUMES];

    const MORE: u32 = 4;

    pub(crate) async fn play(stage: &Stage<'_>) -> Played {
        stage.step(Act, "all replicas are killed");
        for node in &stage.fleet.coordinators {
            node.part.kill().await;
        }
        let pods = keep_running(stage, CONTINUES);
        stage.mark();
        stage.step(Check, "demand is served without any of them");
        served(stage, level(A, BATCH) + MORE).await?;
        let drained = drains(stage);
        stage.claim(CONTINUES, drained == 0, format!("{drained} drains while demand rose"));
        // What is given back may take a pod of A along, and of nobody else.
        stage.release(CONTINUES);
        keep_running_but(stage, CONTINUES, A);
        stage.step(Check, "and what is not needed any more is given back");
        served(stage, level(A, BATCH)).await?;
        stage.until(|view| view.resting()).await?;
        let gone = stage.fleet.eyes.reports().await.is_empty();
        stage.claim(CONTINUES, gone, "a replica answers");
        stage.release(CONTINUES);
        let all = keep_running(stage, CONTINUES);
        stage.step(Act, "the replicas return");
        let back = super::super::stage::now() * 1_000_000;
        for node in &stage.fleet.coordinators {
            node.part.start().await?;
        }
        until_leader(stage).await?;
        stage.step(Check, "shards report again");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let reports = stage.fleet.eyes.reports().await;
            let fresh = reports.iter().filter(|it| it.received_at_unix_ns > back).count();
            if fresh == stage.fleet.shards.len() {
                break;
            }
            if Instant::now() > deadline {
                return Err(Stop(format!("{fresh} shards have reported")));
            }
            stage.look().await?;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        stage.claim(RESUMES, true, "both shards have reported since");
        // A few cycles more: whoever leads again must not have anything drained.
        stage.pass(Duration::from_secs(1)).await?;
        let drained = drains(stage);
        let detail = format!("{drained} drains for {MORE} units less");
        stage.claim(CONTINUES, drained == MORE as usize, detail);
        let detail = format!(
            "{MORE} units more, then less, with no replica running; {pods} pods run on, then \
             {all}, no drain but of what was not needed"
        );
        stage.relieve(CONTINUES, detail);
        Ok(())
    }
}

/// Kill a shard mid-bootstrap.
pub(crate) mod shard {
    use bigfleet_wire::v1alpha1::MachineState;

    use super::*;

    const KEPT: &str = "nothing drained";
    const REBUILT: &str = "state rebuilt from the provider";
    const GOES_ON: &str = "what was begun is finished";
    pub(crate) const CLAIMS: &[&str] = &[KEPT, REBUILT, GOES_ON];

    pub(crate) async fn play(stage: &Stage<'_>) -> Played {
        let number = stage.fleet.clusters[A].shard;
        let node = &stage.fleet.shards[number];
        let pods: BTreeSet<String> = running_in_a(stage.fleet);
        let before = stage.view().serving(A).len();
        stage.guard(KEPT, move |_, fleet| {
            let gone = pods.difference(&running_in_a(fleet)).count();
            (gone > 0).then(|| format!("{gone} pods were moved"))
        });
        stage.step(Act, "demand in A rises by 4, and machines are bootstrapped");
        stage.mark();
        stage.demand(A, BATCH, level(A, BATCH) + 4);
        stage
            .until(|view| {
                let begun = view.general(number, MachineState::Configuring);
                if begun.is_empty() { Err("none yet".to_owned()) } else { Ok(()) }
            })
            .await?;
        let epoch = stage.view().shards[number].summary.as_ref().map_or(0, |it| it.shard_epoch);
        stage.step(Act, &format!("{} is killed", node.part.id));
        node.part.kill().await;
        stage.pass(Duration::from_secs(2)).await?;
        stage.step(Act, &format!("{} starts with nothing in memory", node.part.id));
        node.part.start().await?;
        let known = stage
            .until(|view| {
                let seen = &view.shards[number];
                let newer = seen.summary.as_ref().is_some_and(|it| it.shard_epoch > epoch);
                let serving = view.serving(A).len();
                if newer && seen.answered.is_some() && serving >= before {
                    return Ok(serving);
                }
                Err(format!("{serving} machines of A are known"))
            })
            .await?;
        stage.claim(REBUILT, true, format!("{known} machines of A known, {before} before"));
        stage.step(Check, "all demand is met");
        stage.until(|view| view.resting()).await?;
        stage.claim(GOES_ON, true, "4 units more run");
        let drains = stage.decisions().into_iter().filter(|it| {
            it.shard == number && (is_decided(it, "Reclaim") || is_decided(it, "Preempt"))
        });
        let drains = drains.count();
        stage.claim(KEPT, drains == 0, format!("{drains} drains decided"));
        stage.relieve(KEPT, "no drain, and every pod is where it was");
        Ok(())
    }

    fn running_in_a(fleet: &Fleet) -> BTreeSet<String> {
        fleet.clusters[A].running().into_iter().collect()
    }
}

/// Stop BigFleet.
pub(crate) mod everything {
    use super::*;

    const RUN_ON: &str = "pods run on";
    const RETURNS: &str = "nothing is drained on return";
    pub(crate) const CLAIMS: &[&str] = &[RUN_ON, RETURNS];

    const DOWN: Duration = Duration::from_secs(5);
    const GUIDED: Duration = Duration::from_secs(20);

    pub(crate) async fn play(stage: &Stage<'_>) -> Played {
        let count = keep_running(stage, RUN_ON);
        stage
            .step(Act, "every process of BigFleet stops: replicas, shards, operators, controllers");
        stage.mark();
        for cluster in &stage.fleet.clusters {
            cluster.stop_parts().await;
        }
        for node in stage.fleet.shards.iter().chain(&stage.fleet.coordinators) {
            node.part.kill().await;
        }
        let begun = Instant::now();
        let down = if stage.guided { GUIDED } else { DOWN };
        stage.step(Check, "pods run on");
        while begun.elapsed() < down {
            stage.pass(Duration::from_millis(500)).await?;
            let seconds = begun.elapsed().as_secs_f64();
            stage.detail(&format!("BigFleet down for {seconds:.0} s, {count} pods run"));
        }
        stage.step(Act, "everything starts again");
        stage.fleet.heal().await?;
        stage.until(|_| stage.fleet.missing().map_or(Ok(()), Err)).await?;
        stage.until(|view| view.resting()).await?;
        // A few cycles more: a drain would come with the first roll-ups.
        stage.pass(Duration::from_secs(2)).await?;
        let seconds = begun.elapsed().as_secs_f64();
        let drains = drains(stage);
        stage.claim(RETURNS, drains == 0, format!("{drains} drains"));
        stage.relieve(RUN_ON, format!("{count} pods, the same for {seconds:.0} s"));
        Ok(())
    }
}
