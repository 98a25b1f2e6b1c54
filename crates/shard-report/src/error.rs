//! Why there can be no client.

/// Refused before anything is dialled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No address at all.
    #[error("--coordinator-addr has no address; give host:port, or leave the flag out")]
    NoAddress,

    /// An address that cannot be dialled.
    #[error("--coordinator-addr: {0}")]
    Address(#[source] bigfleet_net::Error),
}
