use std::{path::PathBuf, time::Duration};

/// What can go wrong between a process and the API server of its cluster.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A kubeconfig that cannot be used.
    #[error("kubeconfig {}: {problem}; correct --kubeconfig or $KUBECONFIG", path.display())]
    Kubeconfig {
        /// The file as given.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },

    /// Neither a kubeconfig nor a service account.
    #[error(
        "no kubeconfig given and not inside a cluster ({0}); give --kubeconfig or set $KUBECONFIG"
    )]
    NotInCluster(String),

    /// The client could not be built.
    #[error("client of the API server: {0}")]
    Client(#[source] Box<kube::Error>),

    /// A cache did not fill in time.
    #[error("the list of {what} was not complete after {}s: {problem}", waited.as_secs())]
    NotSynced {
        /// The resource.
        what: String,
        /// How long it was waited for.
        waited: Duration,
        /// The last thing that went wrong.
        problem: String,
    },
}
