//! ID tokens: signature, then claims. Pure.

use std::collections::BTreeMap;

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, RSA_PKCS1_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::Deserialize;
use serde_json::Value;

/// Seconds that clocks may differ.
const SKEW: i64 = 60;

/// A key of the issuer.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Jwk {
    kty: String,
    #[serde(default)]
    pub(super) kid: String,
    #[serde(default, rename = "use")]
    usage: String,
    #[serde(default)]
    n: String,
    #[serde(default)]
    e: String,
    #[serde(default)]
    crv: String,
    #[serde(default)]
    x: String,
    #[serde(default)]
    y: String,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: String,
}

/// What a token says.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    iss: String,
    aud: OneOrMany,
    sub: String,
    /// When it ends, in unix seconds.
    pub(super) exp: i64,
    nbf: Option<i64>,
    iat: Option<i64>,
    nonce: Option<String>,
    azp: Option<String>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// What a token must say.
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
    pub(super) nonce: &'a str,
    pub(super) now: i64,
}

impl Claims {
    /// What viewers are called.
    pub(super) fn name(&self) -> &str {
        let known = ["email", "preferred_username", "name"];
        let known = known.iter().find_map(|claim| self.others.get(*claim)?.as_str());
        known.filter(|name| !name.is_empty()).unwrap_or(&self.sub)
    }

    /// A claim that lists texts; one text is a list of one.
    pub(super) fn strings(&self, claim: &str) -> Option<Vec<String>> {
        match self.others.get(claim)? {
            Value::String(one) => Some(vec![one.clone()]),
            Value::Array(all) => {
                Some(all.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect())
            }
            _ => None,
        }
    }

    fn check(&self, expected: &Expected<'_>) -> Result<(), &'static str> {
        let audience = match &self.aud {
            OneOrMany::One(one) => std::slice::from_ref(one),
            OneOrMany::Many(many) => many,
        };
        if self.iss != expected.issuer {
            return Err("it is of another issuer");
        }
        if !audience.iter().any(|one| one == expected.client_id) {
            return Err("it is for somebody else");
        }
        let party = self.azp.as_deref();
        if party.map_or(audience.len() > 1, |party| party != expected.client_id) {
            return Err("it was asked for by somebody else");
        }
        if self.exp <= expected.now {
            return Err("it has expired");
        }
        let early = |at: Option<i64>| at.is_some_and(|at| at > expected.now + SKEW);
        if early(self.nbf) || early(self.iat) {
            return Err("it is not valid yet: compare the clocks");
        }
        if self.nonce.as_deref() != Some(expected.nonce) {
            return Err("it belongs to another sign-in");
        }
        Ok(())
    }
}

/// Why a token is not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// The issuer may have new keys.
    UnknownKey,
    /// For good.
    Refused(&'static str),
}

/// The claims of a token that is signed with one of the keys and says what it must.
pub(super) fn verify(token: &str, keys: &[Jwk], expected: &Expected<'_>) -> Result<Claims, Wrong> {
    let refused = |_| Wrong::Refused("it is not a signed token");
    let mut parts = token.split('.');
    let (Some(header), Some(payload), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Wrong::Refused("it is not a signed token"));
    };
    let signed = &token.as_bytes()[..header.len() + 1 + payload.len()];
    let decode = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| ());
    let header: Header = serde_json::from_slice(&decode(header).map_err(refused)?)
        .map_err(|_| Wrong::Refused("its header is not understood"))?;
    let signature = decode(signature).map_err(refused)?;
    let usable = |key: &&Jwk| {
        (key.usage.is_empty() || key.usage == "sig")
            && (header.kid.is_empty() || key.kid == header.kid)
    };
    let mut candidates = keys.iter().filter(usable).peekable();
    if candidates.peek().is_none() {
        return Err(Wrong::UnknownKey);
    }
    if !candidates.any(|key| key.verifies(&header.alg, signed, &signature)) {
        return Err(Wrong::Refused("its signature is wrong"));
    }
    let claims: Claims = serde_json::from_slice(&decode(payload).map_err(refused)?)
        .map_err(|_| Wrong::Refused("its claims are not understood"))?;
    claims.check(expected).map_err(Wrong::Refused)?;
    Ok(claims)
}

