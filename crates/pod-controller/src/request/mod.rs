//! The effective request of a pod: the scheduler's arithmetic, exact (§8.3).
//!
//! Limits, ephemeral containers and container states never count: the API server has already
//! defaulted requests from limits, and a finished init container still counts.

mod amounts;

use std::collections::BTreeMap;

pub use amounts::{Amount, Amounts};
use k8s_openapi::{
    api::core::v1::{Container, ContainerStatus, Pod, PodStatus, ResourceRequirements},
    apimachinery::pkg::api::resource::Quantity,
};

type Named = BTreeMap<String, Quantity>;

/// What kube-scheduler counts for this pod, per resource.
#[must_use]
pub fn effective(pod: &Pod) -> Amounts {
    let Some(spec) = &pod.spec else { return Amounts::default() };
    let status = Statuses::of(pod.status.as_ref());
    let mut run = Amounts::default();
    for container in &spec.containers {
        run.add(status.request(container));
    }
    let (mut side, mut peak) = (Amounts::default(), Amounts::default());
    for container in spec.init_containers.iter().flatten() {
        if is_sidecar(container) {
            let request = status.request(container);
            side.add(request.clone());
            run.add(request);
            peak.max(side.clone());
        } else {
            let mut alone = Amounts::read(requests(container.resources.as_ref()));
            alone.add(side.clone());
            peak.max(alone);
        }
    }
    let mut total = run;
    total.max(peak);
    if let Some(wanted) = requests(spec.resources.as_ref()) {
        let level = status.level(wanted);
        for name in wanted.keys().filter(|name| at_pod_level(name)) {
            total.set(name, level.get(name));
        }
    }
    total.add(Amounts::read(spec.overhead.as_ref()));
    total
}

/// Resources that a pod may request as a whole; other names there count for nothing.
fn at_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn requests(resources: Option<&ResourceRequirements>) -> Option<&Named> {
    resources.and_then(|resources| resources.requests.as_ref())
}

/// What the node has said about a resize.
struct Statuses<'a> {
    pod: Option<&'a PodStatus>,
    infeasible: bool,
}

impl<'a> Statuses<'a> {
    fn of(pod: Option<&'a PodStatus>) -> Self {
        // The first of its type decides, and its status is not looked at, as in the scheduler.
        let pending = pod
            .and_then(|status| status.conditions.as_ref())
            .and_then(|all| all.iter().find(|condition| condition.type_ == "PodResizePending"));
        let infeasible = pending.is_some_and(|it| it.reason.as_deref() == Some("Infeasible"));
        Self { pod, infeasible }
    }

    /// Of a container or a sidecar.
    fn request(&self, container: &Container) -> Amounts {
        let wanted = requests(container.resources.as_ref());
        match self.named(&container.name) {
            Some(status) => {
                self.resized(wanted, status.resources.as_ref(), status.allocated_resources.as_ref())
            }
            None => Amounts::read(wanted),
        }
    }

    /// Of the pod as a whole.
    fn level(&self, wanted: &Named) -> Amounts {
        let resources = self.pod.and_then(|status| status.resources.as_ref());
        let allocated = self.pod.and_then(|status| status.allocated_resources.as_ref());
        self.resized(Some(wanted), resources, allocated)
    }

    fn resized(
        &self,
        wanted: Option<&Named>,
        actual: Option<&ResourceRequirements>,
        allocated: Option<&Named>,
    ) -> Amounts {
        let Some(actual) = actual else { return Amounts::read(wanted) };
        // A node that will never grant the new spec makes it no demand.
        let mut most = Amounts::read(wanted.filter(|_| !self.infeasible));
        most.max(Amounts::read(actual.requests.as_ref()));
        most.max(Amounts::read(allocated));
        most
    }

    fn named(&self, name: &str) -> Option<&'a ContainerStatus> {
        let pod = self.pod?;
        let find = |statuses: &'a Option<Vec<ContainerStatus>>| {
            statuses.iter().flatten().rfind(|status| status.name == name)
        };
        find(&pod.init_container_statuses).or_else(|| find(&pod.container_statuses))
    }
}

#[cfg(test)]
mod tests;
