//! Old connections end, so that a removed CA takes effect.

use std::time::Duration;

use bigfleet_net::{grpc::ConnectionLimits, message_limits, tls::Security};
use bigfleet_testkit::pki::Pki;
use bigfleet_wire::v1alpha1::{
    ListFilter, Machine, MachineRef, ShardMessage,
    capacity_provider_client::CapacityProviderClient, shard_client::ShardClient,
};
use tonic::{Streaming, transport::Channel};

use crate::rig::{PATIENCE, Rig, mtls, soon};

fn young(grace: Duration) -> ConnectionLimits {
    ConnectionLimits {
        max_age: Duration::from_millis(300),
        age_grace: grace,
        ..ConnectionLimits::default()
    }
}

#[test]
fn defaults_are_the_specifications() {
    let limits = ConnectionLimits::default();
    assert_eq!(limits.max_age, Duration::from_secs(3600));
    assert_eq!(limits.handshake_timeout, Duration::from_secs(10));
    assert_eq!(limits.drain, Duration::from_secs(10));
    assert_eq!(limits.keepalive_interval, Duration::from_secs(20));
    assert_eq!(limits.keepalive_timeout, Duration::from_secs(10));
}

/// The first answer: a call that meets the end of its connection fails, unsent,
/// and on a slow machine that may be any call.
async fn answer(client: &mut CapacityProviderClient<Channel>) -> Machine {
    loop {
        if let Ok(machine) = client.get(MachineRef::default()).await {
            return machine.into_inner();
        }
        tokio::task::yield_now().await;
    }
}

/// A session that has been greeted, however many connections that takes.
async fn session(client: &mut ShardClient<Channel>) -> Streaming<ShardMessage> {
    loop {
        if let Ok(session) = client.session(tokio_stream::pending()).await {
            let mut session = session.into_inner();
            if let Ok(Some(_greeting)) = session.message().await {
                return session;
            }
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_old_connection_finishes_its_calls_and_takes_no_new_ones() {
    let rig = Rig::start_with(Security::Plaintext, young(PATIENCE * 2)).await;
    let mut client = rig.client(&Security::Plaintext).await;
    let first = soon(answer(&mut client)).await.zone;
    let call = loop {
        let mut old = client.clone();
        let mut call = tokio::spawn(async move { old.list(ListFilter::default()).await });
        tokio::select! {
            () = soon(rig.waiting.notified()) => break call,
            _ = &mut call => {}
        }
    };
    soon(rig.closing.notified()).await;
    // The channel moves to a new connection while the call is still open.
    soon(async { while answer(&mut client).await.zone == first {} }).await;
    rig.release.notify_one();
    soon(call).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_stream_that_never_ends_is_cut_after_the_grace() {
    let pki = Pki::new().unwrap();
    let material = pki.material(&["bigfleet://shard/s"]).unwrap();
    for security in [Security::Plaintext, mtls(&material)] {
        let rig = Rig::start_with(security.clone(), young(Duration::from_millis(50))).await;
        let channel = rig.channel(&security).await.unwrap();
        let mut client = message_limits!(ShardClient::new(channel));
        let mut session = soon(session(&mut client)).await;
        soon(session.message()).await.expect_err("the cut");
    }
}

/// After a CA is removed, its clients lose their connection and cannot return.
#[tokio::test]
async fn a_removed_ca_takes_effect_on_open_connections() {
    let (old, new) = (Pki::new().unwrap(), Pki::new().unwrap());
    let server = old.material(&["bigfleet://shard/s"]).unwrap();
    let rig = Rig::start_with(mtls(&server), young(Duration::from_millis(50))).await;
    let mut client = rig.client(&mtls(&old.material(&["bigfleet://cluster/c"]).unwrap())).await;
    soon(answer(&mut client)).await;
    server.replace_ca(&new.ca_pem()).unwrap();
    soon(async { while client.get(MachineRef::default()).await.is_ok() {} }).await;
}
