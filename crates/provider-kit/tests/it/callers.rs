//! Who may call, and who still waits (provider chapter §1, steps 1 and 7).

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bigfleet_net::{flags::TlsFlags, tls::Security};
use bigfleet_provider_kit::{
    MemStore, Store,
    store::{Batch, State, StoreError},
};
use bigfleet_testkit::pki::{Material, Pki};
use bigfleet_wire::v1alpha1::{CreateRequest, ListFilter, MachineState};
use tonic::{Code, Request};

use crate::{
    rack::Rack,
    rig::{Rig, config},
};

fn security(material: &Material) -> Security {
    let flags = TlsFlags {
        tls_cert: Some(material.cert()),
        tls_key: Some(material.key()),
        tls_ca: Some(material.ca()),
        require_tls: true,
    };
    flags.load().unwrap()
}

#[tokio::test]
async fn a_certificate_speaks_for_its_own_shard_only() {
    let pki = Pki::new().unwrap();
    let server = pki.material(&["bigfleet://provider/rig"]).unwrap();
    // The rig's tokens are those of shard `rig`.
    for (identity, allowed) in [
        ("bigfleet://shard/rig", true),
        ("bigfleet://shard/other", false),
        ("bigfleet://admin", false),
    ] {
        let client = pki.material(&[identity]).unwrap();
        let (server, client) = (security(&server), security(&client));
        let directory = tempfile::tempdir().unwrap();
        let rack = Rack::open(1, directory.path()).unwrap();
        let mut rig = Rig::secure(rack, MemStore::new(), config(), &server, &client).await;
        let answer = rig.create("slot-000000").await;
        let code = answer.map_or_else(|status| status.code(), |_| Code::Ok);
        assert_eq!(code, if allowed { Code::Ok } else { Code::PermissionDenied }, "{identity}");
        // No zero token over mTLS.
        let zero = CreateRequest { machine_id: "slot-000000".into(), ..Default::default() };
        assert_eq!(rig.client.create(zero).await.unwrap_err().code(), Code::PermissionDenied);
        // Reads take any certificate of the CA.
        assert_eq!(rig.list(ListFilter::default()).await.machines.len(), 1);
        rig.stop().await;
    }
}

/// Holds every commit until it is let go.
#[derive(Clone, Default)]
struct Held {
    inner: MemStore,
    held: Arc<AtomicBool>,
    entered: Arc<AtomicBool>,
}

impl Held {
    async fn is_writing(&self) {
        while !self.entered.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
    }
}

impl Store for Held {
    fn load(&self) -> Result<State, StoreError> {
        self.inner.load()
    }

    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        while self.held.load(Ordering::SeqCst) {
            self.entered.store(true, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(1));
        }
        self.inner.commit(batch)
    }

    fn checkpoint(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

fn create(id: &str) -> CreateRequest {
    CreateRequest { machine_id: id.into(), ..CreateRequest::default() }
}

#[tokio::test]
async fn a_call_that_nobody_awaits_is_not_accepted() {
    let store = Held::default();
    let directory = tempfile::tempdir().unwrap();
    let rack = Rack::open(3, directory.path()).unwrap();
    let mut rig = Rig::local(rack, store.clone(), config()).await.unwrap();
    store.held.store(true, Ordering::SeqCst);
    let mut client = rig.client.clone();
    let first = tokio::spawn(async move { client.create(create("slot-000000")).await });
    store.is_writing().await;
    // While the first is being written, the second is dropped by its caller.
    let waits =
        tokio::time::timeout(Duration::from_millis(50), rig.client.create(create("slot-000001")));
    assert!(waits.await.is_err());
    store.held.store(false, Ordering::SeqCst);
    first.await.unwrap().unwrap();
    rig.reaches("slot-000000", MachineState::Idle).await;
    assert_eq!(rig.get("slot-000001").await.state(), MachineState::Speculative);
    rig.create("slot-000001").await.unwrap();
    rig.stop().await;
}

#[tokio::test]
async fn a_call_past_its_deadline_is_not_accepted() {
    let store = Held::default();
    let directory = tempfile::tempdir().unwrap();
    let rack = Rack::open(2, directory.path()).unwrap();
    let mut rig = Rig::start(rack, store.clone(), config()).await;
    store.held.store(true, Ordering::SeqCst);
    let mut client = rig.client.clone();
    let first = tokio::spawn(async move { client.create(create("slot-000000")).await });
    store.is_writing().await;
    let mut late = Request::new(create("slot-000001"));
    late.set_timeout(Duration::from_millis(200));
    let status = rig.client.create(late).await.unwrap_err();
    assert!(matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled), "{status}");
    store.held.store(false, Ordering::SeqCst);
    first.await.unwrap().unwrap();
    rig.reaches("slot-000000", MachineState::Idle).await;
    assert_eq!(rig.get("slot-000001").await.state(), MachineState::Speculative);
    rig.stop().await;
}
