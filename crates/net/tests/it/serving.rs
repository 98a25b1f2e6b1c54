//! The server under load, under attack and at its end.

use std::time::Duration;

use bigfleet_net::{
    grpc::{ConnectionLimits, MAX_MESSAGE_BYTES},
    message_limits,
    tls::Security,
};
use bigfleet_testkit::pki::Pki;
use bigfleet_wire::v1alpha1::{
    ConfigureRequest, DrainRequest, ListFilter, shard_client::ShardClient,
};
use http_body_util::Full;
use hyper::{body::Bytes, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::rig::{PATIENCE, Rig, mtls, nobody_listens, soon};

#[tokio::test]
async fn messages_far_beyond_the_library_default_pass_both_ways() {
    assert_eq!(MAX_MESSAGE_BYTES, 268_435_456);
    let pki = Pki::new().unwrap();
    let security = mtls(&pki.material(&["bigfleet://shard/s"]).unwrap());
    let rig = Rig::start(security.clone()).await;
    let mut client = rig.client(&security).await;
    let bootstrap_blob = vec![b'x'; 9 << 20];
    let request = ConfigureRequest { bootstrap_blob: bootstrap_blob.clone(), ..Default::default() };
    let answer = soon(client.configure(request)).await.unwrap().into_inner();
    assert_eq!(answer.operation_id.into_bytes(), bootstrap_blob);
}

#[tokio::test]
async fn stalled_handshakes_block_nobody() {
    let pki = Pki::new().unwrap();
    let security = mtls(&pki.material(&["bigfleet://shard/s"]).unwrap());
    let rig = Rig::start(security.clone()).await;
    let mut stalled = Vec::new();
    for _ in 0..50 {
        stalled.push(TcpStream::connect(rig.addr).await.unwrap());
    }
    rig.whoami(&security).await.unwrap();
}

#[tokio::test]
async fn a_stalled_handshake_is_dropped_and_frees_its_place() {
    let pki = Pki::new().unwrap();
    let security = mtls(&pki.material(&["bigfleet://shard/s"]).unwrap());
    let limits = ConnectionLimits {
        handshake_timeout: Duration::from_millis(200),
        handshakes: 1,
        ..ConnectionLimits::default()
    };
    let rig = Rig::start_with(security.clone(), limits).await;
    let mut stalled = TcpStream::connect(rig.addr).await.unwrap();
    // A slow machine may need several handshakes to make one in time.
    soon(async { while rig.whoami(&security).await.is_err() {} }).await;
    assert_eq!(soon(stalled.read(&mut [0])).await.unwrap(), 0, "closed by the server");
}

/// A peer that has gone without a word, its last frames being preface and
/// SETTINGS.
#[tokio::test]
async fn a_connection_that_answers_no_ping_is_dropped() {
    let limits = ConnectionLimits {
        keepalive_interval: Duration::from_millis(50),
        keepalive_timeout: Duration::from_millis(50),
        ..ConnectionLimits::default()
    };
    let rig = Rig::start_with(Security::Plaintext, limits).await;
    let mut stream = TcpStream::connect(rig.addr).await.unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let mut frames = Vec::new();
    soon(stream.read_to_end(&mut frames)).await.unwrap();
    assert!(!frames.is_empty());
}

#[tokio::test]
async fn a_stop_lets_calls_finish() {
    // Longer than the test has patience: nothing is cut here.
    let limits = ConnectionLimits { drain: PATIENCE * 2, ..ConnectionLimits::default() };
    let rig = Rig::start_with(Security::Plaintext, limits).await;
    let mut client = rig.client(&Security::Plaintext).await;
    let call = tokio::spawn(async move { client.list(ListFilter::default()).await });
    soon(rig.waiting.notified()).await;
    rig.shutdown.request();
    soon(rig.closing.notified()).await;
    rig.release.notify_one();
    soon(call).await.unwrap().unwrap();
    soon(rig.served).await.unwrap().unwrap();
    nobody_listens(rig.addr).await;
}

#[tokio::test]
async fn a_stop_ends_although_calls_and_streams_do_not() {
    let limits =
        ConnectionLimits { drain: Duration::from_millis(100), ..ConnectionLimits::default() };
    let rig = Rig::start_with(Security::Plaintext, limits).await;
    let mut client = rig.client(&Security::Plaintext).await;
    let call = tokio::spawn(async move { client.drain(DrainRequest::default()).await });
    let channel = rig.channel(&Security::Plaintext).await.unwrap();
    let mut shard = message_limits!(ShardClient::new(channel));
    let mut session = soon(shard.session(tokio_stream::pending())).await.unwrap().into_inner();
    soon(session.message()).await.unwrap().expect("the greeting");
    soon(rig.stuck.notified()).await;
    rig.shutdown.request();
    soon(rig.served).await.unwrap().unwrap();
    soon(call).await.unwrap().unwrap_err();
    soon(session.message()).await.unwrap_err();
}

/// As when another part of the process fails and everything is dropped.
#[tokio::test]
async fn an_abandoned_server_leaves_no_connection_behind() {
    let rig = Rig::start(Security::Plaintext).await;
    let channel = rig.channel(&Security::Plaintext).await.unwrap();
    let mut shard = message_limits!(ShardClient::new(channel));
    let mut session = soon(shard.session(tokio_stream::pending())).await.unwrap().into_inner();
    soon(session.message()).await.unwrap().expect("the greeting");
    rig.served.abort();
    soon(session.message()).await.unwrap_err();
}

/// A client that leaves its deadline to the server.
#[tokio::test]
async fn the_callers_deadline_ends_the_call() {
    let rig = Rig::start(Security::Plaintext).await;
    let stream = TokioIo::new(TcpStream::connect(rig.addr).await.unwrap());
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    // A message without fields: not compressed, no bytes.
    let body = Full::new(Bytes::from_static(&[0; 5]));
    let request = http::Request::post(format!(
        "http://{}/bigfleet.v1alpha1.CapacityProvider/Drain",
        rig.addr
    ))
    .header("content-type", "application/grpc")
    .header("te", "trailers")
    .header("grpc-timeout", "50m")
    .body(body)
    .unwrap();
    let response = tokio::time::timeout(PATIENCE, sender.send_request(request)).await.unwrap();
    assert_eq!(response.unwrap().headers()["grpc-status"], "4");
}
