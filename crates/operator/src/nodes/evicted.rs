use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;

use crate::pod_status::PodStatus;

/// Who tells a Pod that it was evicted: events on Pods have limits per cluster, which several
/// parts of the operator share.
pub trait TellEvicted: Send + Sync + 'static {
    /// This Pod was evicted from this node within this grace, for demand of this priority (0 for
    /// nobody's).
    fn evicted(&self, pod: ObjectReference, node: &str, grace: Duration, priority: i32);
}

impl TellEvicted for PodStatus {
    fn evicted(&self, pod: ObjectReference, node: &str, grace: Duration, priority: i32) {
        Self::evicted(self, pod, node, grace, priority);
    }
}
