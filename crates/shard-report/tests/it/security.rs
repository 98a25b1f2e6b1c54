//! Who is believed to be a coordinator.

use std::net::SocketAddr;

use bigfleet_net::tls::Security;
use bigfleet_scripted::coordinator::{Answer, Coordinator};
use bigfleet_shard_report::{Options, Resolver};
use bigfleet_testkit::pki::{Material, Pki};

use crate::rig::{FLEET, PATIENCE, Rig, mtls, options, reported};

async fn serve(security: &Security) -> Coordinator {
    let coordinator = Coordinator::start(security).await.expect("loopback");
    coordinator.set_fleet(FLEET);
    coordinator
}

fn of(pki: &Pki, identity: &str) -> Security {
    mtls(&pki.material(&[identity]).expect("issued"))
}

#[tokio::test(start_paused = true)]
async fn coordinators_and_admins_are_followed_over_mtls() {
    let pki = Pki::new().expect("a CA");
    let rig = Rig::start().await;
    for identity in ["bigfleet://admin", "bigfleet://coordinator/node-1"] {
        let leader = serve(&of(&pki, identity)).await;
        let follower = serve(&of(&pki, identity)).await;
        let hint = ("node-1".to_owned(), leader.addr().to_owned());
        follower.always(Answer::NotLeader { leader: Some(hint) });
        let security = of(&pki, "bigfleet://shard/shard-7");
        let client = rig.report_as(Options { security, ..options(&[follower.addr()]) });
        reported(&leader, 3).await;
        client.stop().await;
    }
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nobody_else_hears_a_report() {
    let pki = Pki::new().expect("a CA");
    let rig = Rig::start().await;
    let security = of(&pki, "bigfleet://shard/shard-7");
    let others = [
        of(&pki, "bigfleet://shard/shard-8"),
        of(&pki, "bigfleet://readonly"),
        of(&pki, "bigfleet://cluster/c"),
        of(&Pki::new().expect("another CA"), "bigfleet://admin"),
        Security::Plaintext,
    ];
    for other in &others {
        let stranger = serve(other).await;
        let before = rig.outcomes("unavailable");
        let options = Options { security: security.clone(), ..options(&[stranger.addr()]) };
        let client = rig.report_as(options);
        tokio::time::sleep(PATIENCE / 10).await;
        assert!(stranger.reports().is_empty());
        assert!(rig.outcomes("unavailable") > before);
        client.stop().await;
    }
    let (stranger, leader) = (serve(&others[0]).await, serve(&of(&pki, "bigfleet://admin")).await);
    let both = options(&[stranger.addr(), leader.addr()]);
    let client = rig.report_as(Options { security, ..both });
    reported(&leader, 2).await;
    assert_eq!(rig.outcomes("error"), 0);
    client.stop().await;
    rig.stop().await;
}

/// The name is what the certificate must carry, whichever address it resolves to.
#[tokio::test(start_paused = true)]
async fn a_name_for_all_replicas_is_checked_at_each() {
    let pki = Pki::new().expect("a CA");
    let rig = Rig::start().await;
    let named = |hosts: &[&str]| {
        let leaf = pki.issue(&["bigfleet://coordinator/node-1"], hosts).expect("issued");
        mtls(&Material::write(&leaf, &pki.ca_pem()).expect("written"))
    };
    let wrong = serve(&named(&["elsewhere.test"])).await;
    let right = serve(&named(&["coordinators.test"])).await;
    let behind: Vec<SocketAddr> =
        [&wrong, &right].map(|replica| replica.addr().parse().unwrap()).to_vec();
    let resolver = Resolver::new(move |_| {
        let behind = behind.clone();
        Box::pin(async move { Ok(behind) })
    });
    let security = of(&pki, "bigfleet://shard/shard-7");
    let options = Options { security, resolver, ..options(&["coordinators.test:7790"]) };
    let client = rig.report_as(options);
    reported(&right, 3).await;
    assert!(wrong.reports().is_empty());
    client.stop().await;
    rig.stop().await;
}

/// A report that names another shard than the certificate is refused: an error, and
/// the shard goes on.
#[tokio::test(start_paused = true)]
async fn a_shard_with_anothers_certificate_is_refused() {
    let pki = Pki::new().expect("a CA");
    let rig = Rig::start().await;
    let leader = serve(&of(&pki, "bigfleet://admin")).await;
    let security = of(&pki, "bigfleet://shard/shard-8");
    let client = rig.report_as(Options { security, ..options(&[leader.addr()]) });
    tokio::time::sleep(PATIENCE / 10).await;
    assert!(leader.reports().is_empty());
    assert!(rig.outcomes("error") > 2);
    assert!(rig.readiness.is_ready());
    client.stop().await;
    rig.stop().await;
}
