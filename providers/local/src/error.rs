use std::{io, path::PathBuf};

/// Why this provider does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nowhere to put a Node.
    #[error(
        "no cluster: give --clusters ID=KUBECONFIG for each, or --default-cluster KUBECONFIG; \
         --use-fake-backend simulates them"
    )]
    NoCluster,

    /// A flag that contradicts another.
    #[error("--use-fake-backend asks no cluster: leave --clusters and --default-cluster out")]
    FakeAndClusters,

    /// An entry of the map.
    #[error("--clusters {entry:?}: {problem}")]
    Clusters {
        /// What was given.
        entry: String,
        /// What is wrong and what to do.
        problem: String,
    },

    /// Where reservations are kept.
    #[error("--state: {}: {source}", path.display())]
    Hosts {
        /// Which file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}
