//! The scripted shard, with the patience and the panics of a test.

use std::{ops::Deref, sync::Arc, time::Duration};

use bigfleet_net::tls::{Security, Tls};
use bigfleet_scripted::shard::Shard;
pub(crate) use bigfleet_scripted::shard::{Acks, Heard};
use bigfleet_testkit::pki::Material;
use bigfleet_wire::v1alpha1::{
    MachineState, NodeStateUpdate, operator_message::Payload as Up, shard_message::Payload as Down,
};
use tonic::Status;

/// Nothing here takes that long; a test that waits for it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub(crate) struct FakeShard {
    pub(crate) addr: String,
    shard: Arc<Shard>,
}

impl Deref for FakeShard {
    type Target = Shard;

    fn deref(&self) -> &Shard {
        &self.shard
    }
}

pub(crate) fn mtls(material: &Material) -> Security {
    Security::Mtls(Arc::new(Tls::load(&material.cert(), &material.key(), &material.ca()).unwrap()))
}

pub(crate) fn node(id: &str, state: MachineState) -> NodeStateUpdate {
    Shard::node("c", id, state)
}

impl FakeShard {
    pub(crate) async fn start() -> Self {
        Self::start_with(Security::Plaintext).await
    }

    pub(crate) async fn start_with(security: Security) -> Self {
        let shard = Shard::start(&security).await.unwrap();
        Self { addr: shard.addr().to_owned(), shard: Arc::new(shard) }
    }

    pub(crate) async fn send(&self, payload: Down) {
        self.shard.send(payload).await.unwrap();
    }

    pub(crate) fn try_send(&self, payload: Down) -> bool {
        self.shard.try_send(payload).unwrap()
    }

    pub(crate) async fn end_with(&self, status: Status) {
        self.shard.end_with(status).await.unwrap();
    }

    pub(crate) async fn machine(&self, id: &str, state: MachineState) {
        self.shard.machine("c", id, state).await.unwrap();
    }

    pub(crate) async fn ack(&self, echo: &str) {
        self.shard.ack(echo).await.unwrap();
    }

    pub(crate) async fn until(&self, condition: impl FnMut(&Heard) -> bool) {
        self.shard.wait_for("a frame", condition, PATIENCE).await.unwrap();
    }

    /// Waits for the first frame that the look finds something in.
    pub(crate) async fn find<T>(&self, look: impl Fn(&Up) -> Option<T>) -> T {
        self.shard.find("a frame", look, PATIENCE).await.unwrap()
    }
}
