//! Clusters with pods: what they ask for is what their live pods request, bound or
//! not, so that an eviction never lowers demand.

use std::collections::BTreeMap;

use bigfleet_model::{ClusterId, MachineId, MachineState, Need, Resources};

use crate::{closed_loop::Simulation, provider::Provider};

/// Equal pods.
#[derive(Clone, Debug)]
struct Workload {
    /// Whose, and what one pod asks for: its `min_unit`.
    template: Need,
    /// Where each pod runs.
    pods: Vec<Option<MachineId>>,
}

/// All workloads of all clusters.
#[derive(Clone, Debug, Default)]
pub struct Pods {
    workloads: Vec<Workload>,
    /// Pods that lost their machine so far.
    pub evictions: u64,
}

impl Pods {
    /// Adds a workload of so many pods, each requesting the template's `min_unit`;
    /// returns its number.
    pub fn deploy(&mut self, template: Need, replicas: usize) -> usize {
        self.workloads.push(Workload { template, pods: vec![None; replicas] });
        self.workloads.len() - 1
    }

    /// Wants another number of pods. Pods that run nowhere leave first.
    pub fn scale(&mut self, workload: usize, replicas: usize) {
        let pods = &mut self.workloads[workload].pods;
        pods.sort_by_key(Option::is_none);
        pods.resize(replicas, None);
    }

    /// Pods that run nowhere.
    pub fn waiting(&self) -> usize {
        self.workloads.iter().flat_map(|one| &one.pods).filter(|pod| pod.is_none()).count()
    }

    /// All pods.
    pub fn live(&self) -> usize {
        self.workloads.iter().map(|workload| workload.pods.len()).sum()
    }

    /// What a cluster asks for: one need per workload with pods.
    pub fn needs(&self, cluster: &ClusterId) -> Vec<Need> {
        let of_cluster = self.workloads.iter().filter(|one| one.template.cluster == *cluster);
        let live = of_cluster.filter(|workload| !workload.pods.is_empty());
        live.map(|workload| Need {
            aggregate: workload.template.min_unit.scale(workload.pods.len() as u64),
            ..workload.template.clone()
        })
        .collect()
    }

    /// Evicts pods from machines that no longer serve their cluster, then binds
    /// what fits, first come, first served.
    pub fn schedule(&mut self, provider: &Provider) {
        let mut room: BTreeMap<MachineId, Resources> = provider
            .machines()
            .filter(|tracked| tracked.machine.state == MachineState::Configured)
            .map(|tracked| (tracked.machine.id.clone(), tracked.machine.class.capacity().clone()))
            .collect();
        for workload in &mut self.workloads {
            for pod in &mut workload.pods {
                let Some(id) = pod else { continue };
                let serves = provider.machine(id).is_some_and(|tracked| {
                    tracked.machine.cluster.as_ref() == Some(&workload.template.cluster)
                });
                match room.get_mut(id).filter(|_| serves) {
                    Some(room) => room.sub_sat_assign(&workload.template.min_unit),
                    None => {
                        *pod = None;
                        self.evictions += 1;
                    }
                }
            }
        }
        for Workload { template, pods } in &mut self.workloads {
            for pod in pods.iter_mut().filter(|pod| pod.is_none()) {
                let fits = |(id, room): &(&MachineId, &mut Resources)| {
                    provider.machine(id).is_some_and(|tracked| {
                        tracked.machine.cluster.as_ref() == Some(&template.cluster)
                            && template.usable(&*tracked.machine.class, room)
                    })
                };
                let Some((id, room)) = room.iter_mut().find(fits) else { continue };
                room.sub_sat_assign(&template.min_unit);
                *pod = Some(id.clone());
            }
        }
    }

    /// One cycle with pods: they settle on what is there, their clusters report,
    /// the shard decides.
    pub fn step(&mut self, sim: &mut Simulation) {
        self.schedule(&sim.provider);
        let mut clusters: Vec<ClusterId> =
            self.workloads.iter().map(|one| one.template.cluster.clone()).collect();
        clusters.sort();
        clusters.dedup();
        for cluster in clusters {
            let needs = self.needs(&cluster);
            sim.roll_up(&cluster, needs);
        }
        sim.step();
    }
}
