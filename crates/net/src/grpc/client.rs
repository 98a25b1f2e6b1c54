//! Dialling.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use http::Uri;
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::TlsConnector;
use tokio_util::either::Either;
use tonic::transport::{Channel, Endpoint};

use super::{KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT};
use crate::{
    Error,
    identity::{self, NoIdentity},
    listen,
    rule::Rule,
    tls::Security,
};

/// Time for one attempt: name, TCP and TLS.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Of several addresses behind one name, a dead one may take this much.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(3);

type Stream = Either<TcpStream, Box<tokio_rustls::client::TlsStream<TcpStream>>>;

/// Connects to `host:port` and returns when the connection stands.
///
/// Under mTLS the server's certificate must chain to the CA bundle, name the
/// host, and satisfy `expect`. The name is resolved anew at each attempt, and
/// a lost connection is made again by itself.
///
/// Servers close connections that have reached their age. A call that is on
/// its way into a closing connection fails unsent, with `UNAVAILABLE` or
/// `CANCELLED` ("operation was canceled"): retry it like any lost connection.
pub async fn connect(addr: &str, security: &Security, expect: Rule) -> Result<Channel, Error> {
    connect_tuned(addr, security, expect, |endpoint| endpoint).await
}

/// Like [`connect`], with other settings of the transport than every process
/// has: small windows for a reader that stalls, an executor whose tasks can be
/// cut.
pub async fn connect_tuned(
    addr: &str,
    security: &Security,
    expect: Rule,
    tune: impl FnOnce(Endpoint) -> Endpoint,
) -> Result<Channel, Error> {
    let dial = Dial::new(addr, security, expect)?;
    let endpoint = tune(dial.endpoint()?);
    let connecting = endpoint.connect_with_connector(dial.connector()).await;
    connecting
        .map_err(|error| Error::Connect { addr: addr.to_owned(), problem: root_cause(&error) })
}

/// Like [`connect`], but dials at the first call; a failure to connect is
/// then that call's `UNAVAILABLE` with the reason in its text.
pub fn connect_lazy(addr: &str, security: &Security, expect: Rule) -> Result<Channel, Error> {
    let dial = Dial::new(addr, security, expect)?;
    Ok(dial.endpoint()?.connect_with_connector_lazy(dial.connector()))
}

/// Whether `addr` can be dialled as written; nothing is dialled.
pub fn check_address(addr: &str) -> Result<(), Error> {
    Dial::new(addr, &Security::Plaintext, Rule::any_certificate())?.endpoint().map(drop)
}

/// Like [`connect_lazy`], but dials only `at`, one of the addresses behind the
/// name in `addr`, which stays what the certificate must carry: for a name that
/// stands for several servers, of which one is meant.
pub fn connect_lazy_at(
    addr: &str,
    at: SocketAddr,
    security: &Security,
    expect: Rule,
) -> Result<Channel, Error> {
    let dial = Dial { at: Some(at), ..Dial::new(addr, security, expect)? };
    Ok(dial.endpoint()?.connect_with_connector_lazy(dial.connector()))
}

#[derive(Clone)]
struct Dial {
    addr: Arc<str>,
    host: Arc<str>,
    port: u16,
    /// The one address to dial, whatever the name resolves to.
    at: Option<SocketAddr>,
    security: Security,
    expect: Arc<Rule>,
}

impl Dial {
    fn new(addr: &str, security: &Security, expect: Rule) -> Result<Self, Error> {
        let problem = |problem| Error::Address { addr: addr.to_owned(), problem };
        let (host, port) = listen::split(addr).ok_or_else(|| problem("write it as host:port"))?;
        if host.is_empty() || port == 0 {
            return Err(problem("a host and a port are needed to dial"));
        }
        Ok(Self {
            addr: addr.into(),
            host: host.into(),
            port,
            at: None,
            security: security.clone(),
            expect: expect.into(),
        })
    }

    fn endpoint(&self) -> Result<Endpoint, Error> {
        let uri = |scheme| {
            let malformed =
                |_| Error::Address { addr: self.addr.to_string(), problem: "not an address" };
            format!("{scheme}://{}", self.addr).parse::<Uri>().map_err(malformed)
        };
        // The endpoint is named http because TLS is the connector's business;
        // the origin is what requests say.
        let endpoint = Endpoint::from(uri("http")?)
            .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
            .keep_alive_timeout(KEEPALIVE_TIMEOUT)
            .keep_alive_while_idle(true);
        Ok(match self.security {
            Security::Plaintext => endpoint,
            Security::Mtls(_) => endpoint.origin(uri("https")?),
        })
    }

    fn connector(
        self,
    ) -> impl tower::Service<
        Uri,
        Response = TokioIo<Stream>,
        Error = io::Error,
        Future = impl Future<Output = io::Result<TokioIo<Stream>>> + Send,
    > + Send
    + 'static {
        tower::service_fn(move |_: Uri| {
            let dial = self.clone();
            async move {
                let late = || {
                    let message = format!("no connection within {} s", CONNECT_TIMEOUT.as_secs());
                    io::Error::new(io::ErrorKind::TimedOut, message)
                };
                let stream = timeout(CONNECT_TIMEOUT, dial.dial()).await;
                stream.map_err(|_| late())?.map(TokioIo::new)
            }
        })
    }

    async fn dial(&self) -> io::Result<Stream> {
        let stream = self.dial_tcp().await?;
        stream.set_nodelay(true)?;
        let Security::Mtls(tls) = &self.security else {
            return Ok(Either::Left(stream));
        };
        let name = ServerName::try_from(self.host.to_string()).map_err(io::Error::other)?;
        let stream = TlsConnector::from(tls.client_config()).connect(name, stream).await?;
        let session = stream.get_ref().1;
        let leaf = session.peer_certificates().and_then(<[_]>::first);
        let carried = leaf.map_or(Err(NoIdentity::Missing), identity::of_leaf);
        self.expect.check(&carried).map_err(|denied| {
            tracing::error!(addr = %self.addr, presented = denied.presented,
                needed = denied.needed, "server identity rejected");
            io::Error::new(io::ErrorKind::PermissionDenied, denied)
        })?;
        Ok(Either::Right(Box::new(stream)))
    }

    async fn dial_tcp(&self) -> io::Result<TcpStream> {
        let addrs: Vec<SocketAddr> = match self.at {
            Some(at) => vec![at],
            None => tokio::net::lookup_host((&*self.host, self.port)).await?.collect(),
        };
        let patience = if addrs.len() > 1 { ADDRESS_TIMEOUT } else { CONNECT_TIMEOUT };
        let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for addr in addrs {
            match timeout(patience, TcpStream::connect(addr)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => failure = error,
                Err(_) => {
                    failure = io::Error::new(io::ErrorKind::TimedOut, format!("{addr} is silent"))
                }
            }
        }
        Err(failure)
    }
}

/// The transport's errors wrap each other and only the innermost says why.
fn root_cause(error: &tonic::transport::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
