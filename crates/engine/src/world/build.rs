//! From the input to its dense form.

use std::{cmp::Ordering, collections::BTreeMap};

use bigfleet_model::{MachineState, Need};

use super::{
    DrainRow, Key, MachineRow, NeedRow, Profiles, Run, RunKind, World,
    class::Classes,
    names::Names,
    overlay::{Overlay, Seen, SeenDrain},
};
use crate::input::{CycleInput, GangKey, NeedKey, Tracked};

pub(crate) fn build(input: &CycleInput) -> World<'_> {
    let overlay = Overlay::of(input);
    let seen: Vec<Seen<'_>> = input.snapshot.iter().map(|one| overlay.apply(one)).collect();
    let mut names = names(input, &seen);
    let mut classes = Classes::default();
    let mut by_id: Vec<usize> = (0..seen.len()).collect();
    by_id.sort_unstable_by(|a, b| id(&input.snapshot[*a]).cmp(id(&input.snapshot[*b])));

    let mut machines = Vec::with_capacity(seen.len());
    for source in by_id {
        let (tracked, seen) = (&input.snapshot[source], &seen[source]);
        machines.push(MachineRow {
            state: seen.state,
            class: classes.intern(&tracked.machine.class),
            cluster: seen.cluster.and_then(|cluster| names.number(cluster)),
            stamp: seen.stamp,
            key: seen.stamp.map(|stamp| names.key(&stamp.fingerprint, &stamp.group)),
            for_cluster: seen
                .stamp
                .and_then(|stamp| stamp.for_cluster.as_ref())
                .and_then(|cluster| names.number(cluster)),
            idle_since: tracked.idle_since,
            // Left over from an earlier drain, it says nothing.
            drain: seen
                .drain
                .as_ref()
                .filter(|_| seen.state == MachineState::Draining)
                .map_or_else(DrainRow::default, |one| drain(one, &mut names)),
            held_back: input.held_back.get(&tracked.machine.id).copied(),
            source,
        });
    }
    let mut profiles = Profiles::default();
    let needs = needs(input, &mut names, &mut profiles, &classes);
    let mut world = World {
        input,
        ready: (0..names.clusters()).map(|c| input.ready.contains(names.cluster(c))).collect(),
        bound: vec![Vec::new(); names.clusters()],
        names,
        profiles,
        machines,
        needs,
        runs: Vec::new(),
        members: Vec::new(),
        acquirable_of: vec![Vec::new(); classes.rows.len()],
        classes: classes.rows,
    };
    group_into_runs(&mut world);
    world
}

fn id(tracked: &Tracked) -> &str {
    &tracked.machine.id
}

fn names<'a>(input: &'a CycleInput, seen: &[Seen<'a>]) -> Names<'a> {
    let bound = seen.iter().filter_map(|seen| seen.cluster);
    let bought = seen.iter().filter_map(|seen| seen.stamp?.for_cluster.as_ref());
    let asking = input.demand.iter().map(|need| &need.cluster);
    Names::of(bound.chain(bought).chain(asking).chain(&input.ready))
}

fn drain<'a>(drain: &SeenDrain<'a>, names: &mut Names<'a>) -> DrainRow {
    let preemptor = drain.preemptor.and_then(|key| {
        Some((names.number(&key.cluster)?, names.key(&key.fingerprint, &key.group)))
    });
    DrainRow { deadline: drain.deadline, preemptor_priority: drain.preemptor_priority, preemptor }
}

/// The total order (§5).
fn serving_order(a: &Need, b: &Need) -> Ordering {
    precedence(b)
        .cmp(&precedence(a))
        .then_with(|| a.arrival.cmp(&b.arrival))
        .then_with(|| a.cluster.cmp(&b.cluster))
        .then_with(|| a.profile.fingerprint().cmp(b.profile.fingerprint()))
        .then_with(|| a.group.cmp(&b.group))
        .then_with(|| a.aggregate.cmp_by_name(&b.aggregate))
}

/// Needs of equal precedence form a tier.
fn precedence(need: &Need) -> (i32, i32, i32) {
    let profile = &need.profile;
    (profile.priority(), profile.interruption().to_wire(), profile.reclamation().to_wire())
}

fn needs<'a>(
    input: &'a CycleInput,
    names: &mut Names<'a>,
    profiles: &mut Profiles,
    classes: &Classes<'_>,
) -> Vec<NeedRow> {
    let mut order: Vec<usize> = (0..input.demand.len()).collect();
    order.sort_unstable_by(|a, b| serving_order(&input.demand[*a], &input.demand[*b]));
    let mut rows: Vec<NeedRow> = Vec::with_capacity(order.len());
    let mut tier = 0;
    for source in order {
        let need = &input.demand[source];
        if let Some(before) = rows.last()
            && precedence(&input.demand[before.source]) != precedence(need)
        {
            tier += 1;
        }
        let gang_key = GangKey {
            cluster: need.cluster.clone(),
            group: need.group.clone(),
            fingerprint: need.profile.fingerprint().clone(),
        };
        let gang = need.profile.same().next().is_some();
        let age = input.gang_ages.get(&gang_key).copied().filter(|_| gang).unwrap_or(0);
        rows.push(NeedRow {
            source,
            cluster: names.number(&need.cluster).unwrap_or_default(),
            profile: profiles.intern(&need.profile, &classes.rows),
            key: names.key(need.profile.fingerprint(), &need.group),
            tier,
            age,
            held: input.no_acquire.get(&NeedKey::of(need)).copied(),
        });
    }
    rows
}

/// What makes machines one run; bits of the reclamation penalty, for keep order
/// looks at it.
type RunKey = (RunKind, usize, Option<usize>, Option<Key>, u64);

fn group_into_runs(world: &mut World<'_>) {
    let mut groups: BTreeMap<RunKey, Vec<usize>> = BTreeMap::new();
    for (number, machine) in world.machines.iter().enumerate() {
        let reclamation = machine.stamp.map_or(0.0, |stamp| stamp.reclamation).to_bits();
        let key = match machine.state {
            MachineState::Configured | MachineState::Configuring => {
                (RunKind::Bound, machine.class, machine.cluster, machine.key, reclamation)
            }
            MachineState::Creating if machine.stamp.is_some() => {
                (RunKind::Bought, machine.class, machine.for_cluster, machine.key, reclamation)
            }
            _ if machine.held_back.is_some() => continue,
            MachineState::Idle => (RunKind::Idle, machine.class, None, None, 0),
            MachineState::Creating => (RunKind::Creating, machine.class, None, None, 0),
            MachineState::Speculative => (RunKind::Speculative, machine.class, None, None, 0),
            MachineState::Draining | MachineState::Deleting | MachineState::Failed => continue,
        };
        groups.entry(key).or_default().push(number);
    }
    for ((kind, class, cluster, ..), members) in groups {
        let number = world.runs.len();
        let run = Run::new(kind, class, members[0], world.members.len(), members.len());
        match kind {
            RunKind::Bound | RunKind::Bought => {
                if let Some(cluster) = cluster {
                    world.bound[cluster].push(number);
                }
            }
            RunKind::Idle | RunKind::Creating | RunKind::Speculative => {
                world.acquirable_of[class].push(number);
            }
        }
        world.runs.push(run);
        world.members.extend(members);
    }
}
