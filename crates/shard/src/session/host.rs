//! What the session server needs of the rest of the shard.

use bigfleet_model::ClusterId;
use bigfleet_wire::v1alpha1 as wire;
use futures_util::future::BoxFuture;

/// What became of a roll-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RollUpAnswer {
    /// It is the cluster's demand now.
    Accepted,
    /// Valid, but quarantined: nothing changed.
    Held,
    /// Refused whole; which field, and why.
    Rejected(String),
    /// Its session is no longer the cluster's; nobody is answered.
    Dropped,
}

/// The shard behind the sessions. No method is called with a lock of the session
/// layer held.
pub(crate) trait Host: Send + Sync + 'static {
    /// This process's epoch, for acks.
    fn epoch(&self) -> i64;

    /// Highest coordinator term seen, for acks.
    fn coordinator_term(&self) -> i64;

    /// A whole roll-up. `still_current` is asked in the step that replaces rows,
    /// under the table's lock; it takes no lock itself. May take long: large ones
    /// are brought on a thread of their own. Counting and logging is the host's.
    fn roll_up(
        &self,
        cluster: &ClusterId,
        message: wire::ClusterCapacityNeeds,
        still_current: &dyn Fn() -> bool,
    ) -> RollUpAnswer;

    /// Called after install. Resolves when the first reconcile is done and every
    /// frame of the replay is in the outbox. Dropped when the session ends first.
    fn replay(&self, cluster: ClusterId) -> BoxFuture<'static, ()>;

    /// A session of this cluster was installed or removed.
    fn session_changed(&self, cluster: &ClusterId);

    /// The marker behind the replay of this cluster's session is queued.
    fn resynced(&self, cluster: &ClusterId);
}
