//! The rest of a simulated control plane: controllers that keep pods in number, kubelets that
//! run them, machines that become nodes. A pure function of what is seen, but for what was asked
//! for and is not seen yet.

use std::collections::{BTreeMap, HashMap, HashSet};

use bigfleet_crds::UpcomingNodePhase as Phase;

use super::{
    scheduler::{Scheduler, Wish},
    view::{MachineView, NodeView, PodView, RequestView},
    workload::Workload,
};

/// Everything there is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) pods: Vec<PodView>,
    pub(crate) nodes: BTreeMap<String, NodeView>,
    pub(crate) machines: Vec<MachineView>,
    pub(crate) requests: Vec<RequestView>,
}

/// Pods that each workload should have.
pub(crate) type Wanted = BTreeMap<Workload, u32>;

/// A call to the API server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// A new pod.
    Create(Workload, String),
    /// A pod is not wanted any more.
    Delete(String),
    /// A pod's containers have ended, or its node has: the object goes.
    Remove(String),
    /// A pod has a node.
    Bind(String, String),
    /// A pod runs.
    Run(String),
    /// A machine is a node.
    Join(MachineView),
    /// A node's machine is gone.
    Leave(String),
    /// A request's pod is gone.
    Collect(String),
}

/// What was asked for and is not seen yet.
#[derive(Debug, Default)]
pub(crate) struct ControlPlane {
    made: u64,
    expected: HashMap<String, Workload>,
    deleted: HashSet<String>,
    /// UIDs of pods that were seen; a pod that was never seen is not gone.
    pods: HashSet<String>,
    /// None where a real one is at work.
    scheduler: Option<Scheduler>,
}

impl ControlPlane {
    /// All of it, or what is beside a real scheduler.
    pub(crate) fn new(scheduled: bool) -> Self {
        let scheduler = (!scheduled).then(Scheduler::default);
        Self { scheduler, ..Self::default() }
    }

    /// What must happen now.
    pub(crate) fn look(&mut self, seen: &Seen, wanted: &Wanted) -> Vec<Step> {
        let mut steps = nodes(seen);
        self.expected.retain(|name, _| !seen.pods.iter().any(|pod| pod.name == *name));
        self.deleted.retain(|name| seen.pods.iter().any(|pod| pod.name == *name && !pod.leaving));
        for workload in Workload::ALL {
            let count = wanted.get(&workload).copied().unwrap_or_default() as usize;
            self.keep_in_number(workload, count, seen, &mut steps);
        }
        let names: HashMap<&str, &str> =
            seen.pods.iter().map(|pod| (pod.uid.as_str(), pod.name.as_str())).collect();
        let incomplete: HashSet<Workload> = self.expected.values().copied().collect();
        let look = |it: &mut Scheduler| it.look(&seen.pods, &seen.nodes, &incomplete);
        let wishes = self.scheduler.as_mut().map(look);
        for wish in wishes.into_iter().flatten() {
            let name = |uid: &str| names.get(uid).map(|name| (*name).to_owned());
            match wish {
                Wish::Bind(uid, node) => {
                    steps.extend(name(&uid).map(|name| Step::Bind(name, node)))
                }
                Wish::Evict(uid) => steps.extend(name(&uid).map(Step::Delete)),
            }
        }
        steps.extend(kubelets(seen));
        steps.extend(self.garbage(seen));
        steps
    }

    /// What the garbage collector of a real control plane takes with a pod.
    fn garbage(&mut self, seen: &Seen) -> Vec<Step> {
        let here: HashSet<&str> = seen.pods.iter().map(|pod| pod.uid.as_str()).collect();
        let owned: HashSet<&str> = seen.requests.iter().map(|it| it.pod.as_str()).collect();
        let gone = |uid: &str| self.pods.contains(uid) && !here.contains(uid);
        let due = seen.requests.iter().filter(|request| gone(&request.pod));
        let steps = due.map(|request| Step::Collect(request.name.clone())).collect();
        self.pods.retain(|uid| here.contains(uid.as_str()) || owned.contains(uid.as_str()));
        self.pods.extend(here.iter().map(|uid| (*uid).to_owned()));
        steps
    }

    /// A pod could not be made; it is made again.
    pub(crate) fn not_made(&mut self, name: &str) {
        self.expected.remove(name);
    }

    fn keep_in_number(
        &mut self,
        workload: Workload,
        count: usize,
        seen: &Seen,
        steps: &mut Vec<Step>,
    ) {
        let mut live: Vec<&PodView> = seen
            .pods
            .iter()
            .filter(|pod| pod.workload == workload && !pod.leaving)
            .filter(|pod| !self.deleted.contains(&pod.name))
            .collect();
        let coming = self.expected.values().filter(|known| **known == workload).count();
        for _ in live.len() + coming..count {
            self.made += 1;
            let name = format!("{}-{:05}", workload.name(), self.made);
            self.expected.insert(name.clone(), workload);
            steps.push(Step::Create(workload, name));
        }
        // As a ReplicaSet does it: first those that wait, then the youngest.
        live.sort_by_key(|pod| (!pod.running, pod.name.clone()));
        for pod in live.into_iter().skip(count) {
            self.deleted.insert(pod.name.clone());
            steps.push(Step::Delete(pod.name.clone()));
        }
    }
}

