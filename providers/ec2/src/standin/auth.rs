//! Who calls: the signature is computed again from what arrived.

use axum::http::HeaderMap;

use super::credentials;
use crate::sign::{self, Request, Scope};

/// Whether this POST of `/` is signed by the one who may.
pub(super) fn is_signed(headers: &HeaderMap, path: &str, body: &[u8]) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(line) = text("authorization") else { return false };
    let field = |name: &str| {
        let rest = line.split_once(&format!("{name}=")).map(|(_, rest)| rest)?;
        rest.split(',').next()
    };
    let (Some(scope), Some(names)) = (field("Credential"), field("SignedHeaders")) else {
        return false;
    };
    let parts: Vec<_> = scope.split('/').collect();
    let [_, _, region, service, _] = parts[..] else { return false };
    let scope = Scope { region: region.to_owned(), service: service.to_owned() };
    let signed = names.split(';').map(|name| {
        let value = text(name).unwrap_or_default();
        (name.to_owned(), value.trim().to_owned())
    });
    let headers: Vec<_> = signed.collect();
    let request = Request { method: "POST", path, query: "", headers: &headers, body };
    let stamp = text("x-amz-date").unwrap_or_default();
    sign::authorization(&credentials(), &scope, stamp, &request) == line
}