impl Jwk {
    /// Whether this key made the signature. The key says what kind it is, so that no token can
    /// choose to be checked otherwise.
    fn verifies(&self, alg: &str, signed: &[u8], signature: &[u8]) -> bool {
        let decode = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text).unwrap_or_default();
        match (self.kty.as_str(), self.crv.as_str(), alg) {
            ("RSA", _, "RS256" | "PS256") => {
                let key = RsaPublicKeyComponents { n: decode(&self.n), e: decode(&self.e) };
                let scheme = match alg {
                    "RS256" => &RSA_PKCS1_2048_8192_SHA256,
                    _ => &RSA_PSS_2048_8192_SHA256,
                };
                key.verify(scheme, signed, signature).is_ok()
            }
            ("EC", "P-256", "ES256") | ("EC", "P-384", "ES384") => {
                let point = [&[4][..], &decode(&self.x), &decode(&self.y)].concat();
                let scheme = match alg {
                    "ES256" => &ECDSA_P256_SHA256_FIXED,
                    _ => &ECDSA_P384_SHA384_FIXED,
                };
                UnparsedPublicKey::new(scheme, point).verify(signed, signature).is_ok()
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::{
        rand::SystemRandom,
        signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
    };
    use serde_json::json;

    use super::*;

    struct Signer(EcdsaKeyPair);

    impl Signer {
        fn new() -> Self {
            Self(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
        }

        fn jwk(&self) -> Jwk {
            let point = self.0.public_key().as_ref();
            let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
            let (x, y) = (encode(&point[1..33]), encode(&point[33..]));
            let key =
                json!({"kty": "EC", "crv": "P-256", "kid": "k", "use": "sig", "x": x, "y": y});
            serde_json::from_value(key).unwrap()
        }

        fn token(&self, header: &Value, claims: &Value) -> String {
            let encode = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
            let signed = format!("{}.{}", encode(header), encode(claims));
            let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
            format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature.as_ref()))
        }
    }

    const EXPECTED: Expected<'static> =
        Expected { issuer: "https://i", client_id: "me", nonce: "n", now: 1_000 };

    fn good() -> Value {
        json!({"iss": "https://i", "aud": "me", "sub": "s", "exp": 2_000, "nonce": "n",
            "email": "jane@example", "groups": ["sre"]})
    }

    #[test]
    fn a_good_token_is_taken() {
        let signer = Signer::new();
        let token = signer.token(&json!({"alg": "ES256", "kid": "k"}), &good());
        let claims = verify(&token, &[signer.jwk()], &EXPECTED).unwrap();
        assert_eq!(
            (claims.name(), claims.strings("groups")),
            ("jane@example", Some(vec!["sre".to_owned()]))
        );
    }

    #[test]
    fn every_other_token_is_not() {
        let signer = Signer::new();
        let header = json!({"alg": "ES256", "kid": "k"});
        for (claim, value) in [
            ("iss", json!("https://j")),
            ("aud", json!("you")),
            ("aud", json!(["me", "you"])),
            ("azp", json!("you")),
            ("exp", json!(1_000)),
            ("nbf", json!(1_061)),
            ("iat", json!(5_000)),
            ("nonce", json!("m")),
            ("nonce", json!(null)),
            ("exp", json!("soon")),
        ] {
            let mut claims = good();
            claims[claim] = value.clone();
            let token = signer.token(&header, &claims);
            let wrong = verify(&token, &[signer.jwk()], &EXPECTED);
            assert!(matches!(wrong, Err(Wrong::Refused(_))), "{claim} {value}: {wrong:?}");
        }
    }

    #[test]
    fn signatures_are_checked_by_the_kind_of_the_key() {
        let (signer, other) = (Signer::new(), Signer::new());
        let keys = [signer.jwk()];
        let taken = |token: &str| verify(token, &keys, &EXPECTED).map(|_| ());
        let by_other = other.token(&json!({"alg": "ES256", "kid": "k"}), &good());
        assert_eq!(taken(&by_other), Err(Wrong::Refused("its signature is wrong")));
        for alg in ["none", "HS256", "RS256", "ES384", ""] {
            let token = signer.token(&json!({"alg": alg, "kid": "k"}), &good());
            assert_eq!(taken(&token), Err(Wrong::Refused("its signature is wrong")), "{alg}");
        }
        let unknown = signer.token(&json!({"alg": "ES256", "kid": "new"}), &good());
        assert_eq!(taken(&unknown), Err(Wrong::UnknownKey));
        let token = signer.token(&json!({"alg": "ES256", "kid": "k"}), &good());
        let (signed, _) = token.rsplit_once('.').unwrap();
        for broken in [signed, &format!("{signed}."), "", "a.b.c", &format!("{token}.x")] {
            assert!(taken(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_key_for_encryption_signs_nothing() {
        let signer = Signer::new();
        let mut key = signer.jwk();
        key.usage = "enc".to_owned();
        let token = signer.token(&json!({"alg": "ES256", "kid": "k"}), &good());
        assert_eq!(verify(&token, &[key], &EXPECTED).map(|_| ()), Err(Wrong::UnknownKey));
    }
}
