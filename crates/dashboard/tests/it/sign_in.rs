//! Who may look.

use std::collections::HashMap;

use axum::body::Body;
use bigfleet_dashboard::{AuthConfig, Config, OidcConfig, ProxyConfig, ROUTES};
use http::{HeaderName, Request, Response, StatusCode};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::{
    issuer::{CLIENT, Issuer, SECRET},
    rig::{Stubs, Viewed, loopback},
};

pub(crate) fn oidc(issuer: &Issuer) -> AuthConfig {
    AuthConfig::Oidc(OidcConfig {
        issuer: issuer.url.clone(),
        client_id: CLIENT.to_owned(),
        client_secret: SECRET.to_owned(),
        allowed_groups: vec!["sre".to_owned()],
        cluster_scope_claim: Some("clusters".to_owned()),
    })
}

fn location(response: &Response<Body>) -> String {
    response.headers()["location"].to_str().unwrap().to_owned()
}

/// `name=value` of every cookie that is set.
fn cookies(response: &Response<Body>) -> Vec<String> {
    let set = response.headers().get_all("set-cookie").iter();
    set.map(|cookie| cookie.to_str().unwrap().split(';').next().unwrap().to_owned()).collect()
}

async fn get(viewed: &Viewed, path: &str, cookie: &str) -> Response<Body> {
    let request = Request::get(path).header("host", "dash.example").header("cookie", cookie);
    viewed.response(request.body(Body::empty()).unwrap()).await
}

/// Goes off to the issuer; what the browser carries, and what the issuer is told.
async fn begin(viewed: &Viewed, issuer: &Issuer, claims: Value) -> (String, String) {
    begin_at(viewed, issuer, claims, "%2Fneeds%3Fshard%3Da").await
}

/// The same from another page.
async fn begin_at(viewed: &Viewed, issuer: &Issuer, claims: Value, page: &str) -> (String, String) {
    let response = get(viewed, &format!("/auth/login?return={page}"), "").await;
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    let to = location(&response);
    assert!(to.starts_with(&format!("{}/authorize?", issuer.url)), "{to}");
    let decode = |text: &str| percent_decode_str(text).decode_utf8().unwrap().into_owned();
    let pairs = to.split_once('?').unwrap().1.split('&').filter_map(|pair| pair.split_once('='));
    let told: HashMap<&str, String> = pairs.map(|(name, value)| (name, decode(value))).collect();
    assert_eq!(
        (told["response_type"].as_str(), told["code_challenge_method"].as_str()),
        ("code", "S256")
    );
    assert_eq!(told["redirect_uri"], "http://dash.example/auth/callback");
    issuer.known.send_modify(|known| {
        known.nonce.clone_from(&told["nonce"]);
        known.challenge.clone_from(&told["code_challenge"]);
        known.redirect_uri.clone_from(&told["redirect_uri"]);
        known.claims = claims;
    });
    (cookies(&response).remove(0), told["state"].clone())
}

/// A session of somebody with these claims.
pub(crate) async fn sign_in(viewed: &Viewed, issuer: &Issuer, claims: Value) -> Viewed {
    let (login, state) = begin(viewed, issuer, claims).await;
    let back = get(viewed, &format!("/auth/callback?code=the-code&state={state}"), &login).await;
    assert_eq!(back.status(), StatusCode::SEE_OTHER);
    assert_eq!(location(&back), "/needs?shard=a");
    viewed.with_cookie(&session(&back))
}

/// The cookies of a session, as a browser sends them.
fn session(response: &Response<Body>) -> String {
    let mut all = cookies(response);
    all.retain(|cookie| cookie.starts_with("bigfleet_session"));
    assert!(!all.is_empty());
    all.join("; ")
}

