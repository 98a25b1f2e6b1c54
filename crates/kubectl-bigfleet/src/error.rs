//! Why a command could not be answered.

use std::time::Duration;

use bigfleet_plain::when;

/// What the caller is told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No kubeconfig, or none that can be read.
    #[error("no cluster: {0}; give --kubeconfig or --context, as to kubectl")]
    Kubeconfig(#[from] kube::config::KubeconfigError),

    /// No such context.
    #[error("the kubeconfig has no context {name}; it has {known}")]
    NoContext {
        /// The one asked for.
        name: String,
        /// Those that it has.
        known: String,
    },

    /// The client cannot be made from what the kubeconfig says.
    #[error("no client: {0}")]
    Client(kube::Error),

    /// The pod is not there.
    #[error(
        "pod {pod} is not in namespace {namespace}{cluster}; `kubectl bigfleet why` lists the pods \
         that wait, -n and --context look elsewhere"
    )]
    NoPod {
        /// Its name.
        pod: String,
        /// Where it was looked for.
        namespace: String,
        /// In which cluster, where that has a name.
        cluster: String,
    },

    /// The kinds are not installed.
    #[error(
        "this cluster does not know {0}: the kinds of BigFleet are not installed; install the chart \
         bigfleet-operator"
    )]
    NoKind(&'static str),

    /// The caller may not read them.
    #[error("you may not list {what}: {message}; ask for get and list on it")]
    Forbidden {
        /// Resource.
        what: &'static str,
        /// The API server's words.
        message: String,
    },

    /// Any other refusal.
    #[error("reading {what}: {source}")]
    Read {
        /// Resource.
        what: &'static str,
        /// Why.
        source: kube::Error,
    },

    /// `wait` ran out of time.
    #[error("{pod} does not run after {}: {reason}", when::span(nanos(*after)))]
    TimedOut {
        /// Namespace and name.
        pod: String,
        /// `--timeout`.
        after: Duration,
        /// Why not, as `why` says it.
        reason: String,
    },

    /// The pod ended before it could be seen to run.
    #[error("{0} has ended as Failed; see `kubectl describe pod`")]
    PodFailed(String),

    /// Standard output is closed, or there is no runtime.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

impl Error {
    /// What the API server's answer to a read of `what` means.
    pub(crate) fn reading(what: &'static str) -> impl FnOnce(kube::Error) -> Self {
        move |source| match source {
            kube::Error::Api(status) if status.code == 404 => Self::NoKind(what),
            kube::Error::Api(status) if status.code == 403 => {
                Self::Forbidden { what, message: status.message.clone() }
            }
            source => Self::Read { what, source },
        }
    }
}
