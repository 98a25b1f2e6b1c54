use std::{io, path::PathBuf};

/// What can go wrong between a process and its network.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// One or two of the three TLS flags: a typo must not downgrade to plaintext.
    #[error(
        "incomplete TLS flags: {missing} missing; give --tls-cert, --tls-key and --tls-ca \
         for mTLS, or none of them for plaintext"
    )]
    PartialTls {
        /// The flags that were not given.
        missing: String,
    },

    /// `--require-tls` without certificates.
    #[error("--require-tls forbids plaintext; give --tls-cert, --tls-key and --tls-ca")]
    TlsRequired,

    /// A certificate, key or bundle that cannot be used.
    #[error("{}: {problem}", path.display())]
    Material {
        /// The file at fault.
        path: PathBuf,
        /// What is wrong with it; never its contents.
        problem: String,
    },

    /// The TLS library refused the configuration.
    #[error("TLS configuration: {0}")]
    Tls(#[from] rustls::Error),

    /// The process's own leaf is not the one its flags imply.
    #[error(
        "{}: this process must carry {expected}, but its certificate carries {presented}; \
         mount the right certificate or correct the id flags",
        path.display()
    )]
    OwnIdentity {
        /// The certificate file.
        path: PathBuf,
        /// What the flags imply.
        expected: String,
        /// What the leaf carries.
        presented: String,
    },

    /// A listener could not be opened.
    #[error("cannot listen on {addr}: {source}{}", in_use(source))]
    Listen {
        /// The address as written.
        addr: String,
        /// Why not.
        source: io::Error,
    },

    /// An address that cannot be dialled as written.
    #[error("address {addr:?}: {problem}")]
    Address {
        /// The address as written.
        addr: String,
        /// What is wrong with it.
        problem: &'static str,
    },

    /// A connection could not be made.
    #[error("cannot connect to {addr}: {problem}")]
    Connect {
        /// The address as written.
        addr: String,
        /// Why not.
        problem: String,
    },

    /// Logging or tracing could not be set up.
    #[error("telemetry: {0}")]
    Telemetry(String),

    /// Signal handlers could not be installed.
    #[error("cannot handle signals: {0}")]
    Signal(#[source] io::Error),

    /// A server stopped.
    #[error("server: {0}")]
    Serve(#[source] io::Error),

    /// The descriptors handed to the reflection service do not decode.
    #[error("reflection: {0}")]
    Reflection(String),
}

impl Error {
    /// Whether other flags, rather than another world, would have helped.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::PartialTls { .. } | Self::TlsRequired)
    }
}

/// What to do where somebody else listens.
fn in_use(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => "; end whoever listens there, or give another address",
        _ => "",
    }
}
