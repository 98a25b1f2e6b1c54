//! What a client asks of its server.

use bigfleet_net::{
    grpc::{ConnectionLimits, GrpcServer, check_address, connect, connect_lazy, connect_lazy_at},
    identity::Identity,
    rule::Rule,
    tls::Security,
};
use bigfleet_testkit::pki::{LOOPBACK, Material, Pki};
use bigfleet_wire::v1alpha1::{MachineRef, capacity_provider_client::CapacityProviderClient};
use tokio::net::{TcpListener, TcpSocket};
use tonic::Code;

use crate::rig::{Rig, mtls, soon};

async fn dial(rig: &Rig, security: &Security, expect: Rule) -> Result<(), String> {
    soon(connect(&rig.target(), security, expect)).await.map(|_| ()).map_err(|e| e.to_string())
}

#[tokio::test]
async fn server_identity_is_checked_both_eagerly_and_lazily() {
    let pki = Pki::new().unwrap();
    let rig = Rig::start(mtls(&pki.material(&["bigfleet://shard/s"]).unwrap())).await;
    let operator = mtls(&pki.material(&["bigfleet://cluster/c"]).unwrap());
    for expect in
        [Rule::any_shard(), Rule::any_certificate(), Rule::exactly(Identity::Shard("s".into()))]
    {
        dial(&rig, &operator, expect).await.unwrap();
    }
    let expected = "peer presented bigfleet://shard/s; this needs bigfleet://admin or \
                    bigfleet://coordinator/<node_id>";
    let error = dial(&rig, &operator, Rule::coordinators()).await.unwrap_err();
    assert_eq!(error, format!("cannot connect to {}: {expected}", rig.addr));

    let channel = connect_lazy(&rig.target(), &operator, Rule::coordinators()).unwrap();
    let status = soon(CapacityProviderClient::new(channel).get(MachineRef::default())).await;
    let status = status.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().contains(expected), "{status}");
}

#[tokio::test]
async fn exact_provider_identity_is_compared_byte_for_byte() {
    let pki = Pki::new().unwrap();
    let rig = Rig::start(mtls(&pki.material(&["bigfleet://provider/ec2"]).unwrap())).await;
    let shard = mtls(&pki.material(&["bigfleet://shard/s"]).unwrap());
    for (uri, good) in [("bigfleet://provider/ec2", true), ("bigfleet://provider/EC2", false)] {
        let expect = Rule::exactly(uri.parse().unwrap());
        assert_eq!(dial(&rig, &shard, expect).await.is_ok(), good, "{uri}");
    }
}

#[tokio::test]
async fn a_server_under_another_name_is_refused() {
    let pki = Pki::new().unwrap();
    let operator = mtls(&pki.material(&["bigfleet://cluster/c"]).unwrap());
    for name in ["other.example", "localhost"] {
        let leaf = pki.issue(&["bigfleet://shard/s"], &[name]).unwrap();
        let rig = Rig::start(mtls(&Material::write(&leaf, &pki.ca_pem()).unwrap())).await;
        // It is dialled as 127.0.0.1.
        let error = dial(&rig, &operator, Rule::any_certificate()).await.unwrap_err();
        assert!(error.contains("not valid for name"), "{error}");
    }
}

#[tokio::test]
async fn names_and_addresses_of_the_certificate_are_accepted() {
    let pki = Pki::new().unwrap();
    let rig = Rig::start(mtls(&pki.material(&["bigfleet://shard/s"]).unwrap())).await;
    let operator = mtls(&pki.material(&["bigfleet://cluster/c"]).unwrap());
    for host in ["localhost", "127.0.0.1"] {
        let target = format!("{host}:{}", rig.addr.port());
        soon(connect(&target, &operator, Rule::any_shard())).await.unwrap();
    }
}

#[tokio::test]
async fn a_server_of_a_foreign_ca_or_past_its_time_is_refused() {
    let (pki, foreign) = (Pki::new().unwrap(), Pki::new().unwrap());
    let operator = mtls(&pki.material(&["bigfleet://cluster/c"]).unwrap());
    let expired = pki.issue_expired(&["bigfleet://shard/s"], LOOPBACK).unwrap();
    let strange = foreign.issue(&["bigfleet://shard/s"], LOOPBACK).unwrap();
    for (leaf, text) in [(expired, "expired"), (strange, "invalid peer certificate")] {
        let rig = Rig::start(mtls(&Material::write(&leaf, &pki.ca_pem()).unwrap())).await;
        let error = dial(&rig, &operator, Rule::any_shard()).await.unwrap_err();
        assert!(error.contains(text), "{error}");
    }
}

#[tokio::test]
async fn a_tls_client_refuses_a_plaintext_server() {
    let rig = Rig::start(Security::Plaintext).await;
    let operator = mtls(&Pki::new().unwrap().material(&["bigfleet://cluster/c"]).unwrap());
    dial(&rig, &operator, Rule::any_certificate()).await.unwrap_err();
}

#[tokio::test]
async fn nobody_there_is_said_plainly() {
    // Bound and not listening: nobody else can have the port meanwhile.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let addr = socket.local_addr().unwrap().to_string();
    let error = connect(&addr, &Security::Plaintext, Rule::any_certificate()).await.unwrap_err();
    assert!(
        error.to_string().starts_with(&format!("cannot connect to {addr}: Connection refused")),
        "{error}"
    );
}

#[tokio::test]
async fn addresses_that_cannot_be_dialled_are_refused_at_once() {
    for addr in ["", "localhost", ":7780", "localhost:0", "http://localhost:80", "::1:80"] {
        let refused = connect_lazy(addr, &Security::Plaintext, Rule::any_certificate());
        assert!(refused.unwrap_err().to_string().starts_with("address "), "{addr}");
        assert!(check_address(addr).is_err(), "{addr}");
    }
    check_address("localhost:7780").unwrap();
}

/// Whatever the name resolves to, and whichever port it says.
#[tokio::test]
async fn one_address_of_a_name_is_dialled_and_no_other() {
    let rig = Rig::start(Security::Plaintext).await;
    let expect = Rule::any_certificate();
    let channel = connect_lazy_at("many.test:1", rig.addr, &Security::Plaintext, expect).unwrap();
    let mut client = CapacityProviderClient::new(channel);
    soon(client.get(MachineRef::default())).await.unwrap();
}

/// The channel outlives its server.
#[tokio::test]
async fn a_channel_connects_again_by_itself() {
    // Both servers listen on one socket. A port cannot be bound anew at once: a
    // process that another test is just starting still holds the first socket.
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let [first, second] = [(), ()].map(|()| TcpListener::from_std(socket.try_clone().unwrap()));
    let first = Rig::start_on(first.unwrap(), Security::Plaintext, ConnectionLimits::default());
    let mut client = first.client(&Security::Plaintext).await;
    client.get(MachineRef::default()).await.unwrap();
    first.shutdown.request();
    soon(first.served).await.unwrap().unwrap();
    let listener = second.unwrap();
    let readiness = bigfleet_net::readiness::Readiness::new("");
    let second = GrpcServer::new(Security::Plaintext, readiness);
    tokio::spawn(second.serve(listener, bigfleet_net::shutdown::Shutdown::new()));
    soon(async {
        // The new server has no such service, and says so: it was reached.
        while client.get(MachineRef::default()).await.unwrap_err().code() != Code::Unimplemented {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
