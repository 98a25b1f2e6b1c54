//! A throw-away certificate authority.
//!
//! One [`Pki`] is one CA. It issues leaves with any set of URI SANs and host
//! names, writes them the way a Kubernetes Secret is mounted (`tls.crt`,
//! `tls.key`, `ca.crt`), and can issue the malformed ones that tests need.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, SanType, string::Ia5String,
};
use tempfile::TempDir;
use time::{Duration, OffsetDateTime};

/// Host names that every test server on this machine answers to.
pub const LOOPBACK: &[&str] = &["localhost", "127.0.0.1", "::1"];

/// Anything that goes wrong here is a fault of the test.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// A certificate authority with its private key.
pub struct Pki {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl std::fmt::Debug for Pki {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pki").finish_non_exhaustive()
    }
}

impl Pki {
    /// A new CA. Two of them do not trust each other.
    pub fn new() -> Result<Self, rcgen::Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "bigfleet test CA");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        Ok(Self { issuer })
    }

    /// The CA certificate in PEM.
    #[must_use]
    pub fn ca_pem(&self) -> String {
        self.issuer.pem()
    }

    /// Its private key in PEM, for a tool under test that issues certificates itself.
    #[must_use]
    pub fn ca_key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// A leaf for servers and clients with these URI SANs, valid for a day.
    pub fn issue(&self, identities: &[&str], hosts: &[&str]) -> Result<Leaf, Error> {
        let now = OffsetDateTime::now_utc();
        self.issue_between(identities, hosts, now - Duration::hours(1), now + Duration::days(1))
    }

    /// A leaf that expired an hour ago.
    pub fn issue_expired(&self, identities: &[&str], hosts: &[&str]) -> Result<Leaf, Error> {
        let now = OffsetDateTime::now_utc();
        self.issue_between(identities, hosts, now - Duration::days(2), now - Duration::hours(1))
    }

    /// A leaf with the given validity.
    pub fn issue_between(
        &self,
        identities: &[&str],
        hosts: &[&str],
        not_before: OffsetDateTime,
        not_after: OffsetDateTime,
    ) -> Result<Leaf, Error> {
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        let mut params = CertificateParams::new(hosts)?;
        for &identity in identities {
            params.subject_alt_names.push(SanType::URI(Ia5String::try_from(identity)?));
        }
        params.distinguished_name.push(DnType::CommonName, "bigfleet test leaf");
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.not_before = not_before;
        params.not_after = not_after;
        Ok(self.sign(&params)?)
    }

    /// A leaf of any kind, with a new key.
    pub(crate) fn sign(&self, params: &CertificateParams) -> Result<Leaf, rcgen::Error> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Leaf { cert_pem: certificate.pem(), key_pem: key.serialize_pem() })
    }

    /// Issues a leaf for this machine's loopback names and writes it, with
    /// this CA as the bundle, into a directory of its own.
    pub fn material(&self, identities: &[&str]) -> Result<Material, Error> {
        Ok(Material::write(&self.issue(identities, LOOPBACK)?, &self.ca_pem())?)
    }
}

/// A certificate with its key, both PEM.
#[derive(Clone)]
pub struct Leaf {
    /// The certificate.
    pub cert_pem: String,
    /// Its private key, PKCS #8.
    pub key_pem: String,
}

impl std::fmt::Debug for Leaf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leaf").finish_non_exhaustive()
    }
}

/// `tls.crt`, `tls.key` and `ca.crt` in a directory that goes away with it.
#[derive(Debug)]
pub struct Material {
    dir: TempDir,
}

impl Material {
    /// Writes the three files into a new directory.
    pub fn write(leaf: &Leaf, ca_bundle: &str) -> io::Result<Self> {
        let material = Self { dir: TempDir::new()? };
        material.replace_leaf(leaf)?;
        material.replace_ca(ca_bundle)?;
        Ok(material)
    }

    /// The directory that holds the three files.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Path of the certificate.
    #[must_use]
    pub fn cert(&self) -> PathBuf {
        self.dir.path().join("tls.crt")
    }

    /// Path of the private key.
    #[must_use]
    pub fn key(&self) -> PathBuf {
        self.dir.path().join("tls.key")
    }

    /// Path of the CA bundle.
    #[must_use]
    pub fn ca(&self) -> PathBuf {
        self.dir.path().join("ca.crt")
    }

    /// Rotates the leaf: each file is replaced by a rename, key last, so that
    /// between the two a reader sees a pair that does not match.
    pub fn replace_leaf(&self, leaf: &Leaf) -> io::Result<()> {
        replace(&self.cert(), &leaf.cert_pem)?;
        replace(&self.key(), &leaf.key_pem)
    }

    /// Replaces the CA bundle; concatenate PEM texts to trust several.
    pub fn replace_ca(&self, ca_bundle: &str) -> io::Result<()> {
        replace(&self.ca(), ca_bundle)
    }

    /// `--tls-cert`, `--tls-key`, `--tls-ca` with their values.
    #[must_use]
    pub fn args(&self) -> Vec<String> {
        [("--tls-cert", self.cert()), ("--tls-key", self.key()), ("--tls-ca", self.ca())]
            .into_iter()
            .flat_map(|(flag, path)| [flag.to_owned(), path.display().to_string()])
            .collect()
    }
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let staged = path.with_extension("new");
    fs::write(&staged, text)?;
    fs::rename(staged, path)
}

#[cfg(test)]
mod tests {
    use x509_parser::{extensions::GeneralName, pem::parse_x509_pem};

    use super::*;

    fn uris(leaf: &Leaf) -> Vec<String> {
        let (_, pem) = parse_x509_pem(leaf.cert_pem.as_bytes()).unwrap();
        let certificate = pem.parse_x509().unwrap();
        let names = certificate.subject_alternative_name().unwrap();
        names.map_or_else(Vec::new, |names| {
            names
                .value
                .general_names
                .iter()
                .filter_map(|name| match name {
                    GeneralName::URI(uri) => Some((*uri).to_owned()),
                    _ => None,
                })
                .collect()
        })
    }

    #[test]
    fn leaves_carry_the_sans_asked_for() {
        let pki = Pki::new().unwrap();
        for identities in [&[][..], &["bigfleet://admin"], &["bigfleet://admin", "bigfleet://x"]] {
            assert_eq!(uris(&pki.issue(identities, LOOPBACK).unwrap()), identities);
        }
    }

    #[test]
    fn expired_leaf_is_past_its_time() {
        let leaf = Pki::new().unwrap().issue_expired(&[], LOOPBACK).unwrap();
        let (_, pem) = parse_x509_pem(leaf.cert_pem.as_bytes()).unwrap();
        assert!(!pem.parse_x509().unwrap().validity().is_valid());
    }

    #[test]
    fn material_is_three_files() {
        let material = Pki::new().unwrap().material(&["bigfleet://admin"]).unwrap();
        for path in [material.cert(), material.key(), material.ca()] {
            assert!(fs::read_to_string(path).unwrap().starts_with("-----BEGIN "));
        }
        assert_eq!(material.args().len(), 6);
    }
}
