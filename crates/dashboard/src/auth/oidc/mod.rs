//! Signing in at an OpenID issuer: authorization code flow with PKCE. The session is in a signed
//! cookie and nowhere else, so that any replica of the dashboard knows it, and ends with the token
//! that it came from.

mod cookies;
mod issuer;
mod published;
mod session;
mod token;

use std::{collections::BTreeSet, sync::Arc};

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use http::{
    HeaderMap,
    header::{HOST, HeaderName},
};
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use self::{issuer::Issuer, session::Seal, token::Claims};
use super::Viewer;
use crate::{BasePath, Error, api::Refusal, source::web::Web};

/// The viewer's session, and what is between the two halves of a sign-in.
const SESSION: &str = "bigfleet_session";
const LOGIN: &str = "bigfleet_login";

/// Seconds to sign in.
const LOGIN_SECONDS: i64 = 600;

/// Where viewers sign in, and who of them may look.
#[derive(Clone)]
pub struct OidcConfig {
    /// URL of the issuer.
    pub issuer: String,
    /// What the issuer calls this dashboard.
    pub client_id: String,
    /// What proves it.
    pub client_secret: String,
    /// One of these groups is needed.
    pub allowed_groups: Vec<String>,
    /// The claim that lists a viewer's clusters; without it everybody sees all.
    pub cluster_scope_claim: Option<String>,
}

impl std::fmt::Debug for OidcConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OidcConfig").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// Signs viewers in.
#[derive(Debug)]
pub(crate) struct Oidc {
    config: OidcConfig,
    base: BasePath,
    issuer: Issuer,
    sessions: Seal,
    logins: Seal,
}

/// Where to send a browser, and with which cookies.
pub(super) struct Step {
    pub(super) to: String,
    pub(super) cookies: Vec<String>,
}

/// What a browser carries while its viewer signs in.
#[derive(Serialize, Deserialize)]
struct Login {
    state: String,
    nonce: String,
    verifier: String,
    redirect_uri: String,
    back: String,
    until: i64,
}

/// What a browser carries afterwards.
#[derive(Serialize, Deserialize)]
struct Session {
    name: String,
    clusters: Option<BTreeSet<String>>,
    until: i64,
}

impl Oidc {
    /// Checks the configuration and dials nobody yet: the issuer may come up later.
    pub(super) fn new(config: OidcConfig, base: &BasePath, web: Web) -> Result<Self, Error> {
        let issuer = Issuer::new(&config, web)?;
        let (sessions, logins) = (Seal::new(&config, "session"), Seal::new(&config, "login"));
        Ok(Self { issuer, sessions, logins, base: base.clone(), config })
    }

    /// Who looks, by their cookie.
    pub(super) fn viewer(&self, headers: &HeaderMap) -> Result<Viewer, Refusal> {
        let nobody = || Refusal::NoIdentity { login: Some("auth/login") };
        let session: Session = cookies::join(headers, SESSION)
            .and_then(|text| self.sessions.open(&text))
            .ok_or_else(nobody)?;
        if Timestamp::now().as_second() >= session.until {
            return Err(nobody());
        }
        let clusters = session.clusters.map(Arc::new);
        Ok(Viewer { name: session.name, clusters, until: Some(session.until) })
    }

    /// Where a browser goes to get a session and come back to this path.
    pub(super) fn login_path(&self, back: &str) -> String {
        format!("{}auth/login?return={}", self.base, utf8_percent_encode(back, NON_ALPHANUMERIC))
    }

