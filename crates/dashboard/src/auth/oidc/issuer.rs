//! The OpenID issuer: what it publishes, and its answer to a code.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use tokio::time::timeout;

use super::{
    OidcConfig, form,
    published::{Document, Looks, Published},
    token::{self, Claims, Expected, Wrong},
};
use crate::{Error, api::Refusal, source::web::Web};

/// Time for one question.
const WITHIN: Duration = Duration::from_secs(10);

/// What it publishes is looked at again after this time.
const FRESH: Duration = Duration::from_secs(3600);

/// For a key that nobody knows, no more often than this.
const KEYS_APART: Duration = Duration::from_secs(10);

/// The issuer.
#[derive(Debug)]
pub(super) struct Issuer {
    config: OidcConfig,
    web: Web,
    looks: Looks,
}

#[derive(Deserialize)]
struct Keys {
    /// Kinds that are not known here are of no use here.
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Tokens {
    id_token: String,
}

impl Issuer {
    /// Dials nobody yet.
    pub(super) fn new(config: &OidcConfig, web: Web) -> Result<Self, Error> {
        if !safe(&config.issuer) {
            return Err(Error::Issuer {
                issuer: config.issuer.clone(),
                problem: "write https://…; plain http only on this machine".to_owned(),
            });
        }
        Ok(Self { config: config.clone(), web, looks: Looks::default() })
    }

    /// Where viewers sign in.
    pub(super) async fn authorization_endpoint(&self) -> Result<String, Refusal> {
        Ok(self.published(FRESH).await?.document.authorization_endpoint.clone())
    }

    async fn published(&self, no_older: Duration) -> Result<Arc<Published>, Refusal> {
        let look = || look(self.config.issuer.clone(), self.web.clone());
        self.looks.get(no_older, look).await.map_err(|problem| self.failed(&problem))
    }

    /// The ID token for a code.
    pub(super) async fn redeem(
        &self,
        code: &str,
        redirect_uri: &str,
        verifier: &str,
    ) -> Result<String, Refusal> {
        let published = self.published(FRESH).await?;
        let endpoint = &published.document.token_endpoint;
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let client = [&*self.config.client_id, &*self.config.client_secret].map(encode);
        let authorization = format!("Basic {}", BASE64_STANDARD.encode(client.join(":")));
        let body = form(&[
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("code_verifier", verifier),
        ]);
        let answer = timeout(WITHIN, self.web.post_form(endpoint, Some(&authorization), body));
        let answer = answer.await.unwrap_or_else(|_| Err("no answer in time".to_owned()));
        let answer = answer.map_err(|problem| self.failed(&problem))?;
        let tokens: Tokens = serde_json::from_slice(&answer)
            .map_err(|_| self.failed("its answer to the code has no id_token"))?;
        Ok(tokens.id_token)
    }

    /// What a token says, if it is this issuer's.
    pub(super) async fn verify(
        &self,
        token: &str,
        nonce: &str,
        now: i64,
    ) -> Result<Claims, Refusal> {
        let expected =
            Expected { issuer: &self.config.issuer, client_id: &self.config.client_id, nonce, now };
        let mut verified = token::verify(token, &self.published(FRESH).await?.keys, &expected);
        if let Err(Wrong::UnknownKey) = verified {
            verified = token::verify(token, &self.published(KEYS_APART).await?.keys, &expected);
        }
        verified.map_err(|wrong| {
            let why = match wrong {
                Wrong::UnknownKey => "it is signed with an unknown key",
                Wrong::Refused(why) => why,
            };
            Refusal::Forbidden(format!("the issuer's token is not taken: {why}"))
        })
    }

    fn failed(&self, problem: &str) -> Refusal {
        Refusal::Issuer(format!("{}: {problem}", self.config.issuer))
    }
}

/// What it publishes now.
async fn look(issuer: String, web: Web) -> Result<Published, String> {
    let uri = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
    let document = web.get(&uri, "application/json").await?;
    let document: Document =
        serde_json::from_slice(&document).map_err(|error| error.to_string())?;
    if document.issuer != issuer {
        return Err(format!("it calls itself {:?}", document.issuer));
    }
    let endpoints =
        [&document.authorization_endpoint, &document.token_endpoint, &document.jwks_uri];
    if let Some(endpoint) = endpoints.into_iter().find(|endpoint| !safe(endpoint)) {
        return Err(format!("it publishes {endpoint:?}, which is not https"));
    }
    let keys = web.get(&document.jwks_uri, "application/json").await?;
    let keys: Keys = serde_json::from_slice(&keys).map_err(|error| error.to_string())?;
    let keys = keys.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok());
    Ok(Published { document, keys: keys.collect() })
}

/// Secrets travel by https, or stay on this machine.
fn safe(url: &str) -> bool {
    let Ok(uri) = url.parse::<http::Uri>() else { return false };
    match (uri.scheme_str(), uri.host()) {
        (Some("https"), Some(_)) => true,
        (Some("http"), Some(host)) => matches!(host, "127.0.0.1" | "localhost" | "[::1]"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_travel_by_https() {
        for url in ["https://a.example/x", "http://127.0.0.1:5556", "http://localhost/dex"] {
            assert!(safe(url), "{url}");
        }
        for url in ["http://a.example", "ftp://a", "a.example", "", "http://localhost.evil"] {
            assert!(!safe(url), "{url}");
        }
    }
}
