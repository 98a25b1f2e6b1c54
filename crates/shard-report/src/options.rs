//! What a client is started with.

use std::time::Duration;

use bigfleet_net::{leader::Resolver, tls::Security};

/// Of one report, in which all replicas may be asked.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// Plain settings; see the flags of the binary.
#[derive(Clone, Debug)]
pub struct Options {
    /// `--coordinator-addr`: host:port of each replica, or a name that resolves to
    /// all of them.
    pub addresses: Vec<String>,
    /// `--coordinator-heartbeat-interval`.
    pub interval: Duration,
    /// `--advertise-addr`: where this shard is found.
    pub advertise_addr: String,
    /// `--provider-addr`; empty for the fake in the process.
    pub provider_addr: String,
    /// Who we are, and whom we believe.
    pub security: Security,
    /// How names become addresses.
    pub resolver: Resolver,
}

impl Options {
    /// The defaults, for these replicas, in plaintext.
    #[must_use]
    pub fn new(addresses: Vec<String>) -> Self {
        Self {
            addresses,
            interval: Duration::from_secs(10),
            advertise_addr: String::new(),
            provider_addr: String::new(),
            security: Security::Plaintext,
            resolver: Resolver::system(),
        }
    }
}
