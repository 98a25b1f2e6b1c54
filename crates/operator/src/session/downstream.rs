//! Where the frames of a session go.

use bigfleet_wire::v1alpha1::{
    AvailableCapacityUpdate, BootstrapBlobResponse, BootstrapRequest, NodeStateUpdate,
    ReclaimInstruction,
};

use super::outgoing::ReclaimAcks;

/// Takes the frames that are worked off beside the session. Called by the reader, in
/// the order of the stream: nothing here may wait.
pub trait Downstream: Send + Sync + 'static {
    /// A session stands; its reclaim acks go here.
    fn session_began(&self, acks: ReclaimAcks);

    /// It stands no more; what is under way goes on.
    fn session_ended(&self);

    /// The state of a machine. `received` rises with every frame of the process's life.
    fn node_state(&self, frame: NodeStateUpdate, received: u64);

    /// Nodes to be given back.
    fn reclaim(&self, instruction: ReclaimInstruction, received: u64);

    /// What the fleet could still give.
    fn available_capacity(&self, frame: AvailableCapacityUpdate);

    /// Every machine of this cluster has been told in this session.
    fn resync(&self);
}

/// Makes bootstrap blobs. It takes processor time and nothing else: no call to an API
/// server is on this path.
pub trait Render: Send + Sync + 'static {
    /// The answer to a request.
    fn render(&self, request: &BootstrapRequest) -> BootstrapBlobResponse;
}
