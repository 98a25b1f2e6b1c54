//! Durable: what `kill -9` must not take.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::future::try_join_all;

use super::smoke::fence::{exact, map};
use crate::{
    case::{Binding, CREATE_FAULT, Case, Machine, State},
    catalogue::rows,
    ensure,
    outcome::Outcome,
    shard::Shard,
    target::Instance,
    wire::state_name,
};

rows! { Durable:
    "DU-01" "a stale token is stale after a restart" [Durable] [Dur] M du_01;
    "DU-02" "a repetition after a restart has the first id" [Durable] [Dur] M du_02;
    "DU-03" "the binding is there after a restart" [Durable] [Dur] M du_03;
    "DU-04" "every machine is in its state after a restart" [Durable] [Dur] M du_04;
    "DU-05" "ids and revisions go on after a restart" [Durable] [Dur] M du_05;
    "DU-06" "an interrupted Configure is FAILED; nothing is left in transition" [Durable] [Dur Flt] M du_06;
    "DU-07" "a new shard is accepted after a restart" [Durable] [Dur] M du_07;
}

/// Machines of a target that is killed.
const MACHINES: u64 = 64;

/// Before the kill: a shard has marked (3,7) on one machine, another one is bound.
struct Scene {
    t: Case,
    instance: Instance,
    shard: Arc<Shard>,
    created: String,
    bound: String,
    binding: Binding,
    configure_id: String,
    ids: Vec<String>,
    states: BTreeMap<String, i32>,
}

impl Scene {
    async fn set(t: &Case) -> Outcome<Self> {
        let instance = t.boot(MACHINES, &[]).await?;
        let t = t.on(instance.wire());
        let machines = t.starts(2).await?;
        let (created, bound) = (machines[0].clone(), machines[1].clone());
        let shard = t.shard();
        let mut ids = vec![t.probe(&created, &shard.at(3, 7)).await.accepted()?.id];
        if t.gates().slot {
            t.settle(&created, State::Idle).await?;
            ids.push(t.create_and_wait(&bound).await?.id);
        } else {
            t.settle(&created, State::Configured).await?;
        }
        let metadata = map(&[("bigfleet.lucy.sh/assigned-priority", "7"), ("odd", "\0 ☃ ")]);
        let binding = Binding::to(t.cluster("a")).with(metadata);
        let configure_id = t.configure_and_wait(&bound, binding.clone()).await?.id;
        ids.push(configure_id.clone());
        let states = states(&t).await?;
        Ok(Self { t, instance, shard, created, bound, binding, configure_id, ids, states })
    }

    /// Kills and reboots.
    async fn after(mut self) -> Outcome<Self> {
        self.t = self.t.reboot(&mut self.instance).await?;
        Ok(self)
    }
}

async fn states(t: &Case) -> Outcome<BTreeMap<String, i32>> {
    Ok(t.fleet().await?.into_iter().map(|machine| (machine.id, machine.state)).collect())
}

async fn du_01(t: Case) -> Outcome {
    let s = Scene::set(&t).await?.after().await?;
    s.t.probe(&s.created, &s.shard.at(3, 7)).await.fenced()
}

async fn du_02(t: Case) -> Outcome {
    let s = Scene::set(&t).await?.after().await?;
    let again = s.t.configure(&s.bound, s.binding.clone()).await.accepted()?;
    ensure!(
        again.id == s.configure_id,
        "after the restart Configure answers {:?}, not {:?}",
        again.id,
        s.configure_id
    );
    Ok(())
}

async fn du_03(t: Case) -> Outcome {
    let s = Scene::set(&t).await?.after().await?;
    let seen = s.t.is_in(&s.bound, State::Configured).await?;
    ensure!(seen.cluster == s.binding.cluster, "{:?} is bound to {:?}", s.bound, seen.cluster);
    exact("Get", &s.bound, &seen.shard_metadata, &s.binding.metadata)
}

async fn du_04(t: Case) -> Outcome {
    let mut s = Scene::set(&t).await?;
    // A slot that was lost looks like one that was kept, and a host alone tells
    // that its machine is idle: bind them all.
    let source = if s.t.gates().slot { State::Speculative } else { State::Idle };
    let fleet = s.t.fleet().await?;
    let free = |machine: &&Machine| {
        machine.state() == source && !machine.labels.contains_key(CREATE_FAULT)
    };
    let free: Vec<_> = fleet.iter().filter(free).map(|machine| machine.id.clone()).collect();
    if s.t.gates().slot {
        try_join_all(free.iter().map(|m| s.t.create_and_wait(m))).await?;
    }
    let binding = || Binding::to(s.t.cluster("b"));
    try_join_all(free.iter().map(|m| s.t.configure_and_wait(m, binding()))).await?;
    s.states = states(&s.t).await?;
    let s = s.after().await?;
    let after = states(&s.t).await?;
    for (id, &before) in &s.states {
        let now = after.get(id).map_or_else(|| "gone".to_owned(), |&state| state_name(state));
        ensure!(
            after.get(id) == Some(&before),
            "{id:?} was {} before the kill and is {now}",
            state_name(before)
        );
    }
    ensure!(after.len() == s.states.len(), "{} machines are new", after.len() - s.states.len());
    Ok(())
}

async fn du_05(t: Case) -> Outcome {
    let s = Scene::set(&t).await?.after().await?;
    ensure!(!s.t.head().await?.is_empty(), "the revision is empty after the restart");
    for m in s.t.starts(4).await? {
        let new = s.t.probe(&m, &s.t.me().next()).await.accepted()?;
        ensure!(!s.ids.contains(&new.id), "{:?} was used before the restart", new.id);
    }
    Ok(())
}

async fn du_06(t: Case) -> Outcome {
    let mut instance = t.boot(MACHINES, &["--transition-timeout=30s"]).await?;
    let t = t.on(instance.wire());
    let m = t.idle().await?;
    t.configure(&m, Binding::to("fault-timeout")).await.accepted()?;
    t.settle(&m, State::Configuring).await?;
    let t = t.reboot(&mut instance).await?;
    t.fails(&m, Duration::from_secs(5)).await?;
    for machine in t.fleet().await? {
        let state = state_name(machine.state);
        ensure!(
            matches!(
                machine.state(),
                State::Speculative | State::Idle | State::Configured | State::Failed
            ),
            "{:?} is left in {state}",
            machine.id
        );
    }
    Ok(())
}

async fn du_07(t: Case) -> Outcome {
    let s = Scene::set(&t).await?.after().await?;
    let other = s.t.shard();
    s.t.probe(&s.created, &other.at(1, 1)).await.passed_fence()?;
    Ok(())
}
