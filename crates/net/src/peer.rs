//! The other end of a connection that a gRPC server has accepted.

use std::net::SocketAddr;

use prometheus_client::metrics::counter::Counter;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Status};

use crate::{
    identity::{Carried, Identity},
    rule::{Denied, Rule},
};

/// How a peer is connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// No TLS: identities are not known and not asked for.
    Plaintext,
    /// mTLS with a verified certificate.
    Mtls(Carried),
}

/// Who called: every request of a [`GrpcServer`](crate::grpc::GrpcServer)
/// carries one.
#[derive(Debug, Clone)]
pub struct Peer {
    addr: SocketAddr,
    transport: Transport,
    closing: CancellationToken,
}

impl Peer {
    /// A peer at this address. Servers make their own; tests that call a
    /// service directly put one into the request's extensions.
    #[must_use]
    pub fn new(addr: SocketAddr, transport: Transport) -> Self {
        Self { addr, transport, closing: CancellationToken::new() }
    }

    pub(crate) fn with_closing(self, closing: CancellationToken) -> Self {
        Self { closing, ..self }
    }

    /// The peer of a request, if it came through a
    /// [`GrpcServer`](crate::grpc::GrpcServer).
    #[must_use]
    pub fn of<T>(request: &Request<T>) -> Option<&Self> {
        request.extensions().get()
    }

    /// Remote address.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Transport, with the identity under mTLS.
    #[must_use]
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// The identity under mTLS, if there is exactly one.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        match &self.transport {
            Transport::Mtls(Ok(identity)) => Some(identity),
            _ => None,
        }
    }

    /// Whether the peer is on this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        // A dual-stack listener reports IPv4 peers as ::ffff:a.b.c.d.
        self.addr.ip().to_canonical().is_loopback()
    }

    /// Fires when the server begins to close this connection: it stops, or
    /// the connection has reached its greatest age. A handler of a long
    /// stream should then end it with `UNAVAILABLE`, which the caller answers
    /// by connecting anew; streams that go on are cut after a grace.
    #[must_use]
    pub fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    /// Plaintext passes; under mTLS the certificate must satisfy the rule.
    pub fn require(&self, rule: &Rule) -> Result<(), Denied> {
        match &self.transport {
            Transport::Plaintext => Ok(()),
            Transport::Mtls(carried) => rule.check(carried),
        }
    }

    /// Like [`Peer::require`], but plaintext passes from this machine only.
    pub fn require_or_loopback(&self, rule: &Rule) -> Result<(), Denied> {
        if self.transport == Transport::Plaintext && !self.is_loopback() {
            return Err(Denied {
                presented: format!("a plaintext connection from {}", self.addr.ip()),
                needed: format!("{rule} over mTLS, or a loopback connection"),
            });
        }
        self.require(rule)
    }
}

/// The identity check of a service, with its counter: one line per RPC.
///
/// ```
/// # use bigfleet_net::{peer::Gate, rule::Rule};
/// # fn list(gate: &Gate, request: &tonic::Request<()>) -> Result<(), tonic::Status> {
/// gate.admit(request, &Rule::readers())?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Gate {
    rejected: Counter,
}

impl Gate {
    /// Counts every rejection in `rejected`, which the service registers.
    #[must_use]
    pub fn new(rejected: Counter) -> Self {
        Self { rejected }
    }

    /// [`Peer::require`] with log, counter and `PERMISSION_DENIED`.
    pub fn admit<T>(&self, request: &Request<T>, rule: &Rule) -> Result<(), Status> {
        self.decide(Peer::of(request), rule, Peer::require)
    }

    /// [`Peer::require_or_loopback`] with log, counter and `PERMISSION_DENIED`.
    pub fn admit_or_loopback<T>(&self, request: &Request<T>, rule: &Rule) -> Result<(), Status> {
        self.decide(Peer::of(request), rule, Peer::require_or_loopback)
    }

    /// [`Gate::admit`] for a handler that no longer has the request: a stream
    /// whose first frame says whom the peer claims to be.
    pub fn admit_peer(&self, peer: &Peer, rule: &Rule) -> Result<(), Status> {
        self.decide(Some(peer), rule, Peer::require)
    }

    fn decide(
        &self,
        peer: Option<&Peer>,
        rule: &Rule,
        check: fn(&Peer, &Rule) -> Result<(), Denied>,
    ) -> Result<(), Status> {
        // Without a peer nobody knows who calls, so nobody is let in.
        let verdict = peer.map_or_else(
            || Err(Denied { presented: "nothing".into(), needed: rule.to_string() }),
            |peer| check(peer, rule),
        );
        verdict.map_err(|denied| {
            self.rejected.inc();
            let addr = peer.map(|peer| peer.addr.to_string()).unwrap_or_default();
            tracing::error!(
                peer = addr,
                presented = denied.presented,
                needed = denied.needed,
                "identity rejected"
            );
            denied.into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::NoIdentity;

    fn request(addr: &str, transport: Transport) -> Request<()> {
        let mut request = Request::new(());
        request.extensions_mut().insert(Peer::new(addr.parse().unwrap(), transport));
        request
    }

    #[test]
    fn mtls_is_checked_and_counted() {
        let rejected = Counter::default();
        let gate = Gate::new(rejected.clone());
        let admin = request("10.0.0.1:1", Transport::Mtls(Ok(Identity::Admin)));
        let nobody = request("10.0.0.1:1", Transport::Mtls(Err(NoIdentity::Missing)));
        gate.admit(&admin, &Rule::readers()).unwrap();
        assert_eq!(rejected.get(), 0);
        let status = gate.admit(&nobody, &Rule::readers()).unwrap_err();
        assert_eq!(status.code(), tonic::Code::PermissionDenied);
        assert!(status.message().contains("no bigfleet:// URI SAN"), "{status}");
        let peer = Peer::of(&nobody).unwrap().clone();
        gate.admit_peer(&peer, &Rule::readers()).unwrap_err();
        assert_eq!(rejected.get(), 2);
    }

    #[test]
    fn plaintext_skips_identities_but_not_loopback() {
        let gate = Gate::default();
        for (addr, local) in [
            ("10.0.0.1:1", false),
            ("[::ffff:10.0.0.1]:1", false),
            ("127.0.0.1:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
        ] {
            let request = request(addr, Transport::Plaintext);
            gate.admit(&request, &Rule::admin()).unwrap();
            assert_eq!(gate.admit_or_loopback(&request, &Rule::admin()).is_ok(), local, "{addr}");
        }
        let tls = request("127.0.0.1:1", Transport::Mtls(Ok(Identity::Readonly)));
        gate.admit_or_loopback(&tls, &Rule::admin()).unwrap_err();
    }

    #[test]
    fn a_request_without_peer_is_refused() {
        let status = Gate::default().admit(&Request::new(()), &Rule::any_certificate());
        assert_eq!(status.unwrap_err().code(), tonic::Code::PermissionDenied);
    }
}
