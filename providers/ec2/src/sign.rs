//! Signature Version 4, by hand: two hashes and a canonical text, against the published
//! test vectors. The stand-in checks signatures with the same function.

use aws_lc_rs::{digest, hmac};
use jiff::{Timestamp, tz::TimeZone};

/// Who calls. Never printed: its `Debug` is a placeholder, and it has no `Display`.
#[derive(Clone)]
pub struct Credentials {
    /// Sent with every call.
    pub access_key: String,
    /// Never sent.
    pub secret_key: String,
    /// Of a role; empty for a user.
    pub session_token: String,
}

impl Credentials {
    /// From `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`.
    #[must_use]
    pub fn from_environment() -> Option<Self> {
        let read = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Some(Self {
            access_key: read("AWS_ACCESS_KEY_ID")?,
            secret_key: read("AWS_SECRET_ACCESS_KEY")?,
            session_token: read("AWS_SESSION_TOKEN").unwrap_or_default(),
        })
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials(..)")
    }
}

/// What the key of a day is derived for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// For example `eu-west-1`.
    pub region: String,
    /// For example `ec2`.
    pub service: String,
}

/// One request as it is signed.
#[derive(Debug)]
pub struct Request<'a> {
    /// `POST` or `GET`.
    pub method: &'a str,
    /// Absolute, encoded.
    pub path: &'a str,
    /// Encoded and sorted; empty for none.
    pub query: &'a str,
    /// Names in lower case, sorted; values trimmed.
    pub headers: &'a [(String, String)],
    /// As sent.
    pub body: &'a [u8],
}

/// `20150830T123600Z`, as `x-amz-date` wants it.
#[must_use]
pub fn stamp(now: Timestamp) -> String {
    let utc = now.to_zoned(TimeZone::UTC);
    format!(
        "{:04}{:02}{:02}T{:02}{:02}{:02}Z",
        utc.year(),
        utc.month(),
        utc.day(),
        utc.hour(),
        utc.minute(),
        utc.second()
    )
}

/// The value of the `authorization` header; `stamp` must be the signed `x-amz-date`.
#[must_use]
pub fn authorization(
    credentials: &Credentials,
    scope: &Scope,
    stamp: &str,
    request: &Request<'_>,
) -> String {
    let day = stamp.get(..8).unwrap_or(stamp);
    let scope_text = format!("{day}/{}/{}/aws4_request", scope.region, scope.service);
    let signed = signed_headers(request);
    let canonical = canonical(request, &signed);
    let text = format!(
        "AWS4-HMAC-SHA256\n{stamp}\n{scope_text}\n{}",
        hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref())
    );
    let mut key = format!("AWS4{}", credentials.secret_key).into_bytes();
    for part in [day, &scope.region, &scope.service, "aws4_request"] {
        key = mac(&key, part.as_bytes());
    }
    let signature = hex(&mac(&key, text.as_bytes()));
    format!(
        "AWS4-HMAC-SHA256 Credential={}/{scope_text}, SignedHeaders={signed}, \
         Signature={signature}",
        credentials.access_key
    )
}

fn signed_headers(request: &Request<'_>) -> String {
    let names: Vec<_> = request.headers.iter().map(|(name, _)| name.as_str()).collect();
    names.join(";")
}

fn canonical(request: &Request<'_>, signed: &str) -> String {
    let mut headers = String::new();
    for (name, value) in request.headers {
        headers.push_str(name);
        headers.push(':');
        headers.push_str(value);
        headers.push('\n');
    }
    let body = hex(digest::digest(&digest::SHA256, request.body).as_ref());
    let Request { method, path, query, .. } = request;
    format!("{method}\n{path}\n{query}\n{headers}\n{signed}\n{body}")
}

fn mac(key: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Credentials {
        Credentials {
            access_key: "AKIDEXAMPLE".into(),
            secret_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
            session_token: String::new(),
        }
    }

    fn signature(method: &str, query: &str, extra: &[(&str, &str)], body: &str) -> String {
        let mut headers: Vec<_> =
            extra.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        headers.push(("host".into(), "example.amazonaws.com".into()));
        headers.push(("x-amz-date".into(), "20150830T123600Z".into()));
        let request =
            Request { method, path: "/", query, headers: &headers, body: body.as_bytes() };
        let scope = Scope { region: "us-east-1".into(), service: "service".into() };
        let line = authorization(&example(), &scope, "20150830T123600Z", &request);
        line.rsplit('=').next().unwrap().to_owned()
    }

    /// The published suite: get-vanilla, post-vanilla, get-vanilla-query-order-key-case,
    /// post-x-www-form-urlencoded.
    #[test]
    fn published_vectors() {
        assert_eq!(
            signature("GET", "", &[], ""),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
        );
        assert_eq!(
            signature("POST", "", &[], ""),
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"
        );
        assert_eq!(
            signature("GET", "Param1=value1&Param2=value2", &[], ""),
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"
        );
        let form = [("content-type", "application/x-www-form-urlencoded")];
        assert_eq!(
            signature("POST", "", &form, "Param1=value1"),
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"
        );
    }

    #[test]
    fn a_moment_as_the_header_wants_it() {
        assert_eq!(stamp("2015-08-30T12:36:00Z".parse().unwrap()), "20150830T123600Z");
    }

    #[test]
    fn credentials_do_not_print() {
        assert_eq!(format!("{:?}", example()), "Credentials(..)");
    }
}
