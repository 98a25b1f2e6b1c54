//! A small HTTP client: Prometheus, metrics of processes, an OpenID issuer.

use std::time::Duration;

use bytes::Bytes;
use http::{
    Method, Request, StatusCode, Uri,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};

use crate::Error;

/// No answer that is asked for comes near this.
const MOST: usize = 64 << 20;

/// Time for TCP; the whole is bounded by whoever asks.
const CONNECT: Duration = Duration::from_secs(5);

/// Asks by HTTP and HTTPS, with the system's roots of trust.
#[derive(Clone, Debug)]
pub(crate) struct Web {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Web {
    /// Dials nothing yet. Without roots of the system only plain HTTP works.
    pub(crate) fn new() -> Result<Self, Error> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_connect_timeout(Some(CONNECT));
        http.set_nodelay(true);
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let builder = match HttpsConnectorBuilder::new().with_provider_and_native_roots(provider) {
            Ok(builder) => builder,
            Err(error) => {
                tracing::warn!(%error, "no roots of trust on this system: https cannot be dialled");
                HttpsConnectorBuilder::new().with_tls_config(trusting_nobody()?)
            }
        };
        let connector = builder.https_or_http().enable_http1().wrap_connector(http);
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(Duration::from_secs(60))
            .pool_max_idle_per_host(8)
            .build(connector);
        Ok(Self { client })
    }

    /// The body of a GET that was answered with 200, else what was said instead.
    pub(crate) async fn get(&self, uri: &str, accept: &str) -> Result<Bytes, String> {
        self.get_as(None, uri, accept).await
    }

    /// The same with this `Authorization`, if there is one.
    pub(crate) async fn get_as(
        &self,
        authorization: Option<&str>,
        uri: &str,
        accept: &str,
    ) -> Result<Bytes, String> {
        let mut headers = vec![(ACCEPT, accept)];
        headers.extend(authorization.map(|value| (AUTHORIZATION, value)));
        let (status, body) = self.send(Method::GET, uri, &headers, Bytes::new()).await?;
        if status == StatusCode::OK { Ok(body) } else { Err(said(status, &body)) }
    }

    /// The answer to a form, sent with this `Authorization` if there is one.
    pub(crate) async fn post_form(
        &self,
        uri: &str,
        authorization: Option<&str>,
        form: String,
    ) -> Result<Bytes, String> {
        let mut headers =
            vec![(CONTENT_TYPE, "application/x-www-form-urlencoded"), (ACCEPT, "application/json")];
        headers.extend(authorization.map(|value| (AUTHORIZATION, value)));
        let (status, body) = self.send(Method::POST, uri, &headers, form.into()).await?;
        if status == StatusCode::OK { Ok(body) } else { Err(said(status, &body)) }
    }

    async fn send(
        &self,
        method: Method,
        uri: &str,
        headers: &[(http::HeaderName, &str)],
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), String> {
        let uri: Uri = uri.parse().map_err(|error| format!("{uri:?} is no address: {error}"))?;
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let request = request.body(Full::new(body)).map_err(|error| error.to_string())?;
        let answer = self.client.request(request).await.map_err(|error| root_cause(&error))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MOST).collect().await;
        Ok((status, body.map_err(|error| error.to_string())?.to_bytes()))
    }
}

fn trusting_nobody() -> Result<rustls::ClientConfig, Error> {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let builder = rustls::ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::System(format!("TLS: {error}")))?;
    Ok(builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}

/// What a server said with a status other than 200, as far as it can be shown.
fn said(status: StatusCode, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(300)]);
    format!("answered {status}: {}", text.trim())
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
