//! The layer that every route is behind.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Extension, Router,
    extract::{ConnectInfo, Request, State},
    middleware::Next,
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use http::{HeaderMap, HeaderValue, StatusCode, header::SET_COOKIE, request::Parts};
use serde::Deserialize;

use super::{AuthConfig, Viewer, oidc::Oidc, proxy::ProxyConfig};
use crate::{
    App, BasePath, Error,
    api::{Params, Refusal},
    source::web::Web,
};

/// Where a session is ended.
pub(crate) const LOGOUT: &str = "/auth/logout";

/// Says who looks.
#[derive(Debug)]
pub(crate) enum Guard {
    None,
    Oidc(Box<Oidc>),
    ProxyHeader(ProxyConfig),
}

impl Guard {
    /// As configured; dials nobody yet.
    pub(crate) fn new(config: &AuthConfig, base: &BasePath, web: Web) -> Result<Self, Error> {
        Ok(match config {
            AuthConfig::None => Self::None,
            AuthConfig::Oidc(config) => Self::Oidc(Box::new(Oidc::new(config.clone(), base, web)?)),
            AuthConfig::ProxyHeader(config) => Self::ProxyHeader(config.clone()),
        })
    }

    fn viewer(&self, parts: &Parts) -> Result<Viewer, Refusal> {
        match self {
            Self::None => Ok(Viewer::default()),
            Self::Oidc(oidc) => oidc.viewer(&parts.headers),
            Self::ProxyHeader(proxy) => {
                let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
                proxy.viewer(peer.map(|ConnectInfo(peer)| peer.ip()), &parts.headers)
            }
        }
    }

    /// A browser that opens the page without a session is sent to get one, and comes back.
    pub(crate) fn send_to_login(&self, parts: &Parts) -> Option<Response> {
        let Self::Oidc(oidc) = self else { return None };
        // Scripts and styles hold nothing, and a redirect would not be followed to a form.
        let page = !parts.uri.path().starts_with("/assets/");
        if !page || oidc.viewer(&parts.headers).is_ok() {
            return None;
        }
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        Some(Redirect::to(&oidc.login_path(path)).into_response())
    }
}

/// Lets a request through with its viewer. Probes have none to show.
pub(crate) async fn require(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    if parts.uri.path() != "/health" {
        match guard.viewer(&parts) {
            Ok(viewer) => {
                parts.extensions.insert(viewer);
            }
            Err(refusal) => return refusal.into_response(),
        }
    }
    next.run(Request::from_parts(parts, body)).await
}

/// The way in and out, where there is one.
pub(crate) fn router(guard: Arc<Guard>) -> Router<Arc<App>> {
    if !matches!(*guard, Guard::Oidc(_)) {
        return Router::new();
    }
    Router::new()
        .route("/auth/login", get(login))
        .route("/auth/callback", get(callback))
        .route(LOGOUT, post(logout).fallback(only_post))
        .layer(Extension(guard))
}

#[derive(Deserialize)]
struct LoginParams {
    #[serde(default, rename = "return")]
    back: String,
}

fn oidc(guard: &Guard) -> Result<&Oidc, Refusal> {
    match guard {
        Guard::Oidc(oidc) => Ok(oidc),
        _ => Err(Refusal::NotFound("no such route".to_owned())),
    }
}

async fn login(
    Extension(guard): Extension<Arc<Guard>>,
    Params(params): Params<LoginParams>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let step = oidc(&guard)?.begin(&headers, &params.back).await?;
    Ok(with_cookies(Redirect::to(&step.to).into_response(), step.cookies))
}

#[derive(Deserialize)]
struct CallbackParams {
    #[serde(default)]
    code: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    error: String,
}

async fn callback(
    Extension(guard): Extension<Arc<Guard>>,
    Params(params): Params<CallbackParams>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    if !params.error.is_empty() {
        return Err(Refusal::Forbidden(format!("the issuer refused: {}", params.error)));
    }
    let step = oidc(&guard)?.finish(&headers, &params.state, &params.code).await?;
    Ok(with_cookies(Redirect::to(&step.to).into_response(), step.cookies))
}

async fn logout(
    Extension(guard): Extension<Arc<Guard>>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let cookies = oidc(&guard)?.end(&headers);
    // Where to go next is the app's to say: a script cannot follow to the issuer.
    Ok(with_cookies(StatusCode::NO_CONTENT.into_response(), cookies))
}

async fn only_post() -> Refusal {
    Refusal::Method { allowed: "POST" }
}

fn with_cookies(mut response: Response, cookies: Vec<String>) -> Response {
    for cookie in cookies {
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
    }
    response
}
