use crate::{shape::Misshapen, store::StoreError};

/// Why a provider does not start, or stops.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Its state.
    #[error("--state: {0}")]
    Store(#[from] StoreError),

    /// The first description of the cloud holds something that no record can show.
    #[error("cannot seed: {0}; correct the offers, or the shard would refuse them one by one")]
    Misshapen(#[from] Misshapen),

    /// The cloud did not describe itself.
    #[error("cannot seed from the cloud: {0}; see that it can be reached, then start again")]
    Describe(String),

    /// Nobody sees nodes become Ready.
    #[error(
        "this provider cannot observe whether a node is Ready, so CONFIGURED would be a guess; \
         give it access to the clusters, or accept that with --allow-ungated-configure"
    )]
    Ungated,

    /// Flags that contradict each other.
    #[error("{0}")]
    Flags(String),

    /// The network side.
    #[error(transparent)]
    Net(#[from] bigfleet_net::Error),
}
