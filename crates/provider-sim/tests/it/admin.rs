//! The experimenter's door.

use std::path::Path;

use bigfleet_provider_sim::{Fleet, admin};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::fleets::config;

/// Status and body.
pub(crate) async fn post(addr: &str, path: &str, body: &str) -> (u16, serde_json::Value) {
    post_as(addr, path, body, "application/json").await
}

async fn post_as(addr: &str, path: &str, body: &str, kind: &str) -> (u16, serde_json::Value) {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\
         Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    (status, serde_json::from_str(body).unwrap_or_default())
}

#[tokio::test]
async fn counts_or_the_field_that_is_wrong() {
    let fleet = Fleet::open(&config(""), Path::new("")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let server = tokio::spawn(async move {
        axum::serve(listener, admin::router(fleet.controls())).await.unwrap();
    });
    for (path, body, answer) in [
        ("/interrupt", r#"{"tier": "metal", "share": 0.5, "after": "1h"}"#, r#"{"hosts":1}"#),
        ("/interrupt", r#"{"tier": "metal", "notice": "rebalance"}"#, r#"{"hosts":2}"#),
        ("/kill", r#"{"zone": "z1"}"#, r#"{"hosts":1}"#),
        ("/kill", r#"{"zone": "z1"}"#, r#"{"hosts":0}"#),
        ("/kill", r#"{"machines": ["a-metal-001", "a-od-000"]}"#, r#"{"hosts":1}"#),
        ("/stock", r#"{"tier": "od", "zone": "z2", "count": 0}"#, r#"{"pools":1}"#),
        ("/freeze", r#"{"zone": "z2", "for": "2m", "answer": "refuse"}"#, r#"{"machines":5}"#),
        ("/freeze", r#"{"tier": "spot", "frozen": false}"#, r#"{"machines":2}"#),
    ] {
        let (status, got) = post(&addr, path, body).await;
        assert_eq!((status, got.to_string().as_str()), (200, answer), "{path} {body}");
    }
    for (path, body, field) in [
        ("/kill", "{}", "machines"),
        ("/kill", r#"{"machines": ["a-od-000", "nobody"]}"#, "machines[1]"),
        ("/kill", r#"{"tier": "gold"}"#, "tier"),
        ("/kill", r#"{"zone": "z9"}"#, "zone"),
        ("/kill", r#"{"cloud": "b", "zone": "z1"}"#, "cloud"),
        ("/kill", r#"{"zone": 5}"#, "zone"),
        ("/interrupt", r#"{"tier": "spot", "share": 2}"#, "share"),
        ("/interrupt", r#"{"tier": "spot", "after": "2"}"#, "after"),
        ("/stock", r#"{"tier": "od"}"#, "count"),
        ("/stock", r#"{"tier": "od", "count": 1, "refill_per_hour": -1}"#, "refill_per_hour"),
        ("/freeze", r#"{"tier": "od", "cold": true}"#, "cold"),
    ] {
        let (status, got) = post(&addr, path, body).await;
        let error = got["error"].as_str().unwrap();
        assert_eq!(status, 400, "{path} {body}");
        assert!(error.contains(field), "{path} {body}: {got}");
    }
    let (status, got) = post_as(&addr, "/kill", r#"{"zone": "z1"}"#, "text/plain").await;
    assert!(status == 400 && got["error"].as_str().unwrap().contains("Content-Type"), "{got}");
    server.abort();
}

#[tokio::test]
async fn the_door_is_on_loopback_only() {
    let fleet = Fleet::open(&config(""), Path::new("")).unwrap();
    for addr in [":9091", "0.0.0.0:9091", "[::]:9091", "192.0.2.1:9091", "example.org:9091"] {
        let error = admin::start(&addr.parse().unwrap(), fleet.controls()).await.unwrap_err();
        assert!(error.to_string().starts_with("--admin-addr: "), "{error}");
    }
    assert!(admin::start(&"0".parse().unwrap(), fleet.controls()).await.unwrap().is_none());
    for addr in ["127.0.0.1:0", "localhost:0"] {
        let served = admin::start(&addr.parse().unwrap(), fleet.controls()).await.unwrap();
        assert!(served.is_some(), "{addr}");
    }
}
