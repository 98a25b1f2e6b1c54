//! An OpenID issuer.

use std::{collections::HashMap, sync::Arc};

use aws_lc_rs::{
    digest::{SHA256, digest},
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use axum::{
    Form, Json, Router,
    extract::State,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use base64::{Engine as _, prelude::*};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};

/// What the issuer knows of one sign-in.
#[derive(Clone, Default, Debug)]
pub(crate) struct Known {
    pub(crate) nonce: String,
    pub(crate) challenge: String,
    pub(crate) redirect_uri: String,
    /// Claims besides the usual ones.
    pub(crate) claims: Value,
}

pub(crate) struct Issuer {
    pub(crate) url: String,
    pub(crate) known: Arc<watch::Sender<Known>>,
}

struct Inside {
    url: String,
    key: EcdsaKeyPair,
    known: Arc<watch::Sender<Known>>,
}

pub(crate) const CLIENT: &str = "bigfleet";
pub(crate) const SECRET: &str = "a long secret: 100%";

impl Issuer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let known = Arc::new(watch::Sender::new(Known::default()));
        let inside = Inside {
            url: url.clone(),
            key: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap(),
            known: known.clone(),
        };
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(document))
            .route("/keys", get(keys))
            .route("/token", post(token))
            .with_state(Arc::new(inside));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, known }
    }
}

type Within = State<Arc<Inside>>;

async fn document(State(inside): Within) -> Json<Value> {
    let url = &inside.url;
    Json(json!({
        "issuer": url,
        "authorization_endpoint": format!("{url}/authorize"),
        "token_endpoint": format!("{url}/token"),
        "jwks_uri": format!("{url}/keys"),
    }))
}

async fn keys(State(inside): Within) -> Json<Value> {
    let point = inside.key.public_key().as_ref();
    let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    Json(json!({"keys": [
        {"kty": "oct", "kid": "odd"},
        {"kty": "EC", "crv": "P-256", "kid": "k", "use": "sig",
         "x": encode(&point[1..33]), "y": encode(&point[33..])},
    ]}))
}

/// Takes a code once its bearer has proven to have begun the sign-in.
async fn token(
    State(inside): Within,
    headers: HeaderMap,
    Form(form): Form<HashMap<String, String>>,
) -> Response {
    let known = inside.known.borrow().clone();
    let client = format!("{CLIENT}:a%20long%20secret%3A%20100%25");
    let basic = format!("Basic {}", BASE64_STANDARD.encode(client));
    let verifier = form["code_verifier"].as_bytes();
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier));
    let right = headers["authorization"] == basic.as_str()
        && form["grant_type"] == "authorization_code"
        && form["code"] == "the-code"
        && form["redirect_uri"] == known.redirect_uri
        && challenge == known.challenge;
    if !right {
        return (StatusCode::BAD_REQUEST, Json(json!({"error": "invalid_grant"}))).into_response();
    }
    let now = jiff::Timestamp::now().as_second();
    let mut claims = json!({"iss": inside.url, "aud": CLIENT, "sub": "s", "iat": now,
        "exp": now + 600, "nonce": known.nonce, "email": "jane@example"});
    claims.as_object_mut().unwrap().extend(known.claims.as_object().unwrap().clone());
    let encode = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", encode(&json!({"alg": "ES256", "kid": "k"})), encode(&claims));
    let signature = inside.key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
    let token = format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature.as_ref()));
    Json(json!({"id_token": token, "token_type": "Bearer", "access_token": "x"})).into_response()
}
