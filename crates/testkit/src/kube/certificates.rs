//! The authority of one control plane and what it signs.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, SanType};

use super::Error;
use crate::pki::Pki;

/// A certificate and its key, both as PEM files.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// All credentials, written to one folder.
#[derive(Debug)]
pub(crate) struct Certificates {
    /// Signs the other certificates; servers and clients trust it.
    pub(crate) authority: PathBuf,
    pub(crate) serving: Pair,
    /// A member of `system:masters`.
    pub(crate) admin: Pair,
    /// Signs the tokens of service accounts.
    pub(crate) service_account_key: PathBuf,
    /// Verifies them.
    pub(crate) service_account_public_key: PathBuf,
}

impl Certificates {
    pub(crate) fn write_to(folder: &Path) -> Result<Self, Error> {
        let pki = Pki::new()?;

        let mut serving = CertificateParams::new(vec!["localhost".to_owned()])?;
        serving.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        serving.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];

        let mut admin = CertificateParams::default();
        admin.distinguished_name.push(DnType::CommonName, "admin");
        admin.distinguished_name.push(DnType::OrganizationName, "system:masters");
        admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];

        let signed = |params: &CertificateParams, name: &str| -> Result<Pair, Error> {
            let leaf = pki.sign(params)?;
            Ok(Pair {
                certificate: write(folder, &format!("{name}.crt"), &leaf.cert_pem)?,
                key: write(folder, &format!("{name}.key"), &leaf.key_pem)?,
            })
        };
        let accounts = KeyPair::generate()?;
        Ok(Self {
            authority: write(folder, "ca.crt", &pki.ca_pem())?,
            serving: signed(&serving, "serving")?,
            admin: signed(&admin, "admin")?,
            service_account_key: write(folder, "accounts.key", &accounts.serialize_pem())?,
            service_account_public_key: write(folder, "accounts.pub", &accounts.public_key_pem())?,
        })
    }
}

fn write(folder: &Path, name: &str, pem: &str) -> Result<PathBuf, Error> {
    let path = folder.join(name);
    fs::write(&path, pem).map_err(Error::io(format!("cannot write {}", path.display())))?;
    Ok(path)
}
