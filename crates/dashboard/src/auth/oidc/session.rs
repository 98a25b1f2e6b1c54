//! Cookies that only this dashboard can write.

use aws_lc_rs::hmac::{self, HMAC_SHA256, Key};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use http::{HeaderMap, header::COOKIE};
use serde::{Serialize, de::DeserializeOwned};

use super::{super::key, OidcConfig};

/// Signs and checks.
#[derive(Debug)]
pub(super) struct Seal(Key);

impl Seal {
    /// For one kind of cookie: one of another kind does not open. It holds at each replica.
    pub(super) fn new(config: &OidcConfig, kind: &str) -> Self {
        Self(Key::new(HMAC_SHA256, key::derive(config, kind).as_ref()))
    }

    /// The value, signed.
    pub(super) fn close(&self, value: &impl Serialize) -> String {
        let payload = serde_json::to_vec(value).unwrap_or_default();
        let tag = hmac::sign(&self.0, &payload);
        let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        format!("{}.{}", encode(&payload), encode(tag.as_ref()))
    }

    /// The value, if it was signed here.
    pub(super) fn open<T: DeserializeOwned>(&self, text: &str) -> Option<T> {
        let (payload, tag) = text.split_once('.')?;
        let payload = BASE64_URL_SAFE_NO_PAD.decode(payload).ok()?;
        let tag = BASE64_URL_SAFE_NO_PAD.decode(tag).ok()?;
        hmac::verify(&self.0, &payload, &tag).ok()?;
        serde_json::from_slice(&payload).ok()
    }
}

/// The cookie of this name.
pub(super) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        all.flat_map(|all| all.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(found, _)| *found == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(secret: &str, kind: &str) -> Seal {
        let config = OidcConfig {
            issuer: String::new(),
            client_id: String::new(),
            client_secret: secret.to_owned(),
            allowed_groups: Vec::new(),
            cluster_scope_claim: None,
        };
        Seal::new(&config, kind)
    }

    #[test]
    fn a_changed_cookie_is_none() {
        let seal_of = seal;
        let seal = seal_of("secret", "session");
        let text = seal.close(&("jane", 7));
        assert_eq!(seal.open::<(String, i32)>(&text), Some(("jane".to_owned(), 7)));
        for other in [seal_of("other", "session"), seal_of("secret", "login")] {
            assert_eq!(other.open::<(String, i32)>(&text), None);
        }
        let forged = BASE64_URL_SAFE_NO_PAD.encode(br#"["root",7]"#);
        let tag = text.split_once('.').unwrap().1;
        assert_eq!(seal.open::<(String, i32)>(&format!("{forged}.{tag}")), None);
        for broken in ["", ".", "a.b", &text[..text.len() - 2]] {
            assert_eq!(seal.open::<(String, i32)>(broken), None, "{broken}");
        }
    }

    #[test]
    fn cookies_are_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, "a=1; session=x=y; b=2".parse().unwrap());
        assert_eq!((cookie(&headers, "session"), cookie(&headers, "c")), (Some("x=y"), None));
    }
}
