//! The guide's page, compiled in.

use axum::{extract::Request, http::StatusCode, response::Response};
use bigfleet_dashboard::Assets;

use super::refuse;

/// The page, or a file of it; what is no call is not answered with a page.
pub(crate) fn page(assets: &Assets, request: &Request) -> Response {
    let path = request.uri().path();
    match path.starts_with("/api/") {
        true => refuse(StatusCode::NOT_FOUND, &format!("there is no call {path}")),
        false => assets.serve(path, request.headers()),
    }
}
