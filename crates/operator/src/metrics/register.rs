//! Names and help texts.

use bigfleet_net::metrics::Names;
use prometheus_client::registry::Registry;

use super::Metrics;

/// What all names begin with.
const PREFIX: &str = "bigfleet_operator";

impl Metrics {
    /// Into a registry that has no prefix of its own.
    pub fn register(&self, registry: &mut Registry) {
        let mut names = Names::new(registry, PREFIX);
        self.register_demand(&mut names);
        self.register_session(&mut names);
        self.register_nodes(&mut names);
    }

    fn register_demand(&self, names: &mut Names<'_>) {
        names.seconds("rollup_duration", "Time of a roll-up without acks", &self.rollup_duration);
        let help = "Time of a roll-up's parts";
        names.seconds("rollup_phase_duration", help, &self.rollup_phase_duration);
        let help = "Whether roll-ups are held, by reason";
        names.plain("rollup_held", help, &self.rollup_held);
        names.plain("rollup_needs", "Needs of the newest roll-up", &self.rollup_needs);
        names.bytes("rollup", "Size of the newest roll-up", &self.rollup_bytes);
        names.plain("rollups_rejected", "Roll-ups that the shard refused", &self.rollups_rejected);
        let help = "CapacityRequests by phase";
        names.plain("capacity_requests", help, &self.capacity_requests);
        let help = "CapacityRequests that could not be translated, once per generation";
        names.plain("capacity_requests_skipped", help, &self.capacity_requests_skipped);
        let help = "Time of a batch of acknowledgements";
        names.seconds("acknowledge_duration", help, &self.acknowledge_duration);
        names.plain("acknowledged", "Requests stamped Acknowledged", &self.acknowledged);
        let help = "Needs of this cluster that are unmet, by reason";
        names.plain("needs_unmet", help, &self.needs_unmet);
        let help = "Conditions and events about waiting pods that the limits left out";
        names.plain("pod_status_skipped", help, &self.pod_status_skipped);
    }

    fn register_session(&self, names: &mut Names<'_>) {
        let help = "Sessions that ended and are dialled anew";
        names.plain("session_reconnects", help, &self.session_reconnects);
        let help = "Whether a session with the shard stands";
        names.plain("session_connected", help, &self.session_connected);
        names.plain("leader", "Whether this process holds the lease", &self.leader);
        let help = "Answers to the shard that found the outbox full";
        names.plain("outbox_dropped", help, &self.outbox_dropped);
        names.plain("dispatch_inflight", "Frames that a handler has", &self.dispatch_inflight);
        let help = "Bootstrap requests by their answer";
        names.plain("bootstrap_renders", help, &self.bootstrap_renders);
        let help = "Changes of the bootstrap template and CA bundle, by whether they are in use";
        names.plain("bootstrap_reloads", help, &self.bootstrap_reloads);
    }

    fn register_nodes(&self, names: &mut Names<'_>) {
        let help = "Time to follow a node state frame";
        names.seconds("node_state_update_duration", help, &self.node_state_update_duration);
        let help = "Writes to UpcomingNodes";
        names.plain("upcoming_node_writes", help, &self.upcoming_node_writes);
        let help = "Node state frames that were not followed";
        names.plain("node_frames_ignored", help, &self.node_frames_ignored);
        let help = "Names in reclaim instructions that stand for no node";
        names.plain("reclaim_unresolved_nodes", help, &self.reclaim_unresolved_nodes);
        names.plain("drains_inflight", "Drains under way", &self.drains_inflight);
        names.seconds("drain_duration", "Time of a drain", &self.drain_duration);
        names.plain("evictions", "Evictions by their answer", &self.evictions);
        let help = "Machines said to be Configured whose node is not Ready";
        names.plain("configured_not_ready_nodes", help, &self.configured_not_ready_nodes);
        names.plain("nodes_uncordoned", "Nodes given back", &self.nodes_uncordoned);
        let help = "Nodes removed after their machine left";
        names.plain("nodes_deleted", help, &self.nodes_deleted);
    }
}
