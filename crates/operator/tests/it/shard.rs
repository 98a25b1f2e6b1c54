//! A scripted shard, and what these tests ask of it.

use std::{ops::Deref, sync::Arc, time::Duration};

use bigfleet_net::tls::Security;
use bigfleet_scripted::shard::{Heard, Shard};
use bigfleet_wire::v1alpha1::{
    BootstrapBlobResponse, ClusterCapacityNeeds, Hello, operator_message::Payload as Up,
};

/// Nothing here takes that long; a test that waits for it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// One shard, whoever of several operators dials it.
#[derive(Clone, Debug)]
pub(crate) struct FakeShard(Arc<Shard>);

impl Deref for FakeShard {
    type Target = Shard;

    fn deref(&self) -> &Shard {
        &self.0
    }
}

impl FakeShard {
    pub(crate) async fn start(security: Security) -> Self {
        Self(Arc::new(Shard::start(&security).await.unwrap()))
    }

    /// By the name that is in certificates.
    pub(crate) fn name(&self) -> String {
        format!("localhost:{}", self.addr().rsplit(':').next().unwrap())
    }

    pub(crate) async fn until(&self, what: &'static str, condition: impl FnMut(&Heard) -> bool) {
        let waited = self.wait_for(what, condition, PATIENCE).await;
        let heard = self.heard();
        let (sessions, open) = (heard.sessions(), heard.live_sessions());
        let (roll_ups, latest) = (heard.roll_ups().count(), heard.latest());
        assert!(
            waited.is_ok(),
            "not heard in time: {what}; {sessions} sessions, {open} open, {roll_ups} roll-ups, \
             the last with {:?} needs",
            latest.map(|one| one.needs.len())
        );
    }
}

/// What was heard, by kind.
pub(crate) trait Words {
    fn latest(&self) -> Option<&ClusterCapacityNeeds>;
    /// Total of one resource in each need of the newest roll-up.
    fn wanted(&self, name: &str) -> Vec<String>;
    fn hellos(&self) -> Vec<&Hello>;
    fn blobs(&self) -> Vec<&BootstrapBlobResponse>;
}

impl Words for Heard {
    fn latest(&self) -> Option<&ClusterCapacityNeeds> {
        self.roll_ups().last()
    }

    fn wanted(&self, name: &str) -> Vec<String> {
        let needs = self.latest().map(|roll_up| roll_up.needs.as_slice()).unwrap_or_default();
        needs.iter().filter_map(|need| need.aggregate_resources.get(name).cloned()).collect()
    }

    fn hellos(&self) -> Vec<&Hello> {
        let hellos = self.frames.iter().filter_map(|(_, frame)| match frame {
            Up::Hello(hello) => Some(hello),
            _ => None,
        });
        hellos.collect()
    }

    fn blobs(&self) -> Vec<&BootstrapBlobResponse> {
        let blobs = self.frames.iter().filter_map(|(_, frame)| match frame {
            Up::BootstrapResponse(blob) => Some(blob),
            _ => None,
        });
        blobs.collect()
    }
}
