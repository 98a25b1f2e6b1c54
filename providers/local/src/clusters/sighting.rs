//! What one look at all clusters showed.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use bigfleet_provider_kit::node_ready::NodeReady;

/// Nodes by API server. Two cluster ids may be of one server.
#[derive(Debug, Default)]
pub(crate) struct Sighting {
    /// `providerID` to the cluster that the Node says it is of; none for a server that
    /// did not answer.
    pub(super) servers: BTreeMap<PathBuf, Option<BTreeMap<String, Option<String>>>>,
    pub(super) nodes: Option<NodeReady>,
}

impl Sighting {
    /// Whether the Node is known to be absent. Silence is no loss, nor is a cluster that
    /// the flags do not name any more.
    pub(crate) fn lacks(&self, provider_id: &str, cluster: &str) -> bool {
        let path = self.nodes.as_ref().and_then(|nodes| nodes.kubeconfig(cluster));
        let server = path.and_then(|path| self.servers.get(path));
        matches!(server, Some(Some(nodes)) if !nodes.contains_key(provider_id))
    }

    /// The cluster in which there is such a Node.
    pub(crate) fn cluster_of(&self, provider_id: &str) -> Option<&str> {
        self.servers
            .values()
            .flatten()
            .find_map(|nodes| nodes.get(provider_id))
            .and_then(Option::as_deref)
    }

    /// All ids that were seen.
    pub(crate) fn seen(&self) -> BTreeSet<&str> {
        self.servers.values().flatten().flat_map(|nodes| nodes.keys().map(String::as_str)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_no_loss() {
        let named = [("a", "/a"), ("b", "/b")];
        let named = named.map(|(id, path)| (id.to_owned(), PathBuf::from(path))).into();
        let seen = BTreeMap::from([("p://1".to_owned(), Some("a".to_owned()))]);
        let sighting = Sighting {
            servers: BTreeMap::from([("/a".into(), Some(seen)), ("/b".into(), None)]),
            nodes: Some(NodeReady::new(named)),
        };
        assert!(!sighting.lacks("p://1", "a"));
        assert!(sighting.lacks("p://2", "a"));
        assert!(!sighting.lacks("p://2", "b"), "a server that does not answer");
        assert!(!sighting.lacks("p://2", "c"), "a cluster that is named no more");
        assert_eq!(sighting.cluster_of("p://1"), Some("a"));
        assert_eq!(sighting.cluster_of("p://2"), None);
        assert!(sighting.seen().contains("p://1"));
    }
}
