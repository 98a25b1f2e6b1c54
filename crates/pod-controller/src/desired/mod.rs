//! What must happen for one pod: the whole of §8 as a function of what is known.

use std::{collections::BTreeMap, sync::Arc};

use bigfleet_crds::{CapacityRequest, CapacityRequestSpec, keys};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::{
    class_defaults::ClassDefaults,
    co_location::co_location,
    existing::{Digest, Existing},
    name::request_name,
    penalty::{InvalidPenalty, penalties},
    pod::Pod,
    requirements::{Term, requirements},
    table::{DaemonSetPods, Verdict, over_at, verdict},
};

/// What the flags say.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// `--daemonset-pods`.
    pub daemonset_pods: DaemonSetPods,
    /// `--count-pods-resource`.
    pub count_pods_resource: bool,
    /// `--priority-class-defaults`.
    pub class_defaults: ClassDefaults,
}

/// What is known around a pod.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// What the flags say.
    pub settings: &'a Settings,
    /// By the wall clock, which the API server writes too.
    pub now: Timestamp,
    /// The pod is bound to an unmanaged node.
    pub unmanaged: bool,
    /// The topology constraint of the PodGroup that the pod names.
    pub group_topology: Option<&'a str>,
    /// The node affinity of each volume that the pod is bound to.
    pub volumes: &'a [&'a [Term]],
    /// The requests that stand for this pod already.
    pub existing: &'a [Arc<Existing>],
}

/// What must happen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Desired {
    /// To the request of the pod.
    pub step: Step,
    /// Requests that must go.
    pub delete: Vec<Arc<Existing>>,
    /// What the pod's owner should know.
    pub warnings: Vec<Warning>,
    /// When to look again though nothing changes.
    pub again_at: Option<Timestamp>,
}

/// What must happen to the request of a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Step {
    /// The pod is over.
    #[default]
    Terminal,
    /// The pod has none.
    Skip,
    /// It is as it should be.
    Keep,
    /// It must be made.
    Create(Box<CapacityRequest>),
    /// It must become like this.
    Patch {
        /// The one that is there, whatever its name.
        name: Arc<str>,
        /// What it must become.
        wanted: Box<CapacityRequest>,
    },
}

/// What the owner of a pod should know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Warning {
    /// An annotation was passed over.
    InvalidPenalty(InvalidPenalty),
    /// These keys are asked for more loosely than the pod does.
    ApproximatedRequirement(String),
}

/// What must happen for `pod`.
#[must_use]
pub fn desired(pod: &Pod, context: &Context<'_>) -> Desired {
    let settings = context.settings;
    let all = || context.existing.iter().filter(|it| !it.terminating).cloned().collect();
    match verdict(pod, context.unmanaged, settings.daemonset_pods, context.now) {
        Verdict::Terminal => Desired { step: Step::Terminal, delete: all(), ..Desired::default() },
        Verdict::Skipped => Desired {
            step: Step::Skip,
            delete: all(),
            again_at: over_at(pod),
            ..Desired::default()
        },
        Verdict::Counted => counted(pod, context),
    }
}

fn counted(pod: &Pod, context: &Context<'_>) -> Desired {
    let name = request_name(&pod.name, &pod.uid);
    let (request, warnings) = request(pod, context, name);
    // One that bears the right name is kept before one that only bears the label.
    let right = |it: &&Arc<Existing>| request.metadata.name.as_deref() == Some(&*it.name);
    let kept = context.existing.iter().find(right).or_else(|| context.existing.first());
    let step = match kept {
        None => Step::Create(Box::new(request)),
        // It will go, and then a new one is made.
        Some(kept) if kept.terminating || kept.digest == Digest::of(&request) => Step::Keep,
        Some(kept) => Step::Patch { name: kept.name.clone(), wanted: Box::new(request) },
    };
    let others = context.existing.iter().filter(|it| !it.terminating);
    let others = others.filter(|it| kept.is_some_and(|kept| kept.name != it.name));
    Desired { step, delete: others.cloned().collect(), warnings, again_at: over_at(pod) }
}

/// The request of `pod`, and what was passed over on the way to it.
fn request(pod: &Pod, context: &Context<'_>, name: String) -> (CapacityRequest, Vec<Warning>) {
    let settings = context.settings;
    let requirements = requirements(pod, context.volumes.iter().copied());
    let penalties = penalties(pod, &settings.class_defaults);
    let mut warnings: Vec<Warning> =
        penalties.invalid.into_iter().map(Warning::InvalidPenalty).collect();
    let mut labels = BTreeMap::from([(keys::OWNED_BY_POD.to_owned(), pod.uid.to_string())]);
    if pod.daemonset {
        labels.insert(keys::DAEMONSET.to_owned(), "true".to_owned());
    }
    let annotations = (!requirements.approximated.is_empty()).then(|| {
        let keys: Vec<&str> = requirements.approximated.iter().map(String::as_str).collect();
        let keys = keys.join(",");
        warnings.push(Warning::ApproximatedRequirement(keys.clone()));
        BTreeMap::from([(keys::APPROXIMATED.to_owned(), keys)])
    });
    let resources = if settings.count_pods_resource {
        let mut request = pod.request.clone();
        request.count("pods");
        request.texts()
    } else {
        pod.request.texts()
    };
    let spec = CapacityRequestSpec {
        priority: pod.priority,
        resources,
        requirements: requirements.list,
        interruption_penalty: penalties.interruption,
        reclamation_penalty: penalties.reclamation,
        topology_spread: pod.spread.to_vec(),
        co_location: co_location(pod, context.group_topology),
    };
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        name: pod.name.to_string(),
        uid: pod.uid.to_string(),
        controller: Some(true),
        // To hold up the pod's deletion would take a right over pods that we do not ask for.
        block_owner_deletion: None,
    };
    let metadata = ObjectMeta {
        name: Some(name),
        namespace: Some(pod.namespace.to_string()),
        labels: Some(labels),
        annotations,
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    (CapacityRequest { metadata, spec, status: None }, warnings)
}

#[cfg(test)]
mod tests;
