//! A bootstrap blob is a join secret: no log line at any level holds it.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use bigfleet_provider_kit::{FileStore, MachineState, fault::FaultCloud};
use bigfleet_wire::v1alpha1::ConfigureRequest;
use tracing_subscriber::fmt::MakeWriter;

use crate::rig::{Rig, config};

const MARKER: &str = "join-secret-8d1f";

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn the_blob_is_in_no_log_line_and_in_no_file() {
    let lines = Lines::default();
    // Our own lines at trace; the transport's would hold the bytes of a plain socket.
    let filter =
        tracing_subscriber::EnvFilter::new("bigfleet_provider_kit=trace,bigfleet_net=trace");
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(lines.clone());
    // For all threads: a line that another test meets first, on a thread where nobody
    // listens, would count as one that nobody wants.
    tracing::subscriber::set_global_default(subscriber.finish()).unwrap();
    let state = tempfile::tempdir().unwrap();
    let timeout = std::time::Duration::from_secs(2);
    let cloud = FaultCloud::open(2, timeout, state.path()).unwrap();
    let store = FileStore::open(state.path()).unwrap();
    let mut rig = Rig::start(cloud, store, config()).await;
    for (id, cluster, end) in [
        ("spec-000000", "sound", MachineState::Configured),
        ("spec-000001", "fault-error", MachineState::Failed),
    ] {
        rig.create(id).await.unwrap();
        rig.reaches(id, bigfleet_wire::v1alpha1::MachineState::Idle).await;
        let request = ConfigureRequest {
            machine_id: id.into(),
            cluster_id: cluster.into(),
            bootstrap_blob: MARKER.into(),
            ..ConfigureRequest::default()
        };
        rig.client.configure(request).await.unwrap();
        let end = bigfleet_wire::v1alpha1::MachineState::try_from(end.to_wire()).unwrap();
        rig.reaches(id, end).await;
    }
    rig.stop().await;
    let lines = lines.0.lock().unwrap_or_else(PoisonError::into_inner);
    let text = String::from_utf8_lossy(&lines);
    assert!(text.contains("transition failed"), "nothing was logged: {text}");
    assert!(!text.contains(MARKER), "{text}");
    for entry in std::fs::read_dir(state.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes.windows(MARKER.len()).any(|window| window == MARKER.as_bytes());
            assert!(!found, "{}", path.display());
        }
    }
}