    /// The first half: off to the issuer.
    pub(super) async fn begin(&self, headers: &HeaderMap, back: &str) -> Result<Step, Refusal> {
        let authorization = self.issuer.authorization_endpoint().await?;
        let (scheme, origin) = origin(headers)?;
        let mut login = Login {
            state: secret()?,
            nonce: secret()?,
            verifier: secret()?,
            redirect_uri: format!("{origin}{}auth/callback", self.base),
            back: local(back).to_owned(),
            until: Timestamp::now().as_second() + LOGIN_SECONDS,
        };
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, login.verifier.as_bytes()));
        let parameters = [
            ("response_type", "code"),
            ("client_id", &self.config.client_id),
            ("redirect_uri", &login.redirect_uri),
            ("scope", "openid profile email groups"),
            ("state", &login.state),
            ("nonce", &login.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        let parameters = form(&parameters);
        let joint = if authorization.contains('?') { '&' } else { '?' };
        let mut cookie = self.logins.close(&login);
        if cookie.len() > cookies::MOST {
            // Better to come back to the wrong page than not at all.
            "/".clone_into(&mut login.back);
            cookie = self.logins.close(&login);
        }
        Ok(Step {
            to: format!("{authorization}{joint}{parameters}"),
            cookies: vec![self.set(LOGIN, &cookie, LOGIN_SECONDS, scheme)],
        })
    }

    /// The second half: back from the issuer with a code.
    pub(super) async fn finish(
        &self,
        headers: &HeaderMap,
        state: &str,
        code: &str,
    ) -> Result<Step, Refusal> {
        let forbidden = |text: &str| Refusal::Forbidden(text.to_owned());
        let now = Timestamp::now().as_second();
        let login: Option<Login> =
            cookies::cookie(headers, LOGIN).and_then(|text| self.logins.open(text));
        let login = login.filter(|login| now < login.until && !state.is_empty());
        let login = login.filter(|login| login.state == state).ok_or_else(|| {
            forbidden("this sign-in was not begun here, or took too long; begin again")
        })?;
        let token = self.issuer.redeem(code, &login.redirect_uri, &login.verifier).await?;
        let claims = self.issuer.verify(&token, &login.nonce, now).await?;
        let groups = claims.strings("groups").unwrap_or_default();
        if !groups.iter().any(|group| self.config.allowed_groups.contains(group)) {
            tracing::warn!(viewer = claims.name(), "viewer turned away: in no allowed group");
            return Err(forbidden("you are in none of the groups that may look"));
        }
        let session = Session {
            name: claims.name().to_owned(),
            clusters: self.scope(&claims),
            until: claims.exp,
        };
        let text = self.sessions.close(&session);
        let pieces = cookies::split(SESSION, &text).ok_or_else(|| {
            tracing::warn!(
                viewer = session.name,
                bytes = text.len(),
                "viewer has too many clusters"
            );
            Refusal::Forbidden(format!(
                "your token lists too many clusters: they fill {} bytes of cookies, and {} is the \
                 most; ask for a token with fewer, or for a dashboard without \
                 --cluster-scope-claim",
                text.len(),
                cookies::MOST_IN_ALL
            ))
        })?;
        let (scheme, _) = origin(headers)?;
        tracing::info!(viewer = session.name, "viewer signed in");
        let over = cookies::held(headers, SESSION, pieces.len());
        let ended = over.iter().map(String::as_str).chain([LOGIN]);
        let ended: Vec<String> = ended.map(|name| self.set(name, "", 0, scheme)).collect();
        let pieces = pieces.iter();
        let set = pieces.map(|(name, text)| self.set(name, text, session.until - now, scheme));
        Ok(Step {
            to: under(self.base.prefix(), local(&login.back)),
            cookies: set.chain(ended).collect(),
        })
    }

    /// The cookies that end the session of this browser.
    pub(super) fn end(&self, headers: &HeaderMap) -> Vec<String> {
        let scheme = origin(headers).map_or("http", |(scheme, _)| scheme);
        let mut held = cookies::held(headers, SESSION, 1);
        held.insert(0, SESSION.to_owned());
        held.iter().map(|name| self.set(name, "", 0, scheme)).collect()
    }

    /// A claim that is asked for and missing is a list of nothing.
    fn scope(&self, claims: &Claims) -> Option<BTreeSet<String>> {
        let claim = self.config.cluster_scope_claim.as_ref()?;
        Some(claims.strings(claim).unwrap_or_default().into_iter().collect())
    }

    fn set(&self, name: &str, value: &str, seconds: i64, scheme: &str) -> String {
        let secure = if scheme == "https" { "; Secure" } else { "" };
        let path = &self.base;
        format!("{name}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
    }
}

/// Parameters as a URL or a form writes them.
fn form(parameters: &[(&str, &str)]) -> String {
    let pair = |(name, value): &(&str, &str)| {
        format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC))
    };
    parameters.iter().map(pair).collect::<Vec<_>>().join("&")
}

/// A path of this dashboard, whatever was asked for: nobody is sent elsewhere.
fn local(path: &str) -> &str {
    let stays = path.starts_with('/') && !path[1..].starts_with(['/', '\\']);
    if stays && !path.bytes().any(|byte| byte.is_ascii_control()) { path } else { "/" }
}

/// The path with the base path before it, unless it is there: a proxy may have stripped it.
fn under(prefix: &str, path: &str) -> String {
    let inside = path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'));
    if inside { path.to_owned() } else { format!("{prefix}{path}") }
}

/// Scheme and origin as the browser has them. The issuer knows where it may send anybody.
fn origin(headers: &HeaderMap) -> Result<(&'static str, String), Refusal> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let forwarded =
        |name| text(HeaderName::from_static(name)).and_then(|all| all.split(',').next());
    let scheme = match forwarded("x-forwarded-proto").map(str::trim) {
        Some("https") => "https",
        _ => "http",
    };
    let host = forwarded("x-forwarded-host").map(str::trim).or_else(|| text(HOST));
    let host = host.filter(|host| !host.is_empty());
    let host = host.ok_or_else(|| Refusal::BadParameter("no Host header".to_owned()))?;
    Ok((scheme, format!("{scheme}://{host}")))
}

/// Something that nobody guesses.
fn secret() -> Result<String, Refusal> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| Refusal::Forbidden(error.to_string()))?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_path_is_there_once() {
        for (prefix, path, whole) in [
            ("", "/needs", "/needs"),
            ("/fleet", "/needs", "/fleet/needs"),
            ("/fleet", "/fleet/needs", "/fleet/needs"),
            ("/fleet", "/fleets", "/fleet/fleets"),
        ] {
            assert_eq!(under(prefix, path), whole);
        }
    }

    #[test]
    fn nobody_is_sent_elsewhere() {
        for path in ["/", "/needs?shard=a", "/a/b"] {
            assert_eq!(local(path), path);
        }
        for path in ["", "needs", "//evil.example", "/\\evil.example", "https://evil", "/a\nb"] {
            assert_eq!(local(path), "/", "{path:?}");
        }
    }
}
