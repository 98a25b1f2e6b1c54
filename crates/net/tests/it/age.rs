//! Old connections end, so that a removed CA takes effect.

use std::time::Duration;

use bigfleet_net::{grpc::ConnectionLimits, message_limits, tls::Security};
use bigfleet_testkit::pki::Pki;
use bigfleet_wire::v1alpha1::{
    ListFilter, MachineRef, capacity_provider_client::CapacityProviderClient,
    shard_client::ShardClient,
};
use tonic::transport::Channel;

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

#[tokio::test]
async fn an_old_connection_finishes_its_calls_and_takes_no_new_ones() {
    let rig = Rig::start_with(Security::Plaintext, young(PATIENCE * 2)).await;
    let mut client = rig.client(&Security::Plaintext).await;
    let first = soon(client.get(MachineRef::default())).await.unwrap().into_inner().zone;
    let mut old = client.clone();
    let call = tokio::spawn(async move { old.list(ListFilter::default()).await });
    soon(rig.closing.notified()).await;
    // The channel moves to a new connection while the call is still open. A
    // call that meets the change may fail, unsent.
    let moved = async |client: &mut CapacityProviderClient<Channel>| {
        let answer = client.get(MachineRef::default()).await;
        answer.is_ok_and(|machine| machine.into_inner().zone != first)
    };
    soon(async {
        while !moved(&mut client).await {
            tokio::task::yield_now().await;
        }
    })
    .await;
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
        let mut session = soon(client.session(tokio_stream::pending())).await.unwrap().into_inner();
        soon(session.message()).await.unwrap().expect("the greeting");
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
    soon(client.get(MachineRef::default())).await.unwrap();
    server.replace_ca(&new.ca_pem()).unwrap();
    soon(async { while client.get(MachineRef::default()).await.is_ok() {} }).await;
}
