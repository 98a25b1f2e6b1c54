//! Which pod runs where: first come, first served, but never so that a pod
//! waits which a better packing would place.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_model::Resources;

use super::workload::{Pod, Workload};
use crate::operator::Picture;

/// What is left on each machine that takes pods.
pub(super) type Room = BTreeMap<String, Resources>;

pub(super) fn all_room(picture: &Picture) -> Room {
    let taking = picture.machines.iter().filter(|(id, _)| picture.schedulable(id));
    taking.map(|(id, machine)| (id.clone(), machine.capacity.clone())).collect()
}

/// Puts pods off machines that no longer serve them; how many.
pub(super) fn evict(
    workloads: &mut [Workload],
    picture: &Picture,
    room: &mut Room,
    now: i64,
) -> u64 {
    let mut evicted = 0;
    for workload in workloads {
        let mut pods = std::mem::take(&mut workload.pods);
        for pod in &mut pods {
            let Some(id) = &pod.machine else { continue };
            let left = room.get_mut(id).filter(|left| workload.fits(picture, id, left));
            match left {
                Some(left) => left.sub_sat_assign(&workload.request),
                None => {
                    *pod = Pod { machine: None, waiting_since: now };
                    evicted += 1;
                }
            }
        }
        workload.pods = pods;
    }
    evicted
}

/// Binds what waits; how many pods still wait.
pub(super) fn bind(workloads: &mut [Workload], picture: &Picture, room: &mut Room) -> usize {
    // Who has the least choice chooses first, then who needs the most.
    let mut order: Vec<usize> = (0..workloads.len()).collect();
    order.sort_by_key(|&at| {
        let workload = &workloads[at];
        let size: i128 = workload.request.iter().map(|(_, amount)| i128::from(amount)).sum();
        (std::cmp::Reverse((workload.profile.requirements().len(), size)), at)
    });
    for at in order {
        let workload = &mut workloads[at];
        if workload.is_gang() {
            bind_gang(workload, picture, room);
        } else {
            bind_within(workload, picture, room, |_| true);
        }
    }
    workloads.iter().flat_map(|workload| &workload.pods).filter(|pod| pod.machine.is_none()).count()
}

fn bind_within(
    workload: &mut Workload,
    picture: &Picture,
    room: &mut Room,
    admitted: impl Fn(&str) -> bool,
) {
    for at in 0..workload.pods.len() {
        if workload.pods[at].machine.is_some() {
            continue;
        }
        let fits = |id: &String, left: &Resources| admitted(id) && workload.fits(picture, id, left);
        let Some((id, left)) = room.iter_mut().find(|(id, left)| fits(id, left)) else { return };
        left.sub_sat_assign(&workload.request);
        workload.pods[at].machine = Some(id.clone());
    }
}

/// A gang that runs somewhere grows there; one that runs nowhere begins where
/// all of it fits.
fn bind_gang(workload: &mut Workload, picture: &Picture, room: &mut Room) {
    let domain_of = |workload: &Workload, id: &str| {
        let machine = picture.machines.get(id)?;
        let domain = workload.domain(&machine.frame.labels)?;
        Some(domain.into_iter().map(str::to_owned).collect::<Vec<String>>())
    };
    let home = workload.pods.iter().find_map(|pod| pod.machine.as_deref());
    if let Some(home) = home.and_then(|id| domain_of(workload, id)) {
        let template = workload.clone();
        bind_within(workload, picture, room, |id| domain_of(&template, id).as_ref() == Some(&home));
        return;
    }
    let domains: BTreeSet<_> = room.keys().filter_map(|id| domain_of(workload, id)).collect();
    for domain in domains {
        let (mut trial, mut trial_room) = (workload.clone(), room.clone());
        let here = |id: &str| domain_of(workload, id).as_ref() == Some(&domain);
        bind_within(&mut trial, picture, &mut trial_room, here);
        if trial.pods.iter().all(|pod| pod.machine.is_some()) {
            (*workload, *room) = (trial, trial_room);
            return;
        }
    }
}

/// Settles all pods; how many were evicted, and how many moved so that others
/// fit.
pub(super) fn settle(workloads: &mut [Workload], picture: &Picture, now: i64) -> (u64, u64) {
    let mut room = all_room(picture);
    let evicted = evict(workloads, picture, &mut room, now);
    let waiting = bind(workloads, picture, &mut room);
    if waiting == 0 {
        return (evicted, 0);
    }
    let mut anew = workloads.to_vec();
    let pods = anew.iter_mut().flat_map(|workload| &mut workload.pods);
    pods.for_each(|pod| pod.machine = None);
    if bind(&mut anew, picture, &mut all_room(picture)) >= waiting {
        return (evicted, 0);
    }
    let mut moved = 0;
    for (workload, packed) in workloads.iter_mut().zip(anew) {
        for (pod, packed) in workload.pods.iter_mut().zip(packed.pods) {
            moved += u64::from(pod.machine.is_some() && pod.machine != packed.machine);
            *pod = packed;
        }
    }
    (evicted, moved)
}
