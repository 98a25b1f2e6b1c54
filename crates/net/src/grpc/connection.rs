//! One accepted connection, from handshake to last stream.

use std::{
    convert::Infallible,
    hash::{BuildHasher, RandomState},
    io,
    net::SocketAddr,
    pin::pin,
    time::Duration,
};

use http::Request;
use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::OwnedSemaphorePermit,
    time::{Instant, sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tonic::{body::Body, service::Routes};
use tower::Service;
use tracing::Instrument;

use super::{KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT, deadline};
use crate::{
    identity::{self, NoIdentity},
    peer::{Peer, Transport},
    tls::{Security, Tls},
};

/// Bounds in time and number on the connections of a server.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// Age at which a connection is asked to end, so that a removed CA takes
    /// effect on peers that never leave. Each connection gets up to a tenth
    /// less, so that those which came together do not leave together.
    pub max_age: Duration,
    /// How long calls and streams may go on after that, before they are cut.
    /// Longer than the longest deadline of a unary call (120 s, `List`).
    pub age_grace: Duration,
    /// A connection is pinged when idle for this long.
    pub keepalive_interval: Duration,
    /// A connection is dropped when a ping is not answered for this long.
    pub keepalive_timeout: Duration,
    /// Time for a TLS handshake.
    pub handshake_timeout: Duration,
    /// Handshakes at once; more wait in the listener's backlog.
    pub handshakes: usize,
    /// How long a stop waits for calls to end.
    pub drain: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            max_age: Duration::from_secs(60 * 60),
            age_grace: Duration::from_secs(150),
            keepalive_interval: KEEPALIVE_INTERVAL,
            keepalive_timeout: KEEPALIVE_TIMEOUT,
            handshake_timeout: Duration::from_secs(10),
            handshakes: 1024,
            drain: Duration::from_secs(10),
        }
    }
}

/// What the connections of one server share.
pub(super) struct Acceptor {
    pub(super) security: Security,
    pub(super) routes: Routes,
    pub(super) limits: ConnectionLimits,
    /// The server stops: no new calls.
    pub(super) stopping: CancellationToken,
    /// The drain is over: no calls at all.
    pub(super) cut: CancellationToken,
}

impl Acceptor {
    /// Serves one connection to its end. The permit is for the handshake.
    pub(super) async fn serve(
        &self,
        stream: TcpStream,
        addr: SocketAddr,
        handshake: OwnedSemaphorePermit,
    ) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(peer = %addr, %error, "connection lost before its first byte");
            return;
        }
        let Security::Mtls(tls) = &self.security else {
            drop(handshake);
            return self.serve_http2(stream, Peer::new(addr, Transport::Plaintext)).await;
        };
        let accepted = tokio::select! {
            accepted = shake_hands(tls, stream, self.limits.handshake_timeout) => accepted,
            () = self.stopping.cancelled() => return,
            () = self.cut.cancelled() => return,
        };
        drop(handshake);
        match accepted {
            Ok((stream, transport)) => {
                Box::pin(self.serve_http2(stream, Peer::new(addr, transport))).await;
            }
            // A port probe connects and leaves.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                tracing::debug!(peer = %addr, %error, "TLS handshake abandoned");
            }
            Err(error) => tracing::warn!(peer = %addr, %error, "TLS handshake failed"),
        }
    }

    async fn serve_http2<IO>(&self, io: IO, peer: Peer)
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let closing = self.stopping.child_token();
        let addr = peer.addr();
        let peer = peer.with_closing(closing.clone());
        let service = service_fn(|request| answer(self.routes.clone(), peer.clone(), request));
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .timer(TokioTimer::new())
            .keep_alive_interval(self.limits.keepalive_interval)
            .keep_alive_timeout(self.limits.keepalive_timeout);
        let mut connection = pin!(http2.serve_connection(TokioIo::new(io), service));
        let mut old = pin!(sleep(spread(self.limits.max_age)));
        let mut ended = loop {
            tokio::select! {
                ended = connection.as_mut() => break Some(ended),
                () = self.cut.cancelled() => break None,
                () = old.as_mut(), if !closing.is_cancelled() => closing.cancel(),
                () = closing.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    break None;
                }
            }
        };
        if ended.is_none() {
            // A stop is bounded by the drain, an old connection by its grace.
            let over = async {
                tokio::select! {
                    () = self.cut.cancelled() => {}
                    () = sleep(self.limits.age_grace), if !self.stopping.is_cancelled() => {}
                }
            };
            tokio::select! {
                end = connection.as_mut() => ended = Some(end),
                () = over => {}
            }
        }
        match ended {
            Some(Ok(())) => {}
            Some(Err(error)) => tracing::debug!(peer = %addr, %error, "connection ended"),
            None => tracing::info!(peer = %addr, "connection cut"),
        }
    }
}

async fn answer(
    mut routes: Routes,
    peer: Peer,
    mut request: Request<Incoming>,
) -> Result<http::Response<Body>, Infallible> {
    let span = tracing::info_span!("rpc", method = request.uri().path(), peer = %peer.addr());
    let limit = deadline::of(request.headers());
    request.extensions_mut().insert(peer);
    if let Some(limit) = limit {
        request.extensions_mut().insert(deadline::Deadline::at(Instant::now() + limit));
    }
    deadline::within(limit, routes.call(request)).instrument(span).await
}

async fn shake_hands(
    tls: &Tls,
    stream: TcpStream,
    limit: Duration,
) -> io::Result<(tokio_rustls::server::TlsStream<TcpStream>, Transport)> {
    let handshake = TlsAcceptor::from(tls.server_config()).accept(stream);
    let stream = timeout(limit, handshake).await.map_err(|_| io::ErrorKind::TimedOut)??;
    let leaf = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let carried = leaf.map_or(Err(NoIdentity::Missing), identity::of_leaf);
    Ok((stream, Transport::Mtls(carried)))
}

/// Between nine tenths of the age and all of it.
fn spread(age: Duration) -> Duration {
    let random = RandomState::new().hash_one(()) % 1024;
    let tenth = age / 10;
    let random = u32::try_from(random).unwrap_or_default();
    age.saturating_sub(tenth / 1024 * random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_spread_over_the_last_tenth() {
        let age = Duration::from_secs(3600);
        let ages: Vec<_> = (0..100).map(|_| spread(age)).collect();
        assert!(ages.iter().all(|one| *one <= age && *one >= age * 9 / 10));
        assert!(ages.iter().any(|one| *one != ages[0]));
    }
}
