//! Who gets through the handshake, and who through the gate.

use std::{io, sync::Arc};

use bigfleet_net::tls::Security;
use bigfleet_testkit::pki::{LOOPBACK, Leaf, Material, Pki};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion, version};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use tokio::{io::AsyncReadExt, net::TcpStream};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tonic::Code;

use crate::rig::{Rig, mtls, soon};

/// A client that is not ours: any version, any or no certificate.
pub(crate) fn foreign_client(
    pki: &Pki,
    leaf: Option<&Leaf>,
    version: &'static SupportedProtocolVersion,
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pki.ca_pem().as_bytes()).unwrap()).unwrap();
    let crypto = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(crypto)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match leaf {
        None => builder.with_no_client_auth(),
        Some(leaf) => builder
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(leaf.cert_pem.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(leaf.key_pem.as_bytes()).unwrap(),
            )
            .unwrap(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

/// In TLS 1.3 a client learns of its rejection only with the first answer, so
/// this waits for the first byte (a server's SETTINGS frame).
pub(crate) async fn shake_hands(
    rig: &Rig,
    config: &Arc<ClientConfig>,
) -> io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(rig.addr).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = soon(TlsConnector::from(config.clone()).connect(name, stream)).await?;
    // The server speaks first only after the client's preface.
    tokio::io::AsyncWriteExt::write_all(
        &mut stream,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
    )
    .await?;
    soon(stream.read_u8()).await?;
    Ok(stream)
}

async fn rig(pki: &Pki) -> Rig {
    Rig::start(mtls(&pki.material(&["bigfleet://provider/p"]).unwrap())).await
}

fn holder(pki: &Pki, identities: &[&str]) -> Security {
    mtls(&pki.material(identities).unwrap())
}

#[tokio::test]
async fn the_verified_identity_reaches_the_handler() {
    let pki = Pki::new().unwrap();
    let rig = rig(&pki).await;
    for uri in ["bigfleet://shard/s", "bigfleet://admin", "bigfleet://foo"] {
        assert_eq!(rig.whoami(&holder(&pki, &[uri])).await.unwrap(), uri);
    }
}

#[tokio::test]
async fn binding_is_exact_and_refusals_are_counted() {
    let pki = Pki::new().unwrap();
    let rig = rig(&pki).await;
    rig.create(&holder(&pki, &["bigfleet://shard/s"]), "s").await.unwrap();
    assert_eq!(rig.rejected.get(), 0);
    for (count, uri) in
        ["bigfleet://shard/S", "bigfleet://admin", "bigfleet://foo"].into_iter().enumerate()
    {
        let status = rig.create(&holder(&pki, &[uri]), "s").await.unwrap_err();
        assert_eq!(status.code(), Code::PermissionDenied);
        assert_eq!(
            status.message(),
            format!("peer presented {uri}; this needs bigfleet://shard/s")
        );
        assert_eq!(rig.rejected.get(), count as u64 + 1);
    }
}

#[tokio::test]
async fn no_san_or_two_pass_the_handshake_but_not_the_gate() {
    let pki = Pki::new().unwrap();
    let rig = rig(&pki).await;
    for (sans, text) in [
        (&[][..], "no bigfleet:// URI SAN"),
        (&["bigfleet://shard/s", "bigfleet://admin"], "bigfleet://shard/s, bigfleet://admin"),
    ] {
        let nobody = holder(&pki, sans);
        assert_eq!(rig.whoami(&nobody).await.unwrap(), "nobody");
        let status = rig.create(&nobody, "s").await.unwrap_err();
        assert_eq!(status.code(), Code::PermissionDenied);
        assert!(status.message().contains(text), "{status}");
    }
}

#[tokio::test]
async fn plaintext_asks_for_no_identity() {
    let rig = Rig::start(Security::Plaintext).await;
    rig.create(&Security::Plaintext, "s").await.unwrap();
    // From loopback even what is closed to the plaintext network.
    let mut client = rig.client(&Security::Plaintext).await;
    client.delete(bigfleet_wire::v1alpha1::DeleteRequest::default()).await.unwrap();
}

#[tokio::test]
async fn a_plaintext_client_gets_nothing_from_a_tls_server() {
    let rig = rig(&Pki::new().unwrap()).await;
    rig.whoami(&Security::Plaintext).await.unwrap_err();
}

#[tokio::test]
async fn foreign_ca_fails_the_handshake() {
    let (pki, foreign) = (Pki::new().unwrap(), Pki::new().unwrap());
    let rig = rig(&pki).await;
    let leaf = foreign.issue(&["bigfleet://shard/s"], LOOPBACK).unwrap();
    let config = Arc::new(foreign_client(&pki, Some(&leaf), &version::TLS13));
    let error = shake_hands(&rig, &config).await.unwrap_err().to_string();
    assert!(error.contains("UnknownCA") || error.contains("DecryptError"), "{error}");
}

#[tokio::test]
async fn missing_client_certificate_fails_the_handshake() {
    let pki = Pki::new().unwrap();
    let rig = rig(&pki).await;
    let config = Arc::new(foreign_client(&pki, None, &version::TLS13));
    let error = shake_hands(&rig, &config).await.unwrap_err().to_string();
    assert!(error.contains("CertificateRequired"), "{error}");
}

#[tokio::test]
async fn expired_client_certificate_fails_the_handshake() {
    let pki = Pki::new().unwrap();
    let rig = rig(&pki).await;
    let leaf = pki.issue_expired(&["bigfleet://shard/s"], LOOPBACK).unwrap();
    let config = Arc::new(foreign_client(&pki, Some(&leaf), &version::TLS13));
    let error = shake_hands(&rig, &config).await.unwrap_err().to_string();
    assert!(error.contains("CertificateExpired"), "{error}");
    // Ours fails the same way, and the caller is told so.
    let ours = mtls(&Material::write(&leaf, &pki.ca_pem()).unwrap());
    let error = rig.whoami(&ours).await.unwrap_err();
    assert!(error.contains("CertificateExpired") || error.contains("transport error"), "{error}");
}

#[tokio::test]
async fn tls_1_2_is_refused() {
    let pki = Pki::new().unwrap();
    let rig = rig(&pki).await;
    let leaf = pki.issue(&["bigfleet://shard/s"], LOOPBACK).unwrap();
    let config = Arc::new(foreign_client(&pki, Some(&leaf), &version::TLS12));
    let error = shake_hands(&rig, &config).await.unwrap_err().to_string();
    assert!(error.contains("ProtocolVersion"), "{error}");
    let config = Arc::new(foreign_client(&pki, Some(&leaf), &version::TLS13));
    shake_hands(&rig, &config).await.unwrap();
}

/// A resumed session would show no certificate, so a removed CA would go on
/// being trusted.
#[tokio::test]
async fn sessions_are_never_resumed() {
    let pki = Pki::new().unwrap();
    let rig = rig(&pki).await;
    let leaf = pki.issue(&["bigfleet://shard/s"], LOOPBACK).unwrap();
    let config = Arc::new(foreign_client(&pki, Some(&leaf), &version::TLS13));
    for _ in 0..2 {
        let stream = shake_hands(&rig, &config).await.unwrap();
        assert_eq!(stream.get_ref().1.handshake_kind(), Some(rustls::HandshakeKind::Full));
        assert_eq!(stream.get_ref().1.tls13_tickets_received(), 0);
    }
}
