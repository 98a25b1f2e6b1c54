//! Certificates that the suite issues itself: over mTLS every shard it plays
//! needs one of its own.

use std::{fs, path::Path, path::PathBuf};

use bigfleet_net::{flags::TlsFlags, tls::Security};
use rcgen::{
    CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, SanType, string::Ia5String,
};
use tempfile::TempDir;
use time::{Duration, OffsetDateTime};

use crate::Error;

/// How the suite talks to a target.
#[derive(Debug)]
pub enum Credentials {
    /// Without TLS.
    Plaintext,
    /// With a certificate for each shard.
    Issued(Box<ShardIssuer>),
}

impl Credentials {
    /// What a caller needs who is this shard.
    pub fn of_shard(&self, shard: &str) -> Result<Security, Error> {
        match self {
            Self::Plaintext => Ok(Security::Plaintext),
            Self::Issued(issuer) => issuer.security(shard),
        }
    }

    /// For error texts.
    #[must_use]
    pub fn speaks(&self) -> &'static str {
        match self {
            Self::Plaintext => "plaintext",
            Self::Issued(_) => "mTLS",
        }
    }

    /// Whether callers have identities.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        matches!(self, Self::Issued(_))
    }
}

/// A test CA that the target trusts.
#[derive(Debug)]
pub struct ShardIssuer {
    issuer: Issuer<'static, KeyPair>,
    ca: PathBuf,
    dir: TempDir,
}

impl ShardIssuer {
    /// Reads the CA's certificate and key; `ca` is the bundle that the target's
    /// own certificate chains to.
    pub fn load(ca: &Path, cert: &Path, key: &Path) -> Result<Self, Error> {
        let read = |path: &Path| {
            fs::read_to_string(path).map_err(|source| Error::File { path: path.into(), source })
        };
        let key = KeyPair::from_pem(&read(key)?)?;
        let issuer = Issuer::from_ca_cert_pem(&read(cert)?, key)?;
        let dir = TempDir::new().map_err(Error::Temporary)?;
        Ok(Self { issuer, ca: ca.into(), dir })
    }

    /// A certificate of this shard, valid for a day.
    fn security(&self, shard: &str) -> Result<Security, Error> {
        let mut params = CertificateParams::new(Vec::new())?;
        let identity = format!("bigfleet://shard/{shard}");
        params.subject_alt_names.push(SanType::URI(Ia5String::try_from(identity)?));
        params.distinguished_name.push(DnType::CommonName, "bigfleet conformance");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let now = OffsetDateTime::now_utc();
        (params.not_before, params.not_after) = (now - Duration::hours(1), now + Duration::days(1));
        let key = KeyPair::generate()?;
        let leaf = params.signed_by(&key, &self.issuer)?;

        let write = |name: &str, text: String| {
            let path = self.dir.path().join(format!("{shard}.{name}"));
            fs::write(&path, text).map_err(|source| Error::File { path: path.clone(), source })?;
            Ok::<_, Error>(path)
        };
        let flags = TlsFlags {
            tls_cert: Some(write("crt", leaf.pem())?),
            tls_key: Some(write("key", key.serialize_pem())?),
            tls_ca: Some(self.ca.clone()),
            require_tls: true,
        };
        Ok(flags.load()?)
    }
}
