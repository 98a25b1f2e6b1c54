//! Who a certificate speaks for.
//!
//! The identity is the one URI SAN of scheme `bigfleet` on the verified leaf.
//! It is compared byte for byte: nothing is normalised, and no identity
//! includes another.

use std::{convert::Infallible, fmt, str::FromStr};

use rustls_pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

const SCHEME: &str = "bigfleet";
const PREFIX: &str = "bigfleet://";

/// One `bigfleet://…` URI.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Identity {
    /// `bigfleet://cluster/<cluster_id>`: an operator.
    Cluster(String),
    /// `bigfleet://shard/<shard_id>`: a shard.
    Shard(String),
    /// `bigfleet://coordinator/<node_id>`: a coordinator replica.
    Coordinator(String),
    /// `bigfleet://provider/<name>`: a provider.
    Provider(String),
    /// `bigfleet://readonly`: dashboards, alerting, read tools.
    Readonly,
    /// `bigfleet://admin`: `bigfleetctl`, coordinator replicas.
    Admin,
    /// Any other URI of the scheme, whole. It opens nothing.
    Unknown(String),
}

impl FromStr for Identity {
    type Err = Infallible;

    /// Never fails: what is not in the table is [`Identity::Unknown`].
    fn from_str(uri: &str) -> Result<Self, Infallible> {
        let unknown = || Self::Unknown(uri.to_owned());
        let Some(path) = uri.strip_prefix(PREFIX) else {
            return Ok(unknown());
        };
        Ok(match path.split_once('/') {
            None if path == "readonly" => Self::Readonly,
            None if path == "admin" => Self::Admin,
            Some((_, "")) | None => unknown(),
            Some(("cluster", id)) => Self::Cluster(id.to_owned()),
            Some(("shard", id)) => Self::Shard(id.to_owned()),
            Some(("coordinator", id)) => Self::Coordinator(id.to_owned()),
            Some(("provider", name)) => Self::Provider(name.to_owned()),
            Some(_) => unknown(),
        })
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster(id) => write!(f, "{PREFIX}cluster/{id}"),
            Self::Shard(id) => write!(f, "{PREFIX}shard/{id}"),
            Self::Coordinator(id) => write!(f, "{PREFIX}coordinator/{id}"),
            Self::Provider(name) => write!(f, "{PREFIX}provider/{name}"),
            Self::Readonly => write!(f, "{PREFIX}readonly"),
            Self::Admin => write!(f, "{PREFIX}admin"),
            Self::Unknown(uri) => f.write_str(uri),
        }
    }
}

/// Why a certificate speaks for nobody. Its holder passes the handshake, and
/// is refused by every call that asks for an identity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoIdentity {
    /// No URI SAN of the scheme.
    #[error("no identity (the certificate has no bigfleet:// URI SAN)")]
    Missing,
    /// More than one.
    #[error("no single identity (the certificate has {} bigfleet:// URI SANs: {})", .0.len(), .0.join(", "))]
    Several(Vec<String>),
    /// The names cannot be read.
    #[error("no identity (the certificate's names cannot be read)")]
    Unreadable,
}

/// What a verified certificate carries.
pub type Carried = Result<Identity, NoIdentity>;

/// Reads the identity from a leaf that has been verified before.
pub fn of_leaf(leaf: &CertificateDer<'_>) -> Carried {
    let (_, certificate) =
        X509Certificate::from_der(leaf.as_ref()).map_err(|_| NoIdentity::Unreadable)?;
    let names = certificate.subject_alternative_name().map_err(|_| NoIdentity::Unreadable)?;
    let names = names.map(|extension| extension.value.general_names.as_slice());
    let mut found = Vec::new();
    for name in names.unwrap_or_default() {
        match name {
            GeneralName::URI(uri) if has_scheme(uri) => found.push((*uri).to_owned()),
            // One name that cannot be read could be a second identity.
            GeneralName::Invalid(..) => return Err(NoIdentity::Unreadable),
            _ => {}
        }
    }
    match found.as_slice() {
        [] => Err(NoIdentity::Missing),
        [one] => Ok(one.parse().unwrap_or_else(|never: Infallible| match never {})),
        _ => Err(NoIdentity::Several(found)),
    }
}

/// Schemes are case-insensitive (RFC 3986), identities are not: `BIGFLEET://admin`
/// counts as one of ours, and then equals nothing in the table.
fn has_scheme(uri: &str) -> bool {
    uri.split_once(':').is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case(SCHEME))
}

/// Text of what was presented, for refusals and logs.
#[must_use]
pub(crate) fn describe(carried: &Carried) -> String {
    match carried {
        Ok(identity) => identity.to_string(),
        Err(none) => none.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_testkit::pki::{LOOPBACK, Pki};
    use rustls_pki_types::pem::PemObject;

    use super::*;

    fn carried(identities: &[&str]) -> Carried {
        let leaf = Pki::new().unwrap().issue(identities, LOOPBACK).unwrap();
        of_leaf(&CertificateDer::from_pem_slice(leaf.cert_pem.as_bytes()).unwrap())
    }

    #[test]
    fn text_and_value_are_one_to_one() {
        for (uri, identity) in [
            ("bigfleet://cluster/c-1", Identity::Cluster("c-1".into())),
            ("bigfleet://shard/shard-0", Identity::Shard("shard-0".into())),
            ("bigfleet://shard/a/b", Identity::Shard("a/b".into())),
            ("bigfleet://coordinator/node-1", Identity::Coordinator("node-1".into())),
            ("bigfleet://provider/ec2", Identity::Provider("ec2".into())),
            ("bigfleet://readonly", Identity::Readonly),
            ("bigfleet://admin", Identity::Admin),
        ] {
            assert_eq!(uri.parse(), Ok(identity.clone()));
            assert_eq!(identity.to_string(), uri);
        }
    }

    #[test]
    fn anything_else_is_unknown_and_keeps_its_text() {
        for uri in [
            "bigfleet://foo",
            "bigfleet://admin/",
            "bigfleet://Admin",
            "BIGFLEET://admin",
            "bigfleet://cluster/",
            "bigfleet://cluster",
            "bigfleet:admin",
            "bigfleet://admin?x",
            "",
        ] {
            assert_eq!(uri.parse(), Ok(Identity::Unknown(uri.to_owned())));
            assert_eq!(Identity::Unknown(uri.to_owned()).to_string(), uri);
        }
    }

    #[test]
    fn exactly_one_san_of_the_scheme_counts() {
        assert_eq!(carried(&["bigfleet://admin"]), Ok(Identity::Admin));
        assert_eq!(
            carried(&["spiffe://cluster.local/ns/x", "bigfleet://shard/s"]),
            Ok(Identity::Shard("s".into()))
        );
        assert_eq!(carried(&["bigfleet://foo"]), Ok(Identity::Unknown("bigfleet://foo".into())));
    }

    #[test]
    fn none_or_several_is_no_identity() {
        assert_eq!(carried(&[]), Err(NoIdentity::Missing));
        assert_eq!(carried(&["https://admin", "bigfleets://admin"]), Err(NoIdentity::Missing));
        for second in ["bigfleet://readonly", "bigfleet://admin", "BIGFLEET://admin"] {
            let none = carried(&["bigfleet://admin", second]).unwrap_err();
            assert!(none.to_string().contains(second), "{none}");
            assert!(matches!(none, NoIdentity::Several(_)));
        }
    }
}
