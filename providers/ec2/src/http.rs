//! One HTTP client for all endpoints: plain for the stand-in, TLS for a cloud.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use jiff::Timestamp;
use rustls::{ClientConfig, RootCertStore};

use crate::sign::{self, Credentials, Scope};

/// Larger answers are refused: a page of a thousand instances is some 3 MiB.
const MAX_ANSWER: usize = 64 << 20;

/// Why no answer came.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// An endpoint that is none.
    #[error("{url:?} is no endpoint; give http://host:port or https://host")]
    Endpoint {
        /// As configured.
        url: String,
    },
    /// No certificates to trust.
    #[error("cannot trust anybody: {0}; install the system's CA certificates")]
    Roots(String),
    /// Nobody answered, or not in time.
    #[error("no answer: {0}")]
    NoAnswer(String),
}

/// An answer, whatever its status.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// All of it.
    pub body: Bytes,
}

/// The connections, shared by every endpoint.
#[derive(Clone)]
pub struct Http {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    credentials: Arc<Credentials>,
}

impl Http {
    /// Signs with these; `tls` loads the system's certificates, which a process that
    /// only ever speaks to a stand-in may not have.
    pub fn new(credentials: Credentials, tls: bool) -> Result<Self, HttpError> {
        // A process may hold several providers of cryptography; ours is named.
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let versions = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| HttpError::Roots(error.to_string()))?;
        let trusting = if tls {
            versions.with_native_roots().map_err(|error| HttpError::Roots(error.to_string()))?
        } else {
            versions.with_root_certificates(RootCertStore::empty())
        };
        let tls = trusting.with_no_client_auth();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(Duration::from_secs(20))
            .build(connector);
        Ok(Self { client, credentials: Arc::new(credentials) })
    }

    /// An endpoint of one service.
    pub fn endpoint(&self, url: &str, scope: Scope) -> Result<Endpoint, HttpError> {
        let bad = || HttpError::Endpoint { url: url.to_owned() };
        let uri: Uri = url.parse().map_err(|_| bad())?;
        let known = matches!(uri.scheme_str(), Some("http" | "https"));
        let host = uri.authority().filter(|_| known).ok_or_else(bad)?.to_string();
        Ok(Endpoint { http: self.clone(), uri, host, scope })
    }

    /// A public document, unsigned.
    pub async fn get(&self, url: &str) -> Result<Answer, HttpError> {
        let uri: Uri = url.parse().map_err(|_| HttpError::Endpoint { url: url.to_owned() })?;
        let request = Request::get(uri).body(Full::default());
        self.send(request.map_err(|error| HttpError::NoAnswer(error.to_string()))?, LIMIT).await
    }

    async fn send(
        &self,
        request: Request<Full<Bytes>>,
        limit: Duration,
    ) -> Result<Answer, HttpError> {
        let call = async {
            let answer = self.client.request(request).await.map_err(|error| with_cause(&error))?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
            let body = body.map_err(|error| error.to_string())?.to_bytes();
            Ok(Answer { status, body })
        };
        match tokio::time::timeout(limit, call).await {
            Ok(answer) => answer.map_err(HttpError::NoAnswer),
            Err(_) => Err(HttpError::NoAnswer(format!("none within {limit:?}"))),
        }
    }
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

/// One call, unless it waits on purpose.
pub const LIMIT: Duration = Duration::from_secs(15);

/// Where one service is reached.
#[derive(Clone, Debug)]
pub struct Endpoint {
    http: Http,
    uri: Uri,
    host: String,
    scope: Scope,
}

impl Endpoint {
    /// The same host, at its root: queues are named by a path, but asked for there.
    #[must_use]
    pub fn root(self) -> Self {
        let uri = self.uri.scheme().and_then(|scheme| {
            let builder = Uri::builder().scheme(scheme.clone()).authority(self.host.as_str());
            builder.path_and_query("/").build().ok()
        });
        Self { uri: uri.unwrap_or_else(|| self.uri.clone()), ..self }
    }

    /// A signed POST; `target` names the action of a JSON service.
    pub async fn post(
        &self,
        content_type: &str,
        target: Option<&str>,
        body: Bytes,
        limit: Duration,
    ) -> Result<Answer, HttpError> {
        let stamp = sign::stamp(Timestamp::now());
        let credentials = &*self.http.credentials;
        let mut headers = vec![
            ("content-type".to_owned(), content_type.to_owned()),
            ("host".to_owned(), self.host.clone()),
            ("x-amz-date".to_owned(), stamp.clone()),
        ];
        if !credentials.session_token.is_empty() {
            headers.push(("x-amz-security-token".into(), credentials.session_token.clone()));
        }
        headers.extend(target.map(|target| ("x-amz-target".to_owned(), target.to_owned())));
        let signed = sign::Request {
            method: "POST",
            path: self.uri.path(),
            query: "",
            headers: &headers,
            body: &body,
        };
        let line = sign::authorization(credentials, &self.scope, &stamp, &signed);
        let mut request =
            Request::builder().method(Method::POST).uri(&self.uri).header("authorization", line);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(body));
        let request = request.map_err(|error| HttpError::NoAnswer(error.to_string()))?;
        self.http.send(request, limit).await
    }
}

/// The client's own text says only "connect"; why is in its cause.
fn with_cause(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