fn nodes(seen: &Seen) -> Vec<Step> {
    let lives = |machine: &&MachineView| machine.phase != Some(Phase::Failed);
    let alive: HashSet<&str> =
        seen.machines.iter().filter(lives).map(|machine| machine.id.as_str()).collect();
    let gone = seen.nodes.keys().filter(|name| !alive.contains(name.as_str()));
    let mut steps: Vec<Step> = gone.map(|name| Step::Leave(name.clone())).collect();
    let joins = seen.machines.iter().filter(|machine| {
        machine.phase == Some(Phase::Ready) && !seen.nodes.contains_key(&machine.id)
    });
    steps.extend(joins.map(|machine| Step::Join(machine.clone())));
    steps
}

fn kubelets(seen: &Seen) -> Vec<Step> {
    let due = |pod: &PodView| {
        let node = pod.node.as_ref()?;
        if pod.leaving || !seen.nodes.contains_key(node) {
            return Some(Step::Remove(pod.name.clone()));
        }
        (!pod.running).then(|| Step::Run(pod.name.clone()))
    };
    seen.pods.iter().filter_map(due).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::workload::Class;

    const BATCH: Workload = Workload::Plain(Class::Batch);

    fn pod(name: &str) -> PodView {
        let mut object = BATCH.pod(name).unwrap();
        object.metadata.uid = Some(format!("uid-{name}"));
        PodView::of(&object).unwrap()
    }

    #[test]
    fn pods_are_kept_in_number_and_asked_for_once() {
        let mut plane = ControlPlane::new(false);
        let two = Wanted::from([(BATCH, 2)]);
        let mut seen = Seen::default();
        let steps = plane.look(&seen, &two);
        let names = ["batch-00001", "batch-00002"];
        assert_eq!(steps, names.map(|name| Step::Create(BATCH, name.to_owned())));
        assert_eq!(plane.look(&seen, &two), []);
        plane.not_made(names[1]);
        assert_eq!(plane.look(&seen, &two), [Step::Create(BATCH, "batch-00003".to_owned())]);
        seen.pods = vec![pod("batch-00001"), pod("batch-00003")];
        assert_eq!(plane.look(&seen, &two), []);
        seen.pods[0].leaving = true;
        assert_eq!(plane.look(&seen, &two), [Step::Create(BATCH, "batch-00004".to_owned())]);
        seen.pods = vec![pod("batch-00003"), pod("batch-00004")];
        seen.pods[1].running = true;
        let one = Wanted::from([(BATCH, 1)]);
        let gone = [Step::Delete("batch-00003".to_owned())];
        assert_eq!(plane.look(&seen, &one), gone, "the one that waits");
        assert_eq!(plane.look(&seen, &one), []);
    }

    #[test]
    fn machines_become_nodes_and_pods_end_with_them() {
        let mut plane = ControlPlane::new(false);
        let wanted = Wanted::from([(BATCH, 1)]);
        let machine = |phase| MachineView {
            id: "m".to_owned(),
            phase: Some(phase),
            labels: BTreeMap::new(),
            resources: BTreeMap::new(),
        };
        let mut seen = Seen { machines: vec![machine(Phase::Registered)], ..Seen::default() };
        seen.pods = vec![pod("p")];
        assert_eq!(plane.look(&seen, &wanted), []);
        seen.machines = vec![machine(Phase::Ready)];
        assert_eq!(plane.look(&seen, &wanted), [Step::Join(machine(Phase::Ready))]);
        let node =
            NodeView { labels: BTreeMap::new(), allocatable: BTreeMap::new(), schedulable: true };
        seen.nodes.insert("m".to_owned(), node);
        seen.pods[0].node = Some("m".to_owned());
        assert_eq!(plane.look(&seen, &wanted), [Step::Run("p".to_owned())]);
        seen.pods[0].running = true;
        seen.machines = vec![machine(Phase::Failed)];
        assert_eq!(plane.look(&seen, &wanted), [Step::Leave("m".to_owned())]);
        seen.nodes.clear();
        assert_eq!(plane.look(&seen, &wanted), [Step::Remove("p".to_owned())]);
    }

    #[test]
    fn a_request_goes_with_its_pod_and_not_before_it_came() {
        let mut plane = ControlPlane::new(false);
        let none = Wanted::default();
        let request = RequestView { name: "r".to_owned(), pod: "uid-p".to_owned() };
        let mut seen = Seen { requests: vec![request], ..Seen::default() };
        assert_eq!(plane.look(&seen, &none), [], "the pod may only be late");
        seen.pods = vec![PodView { leaving: true, ..pod("p") }];
        assert_eq!(plane.look(&seen, &none), []);
        seen.pods.clear();
        assert_eq!(plane.look(&seen, &none), [Step::Collect("r".to_owned())]);
        assert_eq!(plane.look(&seen, &none), [Step::Collect("r".to_owned())], "until it is gone");
        seen.requests.clear();
        assert_eq!(plane.look(&seen, &none), []);
    }
}
