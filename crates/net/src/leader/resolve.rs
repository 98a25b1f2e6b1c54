//! From a name to the replicas behind it.

use std::{fmt, io, net::SocketAddr, sync::Arc};

use futures_util::future::BoxFuture;

type Resolved = BoxFuture<'static, io::Result<Vec<SocketAddr>>>;

/// Looks up `host:port`.
#[derive(Clone)]
pub struct Resolver(Arc<dyn Fn(String) -> Resolved + Send + Sync>);

impl Resolver {
    /// The system's.
    #[must_use]
    pub fn system() -> Self {
        Self::new(|address| {
            Box::pin(async move { Ok(tokio::net::lookup_host(address).await?.collect()) })
        })
    }

    /// Another.
    #[must_use]
    pub fn new(lookup: impl Fn(String) -> Resolved + Send + Sync + 'static) -> Self {
        Self(Arc::new(lookup))
    }

    pub(super) async fn lookup(&self, address: &str) -> io::Result<Vec<SocketAddr>> {
        (self.0)(address.to_owned()).await
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver")
    }
}
