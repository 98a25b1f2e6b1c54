//! What nodes count.

use std::time::Duration;

/// Where nodes and hints count what they do. The words are those of the metrics' labels.
pub trait Counters: Send + Sync + 'static {
    /// A part of handling a frame took so long: `queue`, `write` or `total`.
    fn node_state(&self, _phase: &'static str, _took: Duration) {}
    /// A write of an UpcomingNode: `create`, `spec_update`, `status_update` or `delete`, which
    /// was a `success`, a `conflict`, an `error` or a `noop`.
    fn upcoming_node_write(&self, _op: &'static str, _outcome: &'static str) {}
    /// Handler slots that are taken.
    fn dispatch_inflight(&self, _taken: usize) {}
    /// A reclaim names a node that cannot be found.
    fn reclaim_unresolved(&self) {}
    /// Drains that run.
    fn drains_inflight(&self, _running: usize) {}
    /// A drain ended: `drained`, `timeout` or `stopped`.
    fn drain(&self, _outcome: &'static str, _took: Duration) {}
    /// An eviction was answered: `evicted`, `gone`, `blocked`, `conflict`, `forbidden`, `error`.
    fn eviction(&self, _outcome: &'static str) {}
    /// Machines said to be ready whose Node is not.
    fn configured_not_ready(&self, _machines: usize) {}
    /// A frame was ignored: `empty_machine_id`, `unknown_state`, `overtaken` or `no_object`.
    fn frame_ignored(&self, _reason: &'static str) {}
    /// A Node takes pods again.
    fn uncordoned(&self) {}
    /// A Node was deleted.
    fn node_deleted(&self) {}
}

/// Counts nothing.
impl Counters for () {}

/// Who says whether a Pod may be told something: events on Pods have limits per cluster that
/// several parts of the operator share.
pub trait PodEvents: Send + Sync + 'static {
    /// Whether this Pod may be told this now; if so, it counts as told.
    fn admit(&self, pod_uid: &str, reason: &'static str) -> bool;
}
