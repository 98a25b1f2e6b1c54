//! Certificates of one demo, so that it runs on the transport that a fleet runs on.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use bigfleet_net::tls::{Security, Tls};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, SanType,
};
use time::{Duration, OffsetDateTime};

use crate::Error;

/// A certificate authority that ends with the demo.
pub(crate) struct Pki {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: PathBuf,
}

/// Where the three files of one identity are.
#[derive(Clone, Debug)]
pub(crate) struct Material {
    cert: PathBuf,
    key: PathBuf,
    ca: PathBuf,
}

/// Where the keys of accounts are.
#[derive(Clone, Debug)]
pub(crate) struct Accounts {
    pub(crate) private: PathBuf,
    pub(crate) public: PathBuf,
}

impl Pki {
    /// Writes into a directory that nobody else reads.
    pub(crate) fn new(directory: PathBuf) -> Result<Self, Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "bigfleet demo");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        fs::create_dir_all(&directory).map_err(Error::file(&directory))?;
        write(&directory.join("ca.crt"), &issuer.pem())?;
        Ok(Self { issuer, directory })
    }

    /// A leaf for loopback with the identity `bigfleet://<identity>`.
    pub(crate) fn issue(&self, identity: &str) -> Result<Material, Error> {
        self.leaf(identity, None)
    }

    /// The same for a member of a group, as Kubernetes reads certificates.
    pub(crate) fn issue_member(&self, name: &str, group: &str) -> Result<Material, Error> {
        self.leaf(&format!("{}/{name}", group.replace(':', "-")), Some(group))
    }

    /// A key that signs tokens of accounts, and the one that verifies them.
    pub(crate) fn accounts(&self) -> Result<Accounts, Error> {
        let key = KeyPair::generate()?;
        let of = |end: &str| self.directory.join(format!("accounts.{end}"));
        let accounts = Accounts { private: of("key"), public: of("pub") };
        write(&accounts.private, &key.serialize_pem())?;
        write(&accounts.public, &key.public_key_pem())?;
        Ok(accounts)
    }

    fn leaf(&self, identity: &str, group: Option<&str>) -> Result<Material, Error> {
        let hosts = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let mut params = CertificateParams::new(hosts)?;
        let uri = format!("bigfleet://{identity}");
        params.subject_alt_names.push(SanType::URI(uri.as_str().try_into()?));
        params.distinguished_name.push(DnType::CommonName, identity);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let now = OffsetDateTime::now_utc();
        params.not_before = now - Duration::hours(1);
        params.not_after = now + Duration::days(30);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let of = |end: &str| self.directory.join(format!("{}.{end}", identity.replace('/', "-")));
        let material =
            Material { cert: of("crt"), key: of("key"), ca: self.directory.join("ca.crt") };
        write(&material.cert, &certificate.pem())?;
        write(&material.key, &key.serialize_pem())?;
        Ok(material)
    }
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(Error::file(path))
}

impl Material {
    /// Certificate, key and CA bundle.
    pub(crate) fn paths(&self) -> [&Path; 3] {
        [&self.cert, &self.key, &self.ca]
    }

    /// As a process is told.
    pub(crate) fn flags(&self) -> [String; 3] {
        [("cert", &self.cert), ("key", &self.key), ("ca", &self.ca)]
            .map(|(name, path)| format!("--tls-{name}={}", path.display()))
    }

    /// For use in this process.
    pub(crate) fn security(&self) -> Result<Security, Error> {
        Ok(Security::Mtls(Arc::new(Tls::load(&self.cert, &self.key, &self.ca)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_are_what_the_processes_take() {
        let directory = tempfile::tempdir().unwrap();
        let pki = Pki::new(directory.path().join("tls")).unwrap();
        let material = pki.issue("shard/shard-0").unwrap();
        let own = material.security().unwrap();
        let rule = bigfleet_net::rule::Rule::exactly(bigfleet_net::identity::Identity::Shard(
            "shard-0".to_owned(),
        ));
        own.check_own_identity(&rule).unwrap();
        assert!(material.flags()[1].ends_with("tls/shard-shard-0.key"), "{:?}", material.flags());
    }
}
