//! Tokens of pages, as viewers carry them. A shard's own token holds the last machine that was
//! looked at and how many there are in all, and either may be of clusters that the viewer may not
//! see: where viewers have scopes, it travels sealed.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};

use super::{AuthConfig, key};
use crate::Error;

/// Writes and reads tokens.
#[derive(Debug)]
pub(crate) struct Pages(Option<RandomizedNonceKey>);

impl Pages {
    /// As configured. A token of one replica is read by each of them.
    pub(crate) fn new(config: &AuthConfig) -> Result<Self, Error> {
        let AuthConfig::Oidc(config) = config else { return Ok(Self(None)) };
        let key = RandomizedNonceKey::new(&AES_256_GCM, key::derive(config, "pages").as_ref());
        key.map(Some).map(Self).map_err(|_| Error::System("no key for tokens of pages".to_owned()))
    }

    /// What a viewer gets.
    pub(crate) fn close(&self, token: &[u8]) -> String {
        let Some(key) = &self.0 else { return BASE64_URL_SAFE_NO_PAD.encode(token) };
        let mut sealed = token.to_vec();
        match key.seal_in_place_append_tag(Aad::empty(), &mut sealed) {
            Ok(nonce) => {
                BASE64_URL_SAFE_NO_PAD.encode([nonce.as_ref().as_slice(), &sealed].concat())
            }
            // Opens to nothing, and the next page is refused.
            Err(_) => "-".to_owned(),
        }
    }

    /// What the shard gave, if it was closed here; the empty token is that of the first page.
    pub(crate) fn open(&self, text: &str) -> Option<Vec<u8>> {
        let mut bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        let Some(key) = self.0.as_ref().filter(|_| !text.is_empty()) else { return Some(bytes) };
        let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        key.open_in_place(nonce, Aad::empty(), sealed).ok().map(|token| token.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::OidcConfig;

    fn sealed(secret: &str) -> Pages {
        Pages::new(&AuthConfig::Oidc(OidcConfig {
            issuer: String::new(),
            client_id: String::new(),
            client_secret: secret.to_owned(),
            allowed_groups: Vec::new(),
            cluster_scope_claim: None,
        }))
        .unwrap()
    }

    #[test]
    fn tokens_come_back_as_they_went() {
        for pages in [Pages::new(&AuthConfig::None).unwrap(), sealed("s")] {
            for token in [&b""[..], b"\0\0\0\x07m-1"] {
                assert_eq!(pages.open(&pages.close(token)).as_deref(), Some(token));
            }
            assert_eq!(pages.open(""), Some(Vec::new()));
            assert_eq!(pages.open("***"), None);
        }
        assert_eq!(sealed("s").open(&sealed("s").close(b"m-1")).as_deref(), Some(&b"m-1"[..]));
    }

    #[test]
    fn what_is_sealed_is_neither_read_nor_written_elsewhere() {
        let text = sealed("s").close(b"m-of-others");
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(&text).unwrap();
        assert!(!bytes.windows(4).any(|some| some == b"m-of"), "{bytes:?}");
        assert_eq!(sealed("other").open(&text), None);
        let own = BASE64_URL_SAFE_NO_PAD.encode(b"\0\0\0\x07m-1");
        assert_eq!(sealed("s").open(&own), None);
        assert_eq!(sealed("s").open("-"), None);
    }
}
