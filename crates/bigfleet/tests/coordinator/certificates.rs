//! Certificates that are being rotated: what goes on, what is refused, and that nobody
//! has to be restarted for either.

use std::fs;

use bigfleet_testkit::pki::{LOOPBACK, Material, Pki};
use bigfleet_wire::v1alpha1::RaftStatusRequest;
use tonic::Code;

use crate::{
    fleet::{Fleet, REPLICAS},
    rig::process::until,
    shards::Shard,
};

/// Whether somebody who comes anew is let in and lets them in.
async fn welcomes(fleet: &Fleet, replica: usize, material: &Material) -> bool {
    let mut client = fleet.client_as(material).replica(replica);
    client.raft_status(RaftStatusRequest {}).await.is_ok()
}

/// What a replica has logged since it had logged so much.
fn since(fleet: &Fleet, replica: usize, mark: usize) -> String {
    fs::read_to_string(fleet.log(replica)).unwrap().split_off(mark)
}

#[tokio::test(flavor = "multi_thread")]
async fn fault_certificate_half_rotated_the_last_good_pair_stays() {
    let mut fleet = Fleet::open().await;
    let replica = fleet.leader().await;
    let identity = format!("bigfleet://coordinator/c-{replica}");
    let leaf = fleet.pki.issue(&[&identity], LOOPBACK).unwrap();
    let (cert, key) = (fleet.materials[replica].cert(), fleet.materials[replica].key());
    let old_key = fs::read(&key).unwrap();
    let half = &leaf.cert_pem[..leaf.cert_pem.len() / 2];
    let steps: [(&str, &dyn Fn()); 4] = [
        ("a new certificate with the old key", &|| fs::write(&cert, &leaf.cert_pem).unwrap()),
        ("half a certificate", &|| fs::write(&cert, half).unwrap()),
        ("no certificate", &|| fs::remove_file(&cert).unwrap()),
        ("a key that is none", &|| {
            fs::write(&cert, &leaf.cert_pem).unwrap();
            fs::write(&key, "?").unwrap();
        }),
    ];
    for (what, step) in steps {
        let mark = fs::read_to_string(fleet.log(replica)).unwrap().len();
        step();
        assert!(welcomes(&fleet, replica, &fleet.admin).await, "{what}");
        until("a word about it", async || {
            let log = since(&fleet, replica, mark);
            log.contains("reload failed; the previous one stays in use").then_some(())
        })
        .await;
        fleet.client().write("goes-on").await.unwrap();
    }
    // Whoever starts with such a pair has no last good one.
    let follower = (replica + 1) % REPLICAS;
    let other = fleet.pki.issue(&["bigfleet://admin"], LOOPBACK).unwrap();
    let good = fs::read(fleet.materials[follower].key()).unwrap();
    fleet.kill(follower).await;
    fs::write(fleet.materials[follower].key(), &other.key_pem).unwrap();
    fleet.start(follower);
    assert_eq!(fleet.process(follower).ended().await.code(), Some(1));
    let said = fleet.process(follower).tail();
    assert!(said.contains("tls.crt") || said.contains("tls.key"), "it names the file: {said}");
    fs::write(fleet.materials[follower].key(), good).unwrap();
    fleet.start(follower);
    // The rest arrives: the new pair is in use, and nobody was restarted.
    let mark = fs::read_to_string(fleet.log(replica)).unwrap().len();
    assert_ne!(leaf.key_pem.as_bytes(), old_key);
    fs::write(&key, &leaf.key_pem).unwrap();
    until("the new pair", async || {
        assert!(welcomes(&fleet, replica, &fleet.admin).await);
        since(&fleet, replica, mark).contains("reloaded").then_some(())
    })
    .await;
    fleet.until_open().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fault_certificate_of_a_ca_that_the_others_do_not_trust_yet() {
    let mut fleet = Fleet::open().await;
    let new = Pki::new().unwrap();
    let client = fleet.client();
    let mut shard = Shard::start(&fleet, "s-1", &[]);
    let (member, cluster) = shard.restless(&fleet, "c");
    let met = |now: &bigfleet_scripted::member::Standing| now.connected && now.machines > 0;
    member.wait_for("a machine", met, crate::rig::process::PATIENCE).await.unwrap();
    shard.until_reported("ok").await;

    // A replica.
    let leader = fleet.leader().await;
    let early = (leader + 1) % REPLICAS;
    let identity = format!("bigfleet://coordinator/c-{early}");
    fleet.materials[early].replace_leaf(&new.issue(&[&identity], LOOPBACK).unwrap()).unwrap();
    assert!(!welcomes(&fleet, early, &fleet.admin).await, "its certificate is refused");
    fleet.kill(early).await;
    fleet.start(early);
    until("a replica that nobody speaks to", async || {
        fleet.readyz(early).await.filter(|(code, _)| *code == 503)
    })
    .await;
    for number in 0..5 {
        client.write(&format!("w-{number}")).await.unwrap();
    }
    assert!(fleet.process(early).is_running(), "{}", fleet.process(early).tail());

    // A shard: it goes on with what it has, and works on without a coordinator.
    let leaf = new.issue(&["bigfleet://shard/s-1"], LOOPBACK).unwrap();
    shard.material.replace_leaf(&leaf).unwrap();
    fleet.kill(leader).await;
    fleet.start(leader);
    shard.until_reported("unavailable").await;
    shard.cycles().await;
    let standing = member.standing();
    assert!(standing.connected && standing.sessions == 1, "{standing:?}");
    let stranger = fleet.pki.material(&["bigfleet://cluster/d"]).unwrap();
    let options = bigfleet_scripted::operator::OperatorOptions::new("d");
    let security = crate::fleet::security(&stranger);
    let refused = bigfleet_scripted::operator::Operator::connect(&shard.grpc, &security, options);
    assert_ne!(refused.await.err().map(|status| status.code()), None, "not a certificate of ours");

    // Once everybody trusts both, everything heals by itself.
    let both = fleet.pki.ca_pem() + &new.ca_pem();
    let everybody = fleet.materials.iter().chain([&fleet.admin, &shard.material, &cluster]);
    everybody.for_each(|material| material.replace_ca(&both).unwrap());
    fleet.until_open().await;
    shard.until_reported("ok").await;
    assert!(welcomes(&fleet, early, &fleet.admin).await);
    assert_eq!(fleet.client().written().await.unwrap().len(), 5);
    assert_eq!(member.standing().sessions, 1, "no session was dropped");
}

#[tokio::test(flavor = "multi_thread")]
async fn fault_certificate_expired_or_of_another_ca_ends_at_the_handshake() {
    let fleet = Fleet::open().await;
    let leader = fleet.leader().await;
    let admin = &["bigfleet://admin"];
    let expired = fleet.pki.issue_expired(admin, LOOPBACK).unwrap();
    let foreign = Pki::new().unwrap().issue(admin, LOOPBACK).unwrap();
    let rejected = "bigfleet_coordinator_identity_rejected_total";
    let before = fleet.metric(leader, rejected).await;
    for leaf in [expired, foreign] {
        let material = Material::write(&leaf, &fleet.pki.ca_pem()).unwrap();
        let mut client = fleet.client_as(&material).replica(leader);
        let refused = client.raft_status(RaftStatusRequest {}).await.unwrap_err();
        let cut = [Code::Unavailable, Code::Cancelled, Code::Unknown];
        assert!(cut.contains(&refused.code()), "{refused}");
    }
    assert_eq!(fleet.metric(leader, rejected).await, before, "they never get so far");
    // Two identities get so far, and no further.
    let two = fleet.pki.material(&["bigfleet://admin", "bigfleet://readonly"]).unwrap();
    let mut client = fleet.client_as(&two).replica(leader);
    let refused = client.raft_status(RaftStatusRequest {}).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
}
