//! mTLS from three files that may change at any time.
//!
//! One certificate serves every edge of a process, as server and as client,
//! and one CA bundle judges both kinds of peer. TLS 1.3 only.
//!
//! Every handshake looks at the files first, so a rotation needs neither a
//! restart nor a signal. The look is a `stat` on the handshake's own thread:
//! three of them take microseconds on the in-memory volumes that hold secrets.
//!
//! Sessions are never resumed. A resumed session shows no certificate, so a
//! peer of a removed CA could come back without one.

mod files;
mod pair;
mod reload;
mod roots;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    ClientConfig, ServerConfig, client::Resumption, crypto::CryptoProvider,
    server::NoServerSessionStorage, version::TLS13,
};

use self::{
    pair::{LeafResolver, Pair},
    reload::Reloading,
    roots::{PeerVerifier, Roots},
};
use crate::{Error, flags::TlsFlags, identity::Carried, rule::Rule};

const ALPN_H2: &[u8] = b"h2";

/// How a process talks: decided once, at the start.
#[derive(Debug, Clone)]
pub enum Security {
    /// No TLS and no identities.
    Plaintext,
    /// mTLS on every edge.
    Mtls(Arc<Tls>),
}

impl Security {
    pub(crate) fn load(flags: &TlsFlags) -> Result<Self, Error> {
        let given =
            |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
        match (given(&flags.tls_cert), given(&flags.tls_key), given(&flags.tls_ca)) {
            (Some(cert), Some(key), Some(ca)) => {
                Ok(Self::Mtls(Arc::new(Tls::load(&cert, &key, &ca)?)))
            }
            (None, None, None) if flags.require_tls => Err(Error::TlsRequired),
            (None, None, None) => Ok(Self::Plaintext),
            (cert, key, ca) => {
                let flags = [("--tls-cert", cert), ("--tls-key", key), ("--tls-ca", ca)];
                let missing: Vec<_> = flags
                    .iter()
                    .filter(|(_, path)| path.is_none())
                    .map(|(flag, _)| *flag)
                    .collect();
                Err(Error::PartialTls { missing: missing.join(" and ") })
            }
        }
    }

    /// The TLS side, if there is one.
    #[must_use]
    pub fn tls(&self) -> Option<&Arc<Tls>> {
        match self {
            Self::Plaintext => None,
            Self::Mtls(tls) => Some(tls),
        }
    }

    /// Refuses a certificate that carries another identity than the process's
    /// flags imply. Plaintext passes.
    pub fn check_own_identity(&self, expected: &Rule) -> Result<(), Error> {
        let Self::Mtls(tls) = self else { return Ok(()) };
        expected.check(&tls.own_identity()).map_err(|denied| Error::OwnIdentity {
            path: tls.cert.clone(),
            expected: denied.needed,
            presented: denied.presented,
        })
    }
}

/// The loaded material with the TLS configurations made from it.
#[derive(Debug)]
pub struct Tls {
    cert: PathBuf,
    pair: Arc<Reloading<Pair, 2>>,
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl Tls {
    /// Loads and checks all three files.
    pub fn load(cert: &Path, key: &Path, ca: &Path) -> Result<Self, Error> {
        let pair = Reloading::load("certificate", [cert.into(), key.into()], pair::build)?;
        let roots = Reloading::load("CA bundle", [ca.into()], roots::build)?;
        let (pair, roots) = (Arc::new(pair), Arc::new(roots));
        Ok(Self {
            cert: cert.into(),
            server: Arc::new(server_config(&pair, &roots)?),
            client: Arc::new(client_config(&pair, &roots)?),
            pair,
        })
    }

    /// What this process's own leaf carries, as of now.
    pub fn own_identity(&self) -> Carried {
        self.pair.current().identity.clone()
    }

    /// When this process's own leaf expires, in unix seconds, as of now.
    #[must_use]
    pub fn leaf_expiry(&self) -> i64 {
        self.pair.current().not_after
    }

    /// Configuration for a listener; it follows the files by itself.
    #[must_use]
    pub fn server_config(&self) -> Arc<ServerConfig> {
        self.server.clone()
    }

    /// Configuration for dialling; it follows the files by itself.
    #[must_use]
    pub fn client_config(&self) -> Arc<ClientConfig> {
        self.client.clone()
    }
}

/// Named here and nowhere else: no process-wide default is read or set.
fn crypto() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

fn server_config(
    pair: &Arc<Reloading<Pair, 2>>,
    roots: &Arc<Reloading<Roots, 1>>,
) -> Result<ServerConfig, Error> {
    let mut config = ServerConfig::builder_with_provider(crypto())
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(Arc::new(PeerVerifier(roots.clone())))
        .with_cert_resolver(Arc::new(LeafResolver(pair.clone())));
    config.alpn_protocols = vec![ALPN_H2.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn client_config(
    pair: &Arc<Reloading<Pair, 2>>,
    roots: &Arc<Reloading<Roots, 1>>,
) -> Result<ClientConfig, Error> {
    let mut config = ClientConfig::builder_with_provider(crypto())
        .with_protocol_versions(&[&TLS13])?
        // "Dangerous" is the name of the door to any verifier of one's own;
        // this one hands every question to the standard verifier.
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(PeerVerifier(roots.clone())))
        .with_client_cert_resolver(Arc::new(LeafResolver(pair.clone())));
    config.alpn_protocols = vec![ALPN_H2.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(config)
}
