//! What we bring along: configuration and certificate.

use bigfleet_net::{Error as Net, identity::Identity};

use super::finding::Findings;
use crate::{
    Error,
    fleet::Fleet,
    when::{self, SECOND},
};

/// Seven days, in seconds.
const SOON: i64 = 7 * 86_400;

/// A configuration with which nothing can be asked.
pub(super) fn unusable(error: &Error, findings: &mut Findings) {
    match error {
        Error::Net(Net::PartialTls { .. } | Net::TlsRequired) => findings.fault(
            "certificate",
            "flags",
            error.to_string(),
            "give --tls-cert, --tls-key and --tls-ca, or name all three in the context",
        ),
        Error::Net(Net::Material { path, problem }) => findings.fault(
            "certificate",
            &path.display().to_string(),
            problem,
            "issue certificate, key and CA bundle anew, together, and give their paths",
        ),
        Error::Net(error) => findings.fault(
            "address",
            "--coordinator",
            error.to_string(),
            "write every address as host:port",
        ),
        error => findings.fault(
            "configuration",
            "file",
            error.to_string(),
            "correct the line that is named; `bigfleetctl` needs contexts with coordinator, tls and output",
        ),
    }
}

/// Our certificate.
pub(super) fn check(fleet: &Fleet, findings: &mut Findings) {
    let Some(tls) = fleet.security.tls() else {
        return findings.warning(
            "certificate",
            "ours",
            "plaintext: identities are not checked",
            "give --tls-cert, --tls-key and --tls-ca, unless this is a laptop",
        );
    };
    let path = fleet.tls.tls_cert.as_deref().unwrap_or_else(|| std::path::Path::new("ours"));
    let file = path.display().to_string();
    match tls.own_identity() {
        Ok(Identity::Admin) => findings.ok("identity", &file, "bigfleet://admin"),
        Ok(Identity::Readonly) => findings.warning(
            "identity",
            &file,
            "bigfleet://readonly sees everything and changes nothing",
            "use a certificate with bigfleet://admin for commands that change the fleet",
        ),
        Ok(other) => findings.fault(
            "identity",
            &file,
            format!("{other} opens no admin or read call"),
            "issue a certificate whose one bigfleet URI SAN is bigfleet://admin or bigfleet://readonly",
        ),
        Err(none) => findings.fault(
            "identity",
            &file,
            none.to_string(),
            "issue a certificate whose one bigfleet URI SAN is bigfleet://admin or bigfleet://readonly",
        ),
    }
    expiry(&file, tls.leaf_expiry(), findings);
}

/// A certificate's end, in unix seconds.
pub(super) fn expiry(target: &str, expires: i64, findings: &mut Findings) {
    let left = expires.saturating_sub(when::now() / SECOND);
    let at = when::instant(expires.saturating_mul(SECOND));
    let fix = "issue it anew; processes take a new certificate from the same files by themselves";
    if left <= 0 {
        findings.fault("expiry", target, format!("the certificate expired at {at}"), fix);
    } else if left < SOON {
        let span = when::span(left.saturating_mul(SECOND));
        findings.warning("expiry", target, format!("the certificate expires in {span}"), fix);
    } else {
        findings.ok("expiry", target, format!("the certificate is good until {at}"));
    }
}
