//! Cookies that only this dashboard can write.

use std::io::{Read as _, Write as _};

use aws_lc_rs::hmac::{self, HMAC_SHA256, Key};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};
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

    /// The value, signed; compressed, for ids of clusters are alike and cookies are small.
    pub(super) fn close(&self, value: &impl Serialize) -> String {
        let payload = compress(&serde_json::to_vec(value).unwrap_or_default());
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
        // Nobody else wrote this: it is as large as it was.
        let mut json = Vec::new();
        ZlibDecoder::new(payload.as_slice()).read_to_end(&mut json).ok()?;
        serde_json::from_slice(&json).ok()
    }
}

fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    // What goes into memory does not fail; nothing at all would open to nothing.
    encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_default()
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
        let forged = BASE64_URL_SAFE_NO_PAD.encode(compress(br#"["root",7]"#));
        let tag = text.split_once('.').unwrap().1;
        assert_eq!(seal.open::<(String, i32)>(&format!("{forged}.{tag}")), None);
        for broken in ["", ".", "a.b", &text[..text.len() - 2]] {
            assert_eq!(seal.open::<(String, i32)>(broken), None, "{broken}");
        }
    }
}
