//! What the owners of pods have been told, so that nothing is told twice.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hash},
};

use bigfleet_crds::keys;
use bigfleet_in_cluster::{ObjectKey, events::Recorder};
use foldhash::fast::FixedState;
use k8s_openapi::api::core::v1::ObjectReference;

use crate::{desired::Warning, pod::Pod};

/// By pod, a hash of what its owner knows.
#[derive(Debug, Default)]
pub(crate) struct Warned(HashMap<ObjectKey, u64>);

impl Warned {
    /// Whether this is news about the pod.
    pub(crate) fn is_news(&mut self, key: &ObjectKey, pod: &Pod, what: &impl Hash) -> bool {
        let hash = FixedState::default().hash_one((&pod.uid, what));
        self.0.insert(key.clone(), hash) != Some(hash)
    }

    /// Nothing is wrong with this pod.
    pub(crate) fn forget(&mut self, key: &ObjectKey) {
        self.0.remove(key);
    }
}

/// Tells the owner of `pod`.
pub(crate) fn tell(recorder: &Recorder, pod: &Pod, warning: &Warning) {
    let (reason, message) = match warning {
        Warning::InvalidPenalty(invalid) => (
            "InvalidPenalty",
            format!(
                "annotation {} is {:?}, which is no quantity and counts for nothing; write dollars, \
                 for example \"500m\" or \"8192\"",
                invalid.key, invalid.value
            ),
        ),
        Warning::ApproximatedRequirement(approximated) => (
            "ApproximatedRequirement",
            format!(
                "Gt and Lt are asked of the fleet as Exists: {approximated} (annotation {} of the \
                 CapacityRequest); add a label with In where the size matters",
                keys::APPROXIMATED
            ),
        ),
    };
    recorder.warning(reference(pod), reason, message);
}

/// Tells the owner of `pod` that a quota keeps it from being counted.
pub(crate) fn tell_quota(recorder: &Recorder, pod: &Pod, problem: &str) {
    let message = format!(
        "no CapacityRequest could be made, so the fleet does not count this pod: {problem}; raise \
         the namespace's quota of capacityrequests"
    );
    recorder.warning(reference(pod), "CapacityRequestQuota", message);
}

fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(pod.name.to_string()),
        namespace: Some(pod.namespace.to_string()),
        uid: Some(pod.uid.to_string()),
        ..ObjectReference::default()
    }
}
