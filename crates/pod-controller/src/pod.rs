//! What is kept of a Pod.
//!
//! A whole Pod costs some 40 KB in memory. Everything that no rule of §8 reads is dropped where
//! the watch delivers it, and the request is counted there too, so that the containers need not
//! stay.

use std::sync::Arc;

use bigfleet_crds::{TopologySpread, keys};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Affinity, NodeSelectorTerm, Pod as Whole, PodSpec},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::ResourceExt;

use crate::{
    co_location::GangTerm,
    request::{self, Amounts},
    requirements::Term,
    spread,
};

/// Annotation that the kubelet puts on the mirror of a static pod.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// A Pod, stripped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pod {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its UID.
    pub uid: Arc<str>,
    /// Where it stands.
    pub phase: Phase,
    /// When its grace ends, once it is being deleted.
    pub grace_ends: Option<Timestamp>,
    /// The node it is bound to.
    pub node: Option<Arc<str>>,
    /// The mirror of a static pod.
    pub mirror: bool,
    /// Its user wants no CapacityRequest.
    pub ignored: bool,
    /// Has scheduling gates.
    pub gated: bool,
    /// Belongs to a DaemonSet.
    pub daemonset: bool,
    /// `spec.priority`, or 0.
    pub priority: i32,
    /// `spec.priorityClassName`.
    pub priority_class: Option<Box<str>>,
    /// Annotation: dollars per interruption, as written.
    pub interruption_penalty: Option<Box<str>>,
    /// Annotation: dollars per loss of the machine, as written.
    pub reclamation_penalty: Option<Box<str>>,
    /// `spec.nodeSelector`, by key.
    pub node_selector: Box<[(Box<str>, Box<str>)]>,
    /// The terms of the required node affinity; one of them must hold.
    pub node_affinity: Box<[Term]>,
    /// The first required pod affinity term.
    pub pod_affinity: Option<Box<GangTerm>>,
    /// The spreads that bind.
    pub spread: Box<[TopologySpread]>,
    /// The PodGroup that it names.
    pub group: Option<Box<str>>,
    /// The claims of its volumes.
    pub claims: Box<[Box<str>]>,
    /// What the scheduler counts for it.
    pub request: Amounts,
}

/// Phase of a [`Pod`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Pending, Running, or one that nobody knows: the pod still needs its machine.
    #[default]
    Alive,
    /// Succeeded or Failed.
    Over,
}

impl Pod {
    /// What is kept of `whole`.
    #[must_use]
    pub fn of(whole: &Whole) -> Self {
        let metadata = &whole.metadata;
        let phase = match whole.status.as_ref().and_then(|status| status.phase.as_deref()) {
            Some("Succeeded" | "Failed") => Phase::Over,
            _ => Phase::Alive,
        };
        let kept = Self {
            namespace: metadata.namespace.as_deref().unwrap_or_default().into(),
            name: metadata.name.as_deref().unwrap_or_default().into(),
            uid: metadata.uid.as_deref().unwrap_or_default().into(),
            phase,
            grace_ends: metadata.deletion_timestamp.as_ref().map(|time| time.0),
            ..Self::default()
        };
        // Only its end matters from here on.
        if phase == Phase::Over {
            return kept;
        }
        let annotation = |key| whole.annotations().get(key).map(|text| text.as_str());
        let kept = Self {
            mirror: annotation(MIRROR).is_some(),
            ignored: annotation(keys::IGNORE) == Some("true"),
            interruption_penalty: annotation(keys::INTERRUPTION_PENALTY).map(Into::into),
            reclamation_penalty: annotation(keys::RECLAMATION_PENALTY).map(Into::into),
            daemonset: is_of_daemonset(metadata),
            request: request::effective(whole),
            ..kept
        };
        match &whole.spec {
            Some(spec) => kept.with_spec(spec, metadata),
            None => kept,
        }
    }

    fn with_spec(self, spec: &PodSpec, metadata: &ObjectMeta) -> Self {
        let pair = |(key, value): (&String, &String)| (key.as_str().into(), value.as_str().into());
        let affinity = spec.affinity.as_ref();
        Self {
            node: spec.node_name.as_deref().filter(|node| !node.is_empty()).map(Into::into),
            gated: spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty()),
            priority: spec.priority.unwrap_or_default(),
            priority_class: spec.priority_class_name.as_deref().map(Into::into),
            node_selector: spec.node_selector.iter().flatten().map(pair).collect(),
            node_affinity: required_terms(affinity).iter().map(Term::of).collect(),
            pod_affinity: affinity
                .and_then(|affinity| affinity.pod_affinity.as_ref())
                .and_then(|it| it.required_during_scheduling_ignored_during_execution.as_ref())
                .and_then(|terms| terms.first())
                .map(|term| Box::new(GangTerm::of(term, metadata.labels.as_ref()))),
            spread: spread::binding(spec.topology_spread_constraints.as_deref()),
            group: spec
                .scheduling_group
                .as_ref()
                .and_then(|group| group.pod_group_name.as_deref())
                .map(Into::into),
            claims: claims(spec, &self.name),
            ..self
        }
    }
}

fn required_terms(affinity: Option<&Affinity>) -> &[NodeSelectorTerm] {
    affinity
        .and_then(|affinity| affinity.node_affinity.as_ref())
        .and_then(|it| it.required_during_scheduling_ignored_during_execution.as_ref())
        .map_or(&[], |required| &required.node_selector_terms)
}

fn is_of_daemonset(metadata: &ObjectMeta) -> bool {
    metadata.owner_references.iter().flatten().any(|owner| {
        owner.controller == Some(true)
            && owner.kind == "DaemonSet"
            && owner.api_version.starts_with("apps/")
    })
}

/// Claims by name; that of an ephemeral volume is named after the pod and the volume.
fn claims(spec: &PodSpec, pod: &str) -> Box<[Box<str>]> {
    let volumes = spec.volumes.iter().flatten();
    let claim = volumes.filter_map(|volume| match &volume.persistent_volume_claim {
        Some(claim) => Some(claim.claim_name.as_str().into()),
        None => volume.ephemeral.as_ref().map(|_| format!("{pod}-{}", volume.name).into()),
    });
    claim.collect()
}
