//! Peers that are not who they should be: nothing that they say is shown, and nothing is asked of
//! them (experience chapter §1.1).

use std::sync::Arc;

use bigfleet_dashboard::Config;
use bigfleet_net::tls::{Security, Tls};
use bigfleet_scripted::coordinator::Coordinator;
use bigfleet_testkit::pki::{Material, Pki};
use http::StatusCode;

use crate::{
    real::Living,
    rig::{Viewed, lead, loopback},
};

/// An authority and those whom it has vouched for.
struct Authority {
    pki: Pki,
    /// Files must outlive who reads them.
    kept: Vec<Material>,
}

impl Authority {
    fn new() -> Self {
        Self { pki: Pki::new().unwrap(), kept: Vec::new() }
    }

    fn vouch(&mut self, identity: &str) -> Security {
        let material = self.pki.material(&[identity]).unwrap();
        let tls = Tls::load(&material.cert(), &material.key(), &material.ca()).unwrap();
        self.kept.push(material);
        Security::Mtls(Arc::new(tls))
    }
}

const LEADER: &str = "bigfleet://coordinator/c-0";
const SHARD: &str = "bigfleet://shard/shard-0";
const VIEWER: &str = "bigfleet://readonly";

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_believed_to_be_another() {
    let (mut ours, mut theirs) = (Authority::new(), Authority::new());
    let shard = Living::start(ours.vouch(SHARD)).await;
    for (leader, listed, viewer, refused) in [
        (ours.vouch(LEADER), "shard-0", ours.vouch(VIEWER), None),
        // An address that is by now another shard's.
        (ours.vouch(LEADER), "shard-1", ours.vouch(VIEWER), Some("shard")),
        (ours.vouch(SHARD), "shard-0", ours.vouch(VIEWER), Some("coordinator")),
        (theirs.vouch(LEADER), "shard-0", ours.vouch(VIEWER), Some("coordinator")),
        (ours.vouch(LEADER), "shard-0", theirs.vouch(VIEWER), Some("coordinator")),
        (ours.vouch(LEADER), "shard-0", Security::Plaintext, Some("coordinator")),
        // Of ours, and no reader.
        (ours.vouch(LEADER), "shard-0", ours.vouch("bigfleet://cluster/a"), Some("coordinator")),
    ] {
        let coordinator = Coordinator::start(&leader).await.unwrap();
        lead(&coordinator, &[(listed, &shard.addr)]);
        let plaintext = matches!(viewer, Security::Plaintext);
        let config = Config {
            coordinator: vec![coordinator.addr().to_owned()],
            security: viewer,
            ..loopback()
        };
        let viewed = Viewed::start(config).await;
        for path in ["needs", "machines", "sessions"] {
            let answered = viewed.get(&format!("/api/v1/{path}?shard={listed}")).await;
            let Some(source) = refused else {
                assert_eq!(answered.status, StatusCode::OK, "{path}: {}", answered.text);
                continue;
            };
            assert_eq!(answered.status, StatusCode::BAD_GATEWAY, "{path}: {}", answered.text);
            assert_eq!(answered.body["source"], source, "{path}: {}", answered.text);
        }
        assert_eq!(viewed.ok("/api/v1/config").await["plaintext"], plaintext);
    }
    shard.stop().await;
}
