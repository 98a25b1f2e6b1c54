//! The app's page, under any path.

use axum::body::Body;
use bigfleet_dashboard::Config;
use http::{Request, StatusCode};

use crate::rig::{Viewed, loopback};

#[tokio::test]
async fn the_base_path_works_stripped_and_unstripped() {
    let config = Config { base_path: "/fleet".parse().unwrap(), ..loopback() };
    let viewed = Viewed::start(config).await;
    for path in ["/fleet/", "/fleet/needs", "/", "/needs"] {
        let page = viewed.get(path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        assert!(page.text.contains("<base href=\"/fleet/\">"), "{path}: {}", page.text);
    }
    for path in ["/fleet/api/v1/config", "/fleet/api/config", "/api/v1/config"] {
        assert_eq!(viewed.ok(path).await["basePath"], "/fleet/");
    }
    for path in ["/healthz", "/readyz", "/metrics", "/fleet/api/health"] {
        let status = viewed.get(path).await.status;
        assert!(status == StatusCode::OK || path == "/readyz", "{path}: {status}");
    }
}

#[tokio::test]
async fn browsers_are_told_what_not_to_do() {
    let viewed = Viewed::start(loopback()).await;
    for path in ["/", "/api/v1/config", "/api/v1/needs?shard=x"] {
        let response = viewed.response(Request::get(path).body(Body::empty()).unwrap()).await;
        let policy = response.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("connect-src 'self'"));
        assert_eq!(response.headers()["x-content-type-options"], "nosniff", "{path}");
    }
}
