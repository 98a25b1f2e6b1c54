//! The table of bad input (provider chapter §1): each row its status, and nothing is
//! changed by it but the fence mark.

use bigfleet_provider_kit::{
    Config, MemStore,
    protocol::{Caps, FencePolicy},
};
use bigfleet_wire::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter, MachineList,
    MachineRef, MachineState,
};
use tonic::{Code, Status};

use crate::{
    rack::Rack,
    rig::{Client, Rig, config},
};

const SLOT: &str = "slot-000000";
const IDLE: &str = "slot-000001";
const BOUND: &str = "slot-000002";

/// A call of shard `bad`.
#[derive(Clone, Debug)]
enum Bad {
    Create { id: &'static str },
    Configure { id: &'static str, cluster: &'static str, blob: usize, keys: usize, bytes: usize },
    Drain { id: &'static str, grace: i64 },
    Delete { id: &'static str },
}

impl Bad {
    async fn send(&self, client: &mut Client, shard: &str, sequence: i64) -> Result<(), Status> {
        let (shard_id, shard_epoch, sequence_number) = (shard.to_owned(), 1, sequence);
        match *self {
            Self::Create { id } => {
                let machine_id = id.to_owned();
                let request = CreateRequest { machine_id, shard_id, shard_epoch, sequence_number };
                client.create(request).await.map(drop)
            }
            Self::Configure { id, cluster, blob, keys, bytes } => {
                let pair = |key: usize| (format!("{key:04}"), "v".repeat(bytes));
                let request = ConfigureRequest {
                    machine_id: id.to_owned(),
                    cluster_id: cluster.to_owned(),
                    bootstrap_blob: vec![b'b'; blob],
                    shard_metadata: (0..keys).map(pair).collect(),
                    shard_id,
                    shard_epoch,
                    sequence_number,
                };
                client.configure(request).await.map(drop)
            }
            Self::Drain { id, grace } => {
                let machine_id = id.to_owned();
                let grace_period_seconds = grace;
                let request = DrainRequest {
                    machine_id,
                    grace_period_seconds,
                    shard_id,
                    shard_epoch,
                    sequence_number,
                };
                client.drain(request).await.map(drop)
            }
            Self::Delete { id } => {
                let machine_id = id.to_owned();
                let request = DeleteRequest { machine_id, shard_id, shard_epoch, sequence_number };
                client.delete(request).await.map(drop)
            }
        }
    }
}

fn configure(id: &'static str, cluster: &'static str) -> Bad {
    Bad::Configure { id, cluster, blob: 1, keys: 1, bytes: 1 }
}

/// One slot, one IDLE machine, one bound.
async fn fleet(rig: &mut Rig) -> MachineList {
    rig.create(IDLE).await.unwrap();
    rig.reaches(IDLE, MachineState::Idle).await;
    rig.bind(BOUND, "c-1").await;
    rig.list(ListFilter::default()).await
}

#[tokio::test]
async fn every_row_has_its_status_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let rack = Rack::open(3, directory.path()).unwrap();
    let mut rig = Rig::start(rack, MemStore::new(), config()).await;
    let before = fleet(&mut rig).await;
    let caps = Caps::default();
    let big = |blob, keys, bytes| Bad::Configure { id: IDLE, cluster: "c", blob, keys, bytes };
    let rows = [
        (Bad::Create { id: "" }, Code::InvalidArgument, "machine_id: "),
        (configure("", "c"), Code::InvalidArgument, "machine_id: "),
        (Bad::Drain { id: "", grace: 0 }, Code::InvalidArgument, "machine_id: "),
        (Bad::Delete { id: "" }, Code::InvalidArgument, "machine_id: "),
        (Bad::Drain { id: BOUND, grace: -1 }, Code::InvalidArgument, "grace_period_seconds: "),
        (configure(IDLE, ""), Code::InvalidArgument, "cluster_id: "),
        (big(caps.blob_bytes + 1, 0, 0), Code::InvalidArgument, "bootstrap_blob: "),
        (big(0, caps.metadata_keys + 1, 0), Code::InvalidArgument, "shard_metadata: "),
        // 64 pairs of 1 KiB, and one byte each.
        (big(0, 64, 1021), Code::InvalidArgument, "shard_metadata: "),
        (Bad::Create { id: "nobody" }, Code::NotFound, ""),
        (configure("nobody", "c"), Code::NotFound, ""),
        (Bad::Drain { id: "nobody", grace: 0 }, Code::NotFound, ""),
        (Bad::Delete { id: "nobody" }, Code::NotFound, ""),
        (configure(BOUND, "c-2"), Code::AlreadyExists, ""),
        // Out of position; the text names kind and state.
        (Bad::Create { id: BOUND }, Code::Internal, "create"),
        (configure(SLOT, "c"), Code::Internal, "configure"),
        (Bad::Drain { id: SLOT, grace: 0 }, Code::Internal, "drain"),
        (Bad::Drain { id: IDLE, grace: 0 }, Code::Internal, "drain"),
        (Bad::Delete { id: BOUND }, Code::Internal, "delete"),
    ];
    for (row, (bad, code, says)) in rows.into_iter().enumerate() {
        let sequence = 1 + i64::try_from(row).unwrap();
        let status = bad.send(&mut rig.client, "bad", sequence).await.unwrap_err();
        assert_eq!(status.code(), code, "{bad:?}: {status}");
        assert!(status.message().contains(says), "{bad:?}: {status}");
        let after = rig.list(ListFilter::default()).await;
        assert_eq!(after, before, "{bad:?} changed something");
        // A refused argument comes before the fence; everything later has moved the mark.
        let again = bad.send(&mut rig.client, "bad", sequence).await.unwrap_err();
        let fenced = code != Code::InvalidArgument;
        assert_eq!(again.code(), if fenced { Code::FailedPrecondition } else { code }, "{bad:?}");
    }
    let sound = Bad::Create { id: SLOT };
    for (epoch, sequence) in [(5, 0), (0, 5), (-1, 0)] {
        let request = CreateRequest {
            machine_id: SLOT.into(),
            shard_id: String::new(),
            shard_epoch: epoch,
            sequence_number: sequence,
        };
        let status = rig.client.create(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        assert!(status.message().starts_with("shard_id: "), "{status}");
    }
    assert_eq!(rig.list(ListFilter::default()).await, before);
    // Exactly at the caps nothing is refused, and nothing is cut.
    let full = Bad::Configure {
        id: IDLE,
        cluster: "c",
        blob: caps.blob_bytes,
        keys: caps.metadata_keys,
        bytes: caps.metadata_bytes / caps.metadata_keys - 4,
    };
    full.send(&mut rig.client, "bad", 100).await.unwrap();
    let bound = rig.reaches(IDLE, MachineState::Configured).await;
    let bytes = bound.shard_metadata.iter().map(|(key, value)| key.len() + value.len());
    assert_eq!(bound.shard_metadata.len(), caps.metadata_keys);
    assert_eq!(bytes.sum::<usize>(), caps.metadata_bytes);
    sound.send(&mut rig.client, "bad", 100).await.unwrap();
    rig.stop().await;
}

#[tokio::test]
async fn reads_take_no_token_and_refuse_only_what_cannot_be_meant() {
    let directory = tempfile::tempdir().unwrap();
    let rack = Rack::open(3, directory.path()).unwrap();
    let mut rig = Rig::start(rack, MemStore::new(), config()).await;
    let before = fleet(&mut rig).await;
    for (id, code) in [("", Code::InvalidArgument), ("nobody", Code::NotFound)] {
        let status = rig.client.get(MachineRef { id: id.into() }).await.unwrap_err();
        assert_eq!(status.code(), code, "{status}");
    }
    let negative = ListFilter { max_results: -1, ..ListFilter::default() };
    let status = rig.client.list(negative).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    assert!(status.message().starts_with("max_results: "), "{status}");
    let unknown = ListFilter { states: vec![99], ..ListFilter::default() };
    assert_eq!(rig.list(unknown).await.machines, []);
    for junk in [&b"junk"[..], &[0xff; 4096], b"1.0000000000000000.1", b"1.x.y"] {
        let filter = ListFilter { since_revision: junk.to_vec(), ..ListFilter::default() };
        assert_eq!(rig.list(filter).await, before);
    }
    rig.stop().await;
}

#[tokio::test]
async fn a_required_token_and_stopping_have_their_status_too() {
    let directory = tempfile::tempdir().unwrap();
    let rack = Rack::open(3, directory.path()).unwrap();
    let fence = FencePolicy { require_token: true, ..FencePolicy::default() };
    let mut rig = Rig::start(rack, MemStore::new(), Config { fence, ..config() }).await;
    let zero = CreateRequest { machine_id: SLOT.into(), ..CreateRequest::default() };
    let status = rig.client.create(zero).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    rig.create(SLOT).await.unwrap();
    rig.reaches(SLOT, MachineState::Idle).await;
    let before = rig.list(ListFilter::default()).await;
    rig.kit.refuse();
    let status = rig.create(IDLE).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    assert_eq!(rig.list(ListFilter::default()).await, before);
    rig.stop().await;
}
