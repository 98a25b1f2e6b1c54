//! Who may call, and who still waits (provider chapter §1, steps 1 and 7).

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bigfleet_net::{flags::TlsFlags, tls::Security};
use bigfleet_provider_kit::{
    MemStore, Store,
    example::OneRack,
    store::{Batch, State, StoreError},
};
use bigfleet_testkit::pki::{LOOPBACK, Pki};
use bigfleet_wire::v1alpha1::{CreateRequest, ListFilter, MachineState};
use tonic::{Code, Request};

use crate::rig::{Rig, config};

fn material(pki: &Pki, directory: &std::path::Path, identity: &str) -> Security {
    let leaf = pki.issue(&[identity], LOOPBACK).unwrap();
    let write = |name: &str, text: &str| -> PathBuf {
        let path = directory.join(format!("{}-{name}", identity.replace(['/', ':'], "_")));
        std::fs::write(&path, text).unwrap();
        path
    };
    let flags = TlsFlags {
        tls_cert: Some(write("cert.pem", &leaf.cert_pem)),
        tls_key: Some(write("key.pem", &leaf.key_pem)),
        tls_ca: Some(write("ca.pem", &pki.ca_pem())),
        require_tls: true,
    };
    flags.load().unwrap()
}

#[tokio::test]
async fn a_certificate_speaks_for_its_own_shard_only() {
    let (pki, directory) = (Pki::new().unwrap(), tempfile::tempdir().unwrap());
    let server = material(&pki, directory.path(), "bigfleet://provider/rig");
    // The rig's tokens are those of shard `rig`.
    for (identity, allowed) in [
        ("bigfleet://shard/rig", true),
        ("bigfleet://shard/other", false),
        ("bigfleet://admin", false),
    ] {
        let client = material(&pki, directory.path(), identity);
        let mut rig =
            Rig::secure(OneRack::new(1), MemStore::new(), config(), &server, &client).await;
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
#[derive(Clone)]
struct Held {
    inner: MemStore,
    held: Arc<AtomicBool>,
}

impl Store for Held {
    fn load(&self) -> Result<State, StoreError> {
        self.inner.load()
    }

    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        while self.held.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.inner.commit(batch)
    }

    fn checkpoint(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[tokio::test]
async fn a_call_that_nobody_awaits_is_not_accepted() {
    let store = Held { inner: MemStore::new(), held: Arc::default() };
    let mut rig = Rig::start(OneRack::new(3), store.clone(), config()).await;
    store.held.store(true, Ordering::SeqCst);
    // The first is being written; those behind it wait, and give up.
    let mut client = rig.client.clone();
    let first = tokio::spawn(async move {
        let message = CreateRequest { machine_id: "slot-000000".into(), ..Default::default() };
        client.create(message).await
    });
    let mut late = Request::new(CreateRequest {
        machine_id: "slot-000001".into(),
        ..Default::default()
    });
    late.set_timeout(Duration::from_millis(200));
    assert_eq!(rig.client.create(late).await.unwrap_err().code(), Code::DeadlineExceeded);
    let mut client = rig.client.clone();
    let cancelled = tokio::spawn(async move {
        let message = CreateRequest { machine_id: "slot-000002".into(), ..Default::default() };
        client.create(message).await
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    cancelled.abort();
    // The reset must have reached the server.
    tokio::time::sleep(Duration::from_millis(200)).await;
    store.held.store(false, Ordering::SeqCst);
    assert_eq!(first.await.unwrap().unwrap().into_inner().machine.unwrap().id, "slot-000000");
    rig.reaches("slot-000000", MachineState::Idle).await;
    for id in ["slot-000001", "slot-000002"] {
        assert_eq!(rig.get(id).await.state(), MachineState::Speculative, "{id}");
    }
    rig.stop().await;
}
