//! Clusters, with or without a session.

use std::collections::BTreeMap;

use bigfleet_wire::v1alpha1::SessionView;

use crate::{shard::Shard, views::wire::count};

impl Shard {
    /// Every cluster that is connected or has sent anything, or one of them.
    pub(super) fn list_sessions(&self, cluster: &str) -> Vec<SessionView> {
        let wanted = |id: &str| cluster.is_empty() || cluster == id;
        let mut views: BTreeMap<String, SessionView> = BTreeMap::new();
        for demand in self.needs.views().into_iter().filter(|one| wanted(&one.cluster)) {
            let view = SessionView {
                cluster_id: demand.cluster.to_string(),
                last_rollup_unix_nanos: demand.accepted_unix_nanos,
                needs: count(demand.rows),
                rollups_held: count(demand.held),
                last_rejection: demand.last_rejection,
                ..SessionView::default()
            };
            views.insert(view.cluster_id.clone(), view);
        }
        for session in self.sessions.views().into_iter().filter(|one| wanted(&one.cluster)) {
            let view = views.entry(session.cluster.to_string()).or_default();
            view.cluster_id = session.cluster.to_string();
            view.connected = true;
            view.connected_since_unix_nanos = session.since_unix_nanos;
            view.outbox_depth = count(session.outbox_depth);
            view.peer = session.peer;
            view.protocol_version = session.protocol_version;
            view.features = session.features;
        }
        views.into_values().collect()
    }
}
