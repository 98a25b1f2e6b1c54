//! The process's own certificate and key.

use std::{path::PathBuf, sync::Arc};

use rustls::{
    SignatureScheme,
    client::ResolvesClientCert,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use rustls_pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{self, PemObject},
};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{crypto, files::problem, reload::Reloading};
use crate::{
    Error,
    identity::{self, Carried},
};

/// A certificate chain with the key that belongs to its leaf.
pub(super) struct Pair {
    certified: Arc<CertifiedKey>,
    pub(super) identity: Carried,
    pub(super) not_after: i64,
}

/// Makes a pair from the certificate file and the key file.
pub(super) fn build(
    [cert_path, key_path]: &[PathBuf; 2],
    [cert, key]: &[Vec<u8>; 2],
) -> Result<Pair, Error> {
    let chain = CertificateDer::pem_slice_iter(cert)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| problem(cert_path, pem_problem(&error, "certificate")))?;
    let leaf = chain.first().ok_or_else(|| problem(cert_path, "it holds no certificate"))?;
    let (_, parsed) = X509Certificate::from_der(leaf.as_ref())
        .map_err(|_| problem(cert_path, "its first certificate cannot be read"))?;
    let not_after = parsed.validity().not_after.timestamp();
    if !parsed.validity().is_valid() {
        // No reason to refuse: the next rotation may be minutes away.
        tracing::warn!(path = %cert_path.display(), "certificate is not valid now; peers refuse it");
    }
    let identity = identity::of_leaf(leaf);
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|error| problem(key_path, pem_problem(&error, "private key")))?;
    let certified =
        CertifiedKey::from_der(chain.clone(), key, &crypto()).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                problem(key_path, format!("it is not the key of {}", cert_path.display()))
            }
            _ => problem(key_path, "it holds no usable private key"),
        })?;
    Ok(Pair { certified: Arc::new(certified), identity, not_after })
}

/// Says what is wrong without a byte of the file: it may be a key.
pub(super) fn pem_problem(error: &pem::Error, kind: &str) -> String {
    match error {
        pem::Error::NoItemsFound => format!("it holds no {kind}"),
        pem::Error::MissingSectionEnd { .. } => format!("its {kind} is cut short"),
        _ => format!("its {kind} is not valid PEM"),
    }
}

/// Presents the current pair, to clients and to servers.
#[derive(Debug)]
pub(super) struct LeafResolver(pub(super) Arc<Reloading<Pair, 2>>);

impl ResolvesServerCert for LeafResolver {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.current().certified.clone())
    }
}

impl ResolvesClientCert for LeafResolver {
    fn resolve(
        &self,
        _root_hint_subjects: &[&[u8]],
        _schemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        Some(self.0.current().certified.clone())
    }

    fn has_certs(&self) -> bool {
        true
    }
}