#[tokio::test]
async fn nobody_sees_anything_before_they_sign_in() {
    let (stubs, issuer) = (Stubs::start().await, Issuer::start().await);
    let viewed = Viewed::start(Config { auth: oidc(&issuer), ..stubs.config() }).await;
    for route in ROUTES.iter().filter(|route| route.path != "/health") {
        for mount in ["/api/v1", "/api"] {
            let answered = viewed.get(&format!("{mount}{}", route.example)).await;
            assert_eq!(answered.status, StatusCode::UNAUTHORIZED, "{}", route.path);
            assert_eq!(answered.body["login"], "auth/login");
        }
    }
    assert_eq!(viewed.get("/api/v1/health").await.status, StatusCode::OK);
    let page = get(&viewed, "/needs?shard=a", "").await;
    assert_eq!(location(&page), "/auth/login?return=%2Fneeds%3Fshard%3Da");
    let session =
        sign_in(&viewed, &issuer, json!({"groups": ["sre"], "clusters": ["prod-a"]})).await;
    let config = session.ok("/api/v1/config").await;
    assert_eq!(config["viewer"], json!({"name": "jane@example", "clusters": ["prod-a"]}));
    assert_eq!((&config["authMode"], &config["openToNetwork"]), (&"oidc".into(), &false.into()));
    assert!(session.get("/needs").await.text.contains("<base"));
    let forged = format!("{}x", session.cookie.clone().unwrap());
    let forged = viewed.with_cookie(&forged).get("/api/v1/config").await;
    assert_eq!(forged.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_sign_in_belongs_to_one_browser_and_one_group() {
    let issuer = Issuer::start().await;
    let viewed = Viewed::start(Config { auth: oidc(&issuer), ..loopback() }).await;
    let claims = json!({"groups": ["sre"]});
    let (login, state) = begin(&viewed, &issuer, claims.clone()).await;
    let callback = |code: &str, state: &str| format!("/auth/callback?code={code}&state={state}");
    for (path, cookie, status) in [
        (callback("the-code", &state), "", StatusCode::FORBIDDEN),
        (callback("the-code", "other"), login.as_str(), StatusCode::FORBIDDEN),
        (callback("the-code", ""), login.as_str(), StatusCode::FORBIDDEN),
        (callback("stolen", &state), login.as_str(), StatusCode::BAD_GATEWAY),
        ("/auth/callback?error=access_denied".to_owned(), login.as_str(), StatusCode::FORBIDDEN),
    ] {
        let refused = get(&viewed, &path, cookie).await;
        assert_eq!(refused.status(), status, "{path}");
        assert!(cookies(&refused).is_empty(), "{path}");
    }
    // Another browser's sign-in.
    let (other, _) = begin(&viewed, &issuer, claims).await;
    let crossed = get(&viewed, &callback("the-code", &state), &other).await;
    assert_eq!(crossed.status(), StatusCode::FORBIDDEN);
    let (login, state) = begin(&viewed, &issuer, json!({"groups": ["interns"]})).await;
    let stranger = get(&viewed, &callback("the-code", &state), &login).await;
    assert_eq!(stranger.status(), StatusCode::FORBIDDEN);
    for wrong in [
        json!({"groups": ["sre"], "nonce": "x"}),
        json!({"groups": ["sre"], "aud": "y"}),
        json!({"groups": ["sre"], "exp": 5}),
    ] {
        let (login, state) = begin(&viewed, &issuer, wrong.clone()).await;
        let refused = get(&viewed, &callback("the-code", &state), &login).await;
        assert_eq!(refused.status(), StatusCode::FORBIDDEN, "{wrong}");
    }
}

/// Names of clusters that nothing but themselves tells.
fn random(count: usize) -> Vec<String> {
    let name = |at: usize| {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &at.to_be_bytes());
        digest.as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
    };
    (0..count).map(name).collect()
}

#[tokio::test]
async fn a_scope_of_many_clusters_takes_several_cookies() {
    let issuer = Issuer::start().await;
    let viewed = Viewed::start(Config { auth: oidc(&issuer), ..loopback() }).await;
    let of = |clusters: &[String]| json!({"groups": ["sre"], "clusters": clusters});
    let alike: Vec<String> = (0..2_000).map(|at| format!("prod-eu-west-1-{at:04}")).collect();
    for (clusters, least) in [(alike, 1), (random(350), 2)] {
        let session = sign_in(&viewed, &issuer, of(&clusters)).await;
        let cookie = session.cookie.clone().unwrap();
        assert!(cookie.split("; ").all(|one| one.len() < 4_000), "a browser keeps it");
        assert!(cookie.split("; ").count() >= least, "{}", cookie.len());
        let config = session.ok("/api/v1/config").await;
        assert_eq!(config["viewer"]["clusters"].as_array().unwrap().len(), clusters.len());
        // Half a session is none.
        if least > 1 {
            let half = viewed.with_cookie(cookie.split("; ").next().unwrap());
            assert_eq!(half.get("/api/v1/config").await.status, StatusCode::UNAUTHORIZED);
            let request = Request::post("/auth/logout").body(Body::empty()).unwrap();
            let ended = cookies(&session.response(request).await);
            assert_eq!(ended.len(), cookie.split("; ").count(), "{ended:?}");
        }
    }
    let (login, state) = begin(&viewed, &issuer, of(&random(1_000))).await;
    let path = format!("/auth/callback?code=the-code&state={state}");
    let refused = viewed.with_cookie(&login).get(&path).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(refused.text.contains("too many clusters"), "{}", refused.text);
}

#[tokio::test]
async fn a_page_whose_address_is_too_long_is_not_come_back_to() {
    let issuer = Issuer::start().await;
    let viewed = Viewed::start(Config { auth: oidc(&issuer), ..loopback() }).await;
    for (page, back) in [
        (format!("%2Fneeds%3Fgroup%3D{}", random(20).concat()), None),
        (format!("%2Fneeds%3Fgroup%3D{}", random(300).concat()), Some("/")),
    ] {
        let claims = json!({"groups": ["sre"]});
        let (login, state) = begin_at(&viewed, &issuer, claims, &page).await;
        assert!(login.len() < 4_000, "a browser keeps it: {}", login.len());
        let callback = format!("/auth/callback?code=the-code&state={state}");
        let arrived = location(&get(&viewed, &callback, &login).await);
        let page = percent_decode_str(&page).decode_utf8().unwrap();
        assert_eq!(arrived, back.unwrap_or(&page));
    }
}

/// Two that share a client and its secret, or one before and after its flags were changed.
#[tokio::test]
async fn a_session_holds_under_the_rules_it_was_given_by() {
    let issuer = Issuer::start().await;
    let rules = || match oidc(&issuer) {
        AuthConfig::Oidc(rules) => rules,
        _ => unreachable!(),
    };
    let start = async |rules: OidcConfig| {
        Viewed::start(Config { auth: AuthConfig::Oidc(rules), ..loopback() }).await
    };
    let whole = OidcConfig {
        cluster_scope_claim: None,
        allowed_groups: vec!["sre".to_owned(), "dev".to_owned()],
        ..rules()
    };
    let claims = json!({"groups": ["dev", "sre"], "clusters": ["prod-a"]});
    let first = start(whole.clone()).await;
    let session = sign_in(&first, &issuer, claims).await;
    let cookie = session.cookie.clone().unwrap();
    assert_eq!(session.get("/api/v1/config").await.status, StatusCode::OK);
    let swapped = vec!["dev".to_owned(), "sre".to_owned()];
    for (other, status) in [
        (OidcConfig { allowed_groups: swapped, ..whole.clone() }, StatusCode::OK),
        (
            OidcConfig { cluster_scope_claim: Some("clusters".to_owned()), ..whole.clone() },
            StatusCode::UNAUTHORIZED,
        ),
        (
            OidcConfig { allowed_groups: vec!["sre".to_owned()], ..whole.clone() },
            StatusCode::UNAUTHORIZED,
        ),
        (OidcConfig { client_id: "other".to_owned(), ..whole }, StatusCode::UNAUTHORIZED),
    ] {
        let other = start(other).await.with_cookie(&cookie);
        assert_eq!(other.get("/api/v1/config").await.status, status);
    }
}

#[tokio::test]
async fn a_session_ends_when_it_is_ended() {
    let issuer = Issuer::start().await;
    let viewed = Viewed::start(Config { auth: oidc(&issuer), ..loopback() }).await;
    let session = sign_in(&viewed, &issuer, json!({"groups": ["sre"]})).await;
    let request = Request::post("/auth/logout").body(Body::empty()).unwrap();
    let ended = session.response(request).await;
    assert_eq!(cookies(&ended), ["bigfleet_session="]);
}

#[tokio::test]
async fn an_issuer_that_is_down_is_said() {
    let issuer = Issuer::start().await;
    let AuthConfig::Oidc(mut config) = oidc(&issuer) else { unreachable!() };
    config.issuer = "http://127.0.0.1:1".to_owned();
    let viewed = Viewed::start(Config { auth: AuthConfig::Oidc(config), ..loopback() }).await;
    let answered = viewed.get("/auth/login").await;
    assert_eq!(answered.status, StatusCode::BAD_GATEWAY);
    assert!(answered.body["error"].as_str().unwrap().contains("127.0.0.1:1"));
}

#[tokio::test]
async fn a_proxy_is_believed_from_where_it_is() {
    let proxy = |cidr: &str| {
        let header = HeaderName::from_static("x-user");
        AuthConfig::ProxyHeader(ProxyConfig { header, trusted: vec![cidr.parse().unwrap()] })
    };
    for (cidr, name, status) in [
        ("127.0.0.0/8", Some("jane"), StatusCode::OK),
        ("127.0.0.0/8", None, StatusCode::UNAUTHORIZED),
        ("10.0.0.0/8", Some("jane"), StatusCode::UNAUTHORIZED),
    ] {
        let viewed = Viewed::start(Config { auth: proxy(cidr), ..loopback() }).await;
        let mut request = Request::get("/api/v1/config");
        if let Some(name) = name {
            request = request.header("x-user", name);
        }
        let response = viewed.response(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), status, "{cidr} {name:?}");
    }
}
