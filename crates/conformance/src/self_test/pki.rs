//! A test CA for targets over mTLS.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, SanType, string::Ia5String,
};
use tempfile::TempDir;

use crate::{
    Error,
    tls::{Credentials, ShardIssuer},
};

/// A CA, and a certificate of the fault target, in files.
pub(super) struct TestCa {
    dir: TempDir,
}

impl TestCa {
    pub(super) fn new() -> Result<Self, Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "bigfleet self-test CA");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;

        let hosts = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(hosts)?;
        let identity = Ia5String::try_from("bigfleet://provider/fault")?;
        params.subject_alt_names.push(SanType::URI(identity));
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        let leaf = params.signed_by(&key, &issuer)?;

        let ca = Self { dir: TempDir::new().map_err(Error::Temporary)? };
        ca.write("ca.crt", &issuer.pem())?;
        ca.write("ca.key", &issuer.key().serialize_pem())?;
        ca.write("tls.crt", &leaf.pem())?;
        ca.write("tls.key", &key.serialize_pem())?;
        Ok(ca)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.path(name);
        fs::write(&path, text).map_err(|source| Error::File { path: path.clone(), source })
    }

    /// Flags of a target that trusts this CA.
    pub(super) fn target_flags(&self) -> Vec<String> {
        let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
        vec![
            flag("tls-cert", &self.path("tls.crt")),
            flag("tls-key", &self.path("tls.key")),
            flag("tls-ca", &self.path("ca.crt")),
        ]
    }

    /// What the suite needs to be any shard.
    pub(super) fn credentials(&self) -> Result<Credentials, Error> {
        let ca = self.path("ca.crt");
        let issuer = ShardIssuer::load(&ca, &ca, &self.path("ca.key"))?;
        Ok(Credentials::Issued(Box::new(issuer)))
    }
}
