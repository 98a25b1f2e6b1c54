//! One cycle (§3).

use std::{collections::BTreeMap, sync::Arc};

use bigfleet_model::{
    Group, MachineId, Stamp,
    grace::{VOLUNTARY_GRACE, drain_grace},
};

use crate::{
    action::{Acquisition, Action, ActionKind},
    input::{CycleInput, NeedKey},
    output::{CycleOutput, NeedIdx, Unresolved},
    phase1::{self, Pick, Prepared},
    phase2::{self, Standing, Victim},
    phase3, verdict,
    world::{self, RunKind, World},
};

/// Decides one cycle. Pure: equal input, equal output, whatever its order.
pub fn decide(input: &CycleInput) -> CycleOutput {
    let mut world = world::build(input);
    let mut prepared = phase1::assign(&mut world);
    let standing = Standing::of(&world, &prepared);
    let inversions = phase2::invert(&world, &mut prepared, &standing);
    let reclaimed = phase3::reclaim(&world, &standing, &inversions);
    let released = phase3::release(&world, &standing);

    let mut actions = Vec::new();
    for (at, need) in prepared.iter().enumerate() {
        acquisitions(&world, at, need, &mut actions);
    }
    let mut victims = inversions.victims.clone();
    victims.sort_by_key(|victim| (victim.need, victim.machine));
    actions.extend(victims.iter().map(|victim| preempt(&world, &prepared, victim)));
    actions.extend(reclaimed.into_iter().map(|machine| {
        let cluster = cluster_of(&world, machine);
        taking(&world, machine, ActionKind::Reclaim { cluster, grace: VOLUNTARY_GRACE })
    }));
    actions.extend(released.into_iter().map(|machine| taking(&world, machine, ActionKind::Delete)));

    let (verdicts, gang_ages) = verdict::judge(&world, &prepared, &inversions);
    let unresolved = inversions.resolutions.into_iter().filter(|r| !r.residual.is_zero());
    CycleOutput {
        verdicts,
        claims: claims(&world, &prepared),
        actions,
        unresolved: unresolved
            .map(|resolution| Unresolved {
                need: NeedIdx(resolution.need as u32),
                deficit: resolution.residual,
                preempted: resolution.preempted,
            })
            .collect(),
        gang_ages,
    }
}

fn machine_id(world: &World<'_>, machine: usize) -> MachineId {
    world.input.snapshot[world.machines[machine].source].machine.id.clone()
}

fn claims(world: &World<'_>, prepared: &[Prepared]) -> BTreeMap<MachineId, NeedIdx> {
    let of_need = |(at, need): (usize, &Prepared)| {
        need.claims()
            .map(move |claim| (machine_id(world, claim.machine), NeedIdx(at as u32)))
            .collect::<Vec<_>>()
    };
    prepared.iter().enumerate().flat_map(of_need).collect()
}

/// Bootstraps and provisions of one need, by machine.
fn acquisitions(world: &World<'_>, at: usize, need: &Prepared, actions: &mut Vec<Action>) {
    let mut picks: Vec<&Pick> = need.picks.iter().collect();
    picks.sort_by_key(|pick| pick.claim.machine);
    let stamp = Arc::new(stamp_of(world, need));
    for pick in picks {
        let acquisition = Acquisition {
            cluster: world.names.cluster(need.cluster).clone(),
            stamp: stamp.clone(),
            need: NeedIdx(at as u32),
        };
        let kind = match world.runs[pick.claim.run].kind {
            RunKind::Idle => ActionKind::Bootstrap(acquisition),
            RunKind::Speculative => ActionKind::Provision(acquisition),
            // Already being created: it is waited for.
            RunKind::Creating | RunKind::Bound | RunKind::Bought => continue,
        };
        actions.push(Action {
            machine: machine_id(world, pick.claim.machine),
            kind,
            cost: pick.cost,
            runner_up_cost: pick.runner_up,
            domain_rule: need.rule,
        });
    }
}

/// Identity of a prepared need.
pub(crate) fn key_of(world: &World<'_>, need: &Prepared) -> NeedKey {
    NeedKey {
        cluster: world.names.cluster(need.cluster).clone(),
        fingerprint: world.fingerprint(need.profile).clone(),
        group: Group::from(phase1::group(world, need)),
    }
}

fn stamp_of(world: &World<'_>, need: &Prepared) -> Stamp {
    let profile = &world.profiles.row(need.profile).profile;
    let key = key_of(world, need);
    Stamp {
        priority: Some(profile.priority()),
        interruption: profile.interruption().dollars(),
        reclamation: profile.reclamation().dollars(),
        fingerprint: key.fingerprint,
        group: key.group,
        for_cluster: Some(key.cluster),
    }
}

fn cluster_of(world: &World<'_>, machine: usize) -> bigfleet_model::ClusterId {
    let cluster = world.machines[machine].cluster;
    cluster.map_or_else(|| "".into(), |cluster| world.names.cluster(cluster).clone())
}

fn preempt(world: &World<'_>, prepared: &[Prepared], victim: &Victim) -> Action {
    let need = &prepared[victim.need];
    let kind = ActionKind::Preempt {
        cluster: cluster_of(world, victim.machine),
        grace: drain_grace(victim.gap),
        preemptor_priority: world.profiles.row(need.profile).profile.priority(),
        preemptor: key_of(world, need),
        need: NeedIdx(victim.need as u32),
    };
    taking(world, victim.machine, kind)
}

/// An action that takes a machine from somebody costs what the machine costs.
fn taking(world: &World<'_>, machine: usize, kind: ActionKind) -> Action {
    Action {
        machine: machine_id(world, machine),
        kind,
        cost: world.classes[world.machines[machine].class].price,
        runner_up_cost: None,
        domain_rule: 0,
    }
}
