//! The guide's page, compiled in from `ui/dist`; a plain one where there is none.

use axum::{
    http::{
        StatusCode, Uri,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
};
use rust_embed::RustEmbed;

const GUIDE: &str = "guide.html";
const PLAIN: &str = include_str!("plain.html");

#[derive(RustEmbed)]
#[folder = "../../ui/dist"]
#[allow_missing = true]
struct Dist;

/// The page, or a file of it.
pub(crate) async fn page(uri: Uri) -> Response {
    let path = uri.path().trim_start_matches('/');
    if path.is_empty() || path == GUIDE {
        return match Dist::get(GUIDE) {
            Some(file) => send(GUIDE, file.data.into_owned()),
            None => send(GUIDE, PLAIN.as_bytes().to_vec()),
        };
    }
    match Dist::get(path) {
        Some(file) => send(path, file.data.into_owned()),
        None => (StatusCode::NOT_FOUND, "no such file").into_response(),
    }
}

fn send(path: &str, body: Vec<u8>) -> Response {
    let kind = match path.rsplit_once('.').map(|(_, kind)| kind) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json" | "map") => "application/json",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    };
    let cache = match path.starts_with("assets/") {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, cache)], body).into_response()
}
