//! The CA bundle that judges peers.

use std::{path::PathBuf, sync::Arc};

use rustls::{
    DigitallySignedStruct, DistinguishedName, Error as TlsError, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    server::{
        WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};

use super::{crypto, files::problem, pair::pem_problem, reload::Reloading};
use crate::Error;

/// The standard verifiers over one bundle.
pub(super) struct Roots {
    servers: Arc<dyn ServerCertVerifier>,
    clients: Arc<dyn ClientCertVerifier>,
}

/// Makes the verifiers from the bundle file.
pub(super) fn build([path]: &[PathBuf; 1], [bundle]: &[Vec<u8>; 1]) -> Result<Roots, Error> {
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle) {
        let certificate =
            certificate.map_err(|error| problem(path, pem_problem(&error, "certificate")))?;
        store.add(certificate).map_err(|_| problem(path, "a CA certificate cannot be read"))?;
    }
    if store.is_empty() {
        return Err(problem(path, "it holds no certificate"));
    }
    let store = Arc::new(store);
    let unusable = |error: &dyn std::fmt::Display| problem(path, error.to_string());
    Ok(Roots {
        servers: WebPkiServerVerifier::builder_with_provider(store.clone(), crypto())
            .build()
            .map_err(|error| unusable(&error))?,
        clients: WebPkiClientVerifier::builder_with_provider(store, crypto())
            .build()
            .map_err(|error| unusable(&error))?,
    })
}

/// Judges by the bundle as it is at the time of the handshake.
#[derive(Debug)]
pub(super) struct PeerVerifier(pub(super) Arc<Reloading<Roots, 1>>);

impl ServerCertVerifier for PeerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let roots = self.0.current();
        roots.servers.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.0.current().servers.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.0.current().servers.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.current().servers.supported_verify_schemes()
    }
}

impl ClientCertVerifier for PeerVerifier {
    /// No hints: they are borrowed from the verifier and could not follow the
    /// bundle, and a client with one certificate has nothing to choose.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn client_auth_mandatory(&self) -> bool {
        true
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, TlsError> {
        self.0.current().clients.verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.0.current().clients.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.0.current().clients.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.current().clients.supported_verify_schemes()
    }
}
