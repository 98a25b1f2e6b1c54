//! The binary, and a shard's side of the wire.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use bigfleet_wire::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter, Machine, MachineRef,
    MachineState, capacity_provider_client::CapacityProviderClient,
};
use tonic::transport::Channel;

use crate::cluster::PATIENCE;

/// A secret that must show up nowhere.
pub(crate) const MARKER: &str = "join-secret-77ac";

pub(crate) struct Provider {
    child: Child,
    client: CapacityProviderClient<Channel>,
    log: PathBuf,
    sequence: i64,
}

impl Provider {
    pub(crate) fn command() -> Command {
        Command::new(env!("CARGO_BIN_EXE_bigfleet-provider-local"))
    }

    /// On `state`, with a short sweep, until it answers.
    pub(crate) async fn start(state: &Path, flags: &[String]) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let log = state.with_extension("log");
        let file = File::options().create(true).append(true).open(&log).unwrap();
        let child = Self::command()
            .arg(format!("--addr={address}"))
            .arg(format!("--state={}", state.display()))
            .args(["--metrics-addr=0", "--seed-count=8", "--log-level=debug"])
            .args(["--sweep-interval=500ms", "--failed-hold=10s"])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        let channel = Channel::from_shared(format!("http://{address}")).unwrap().connect_lazy();
        let client = CapacityProviderClient::new(channel);
        // Above those of a process that came before, over the same store.
        let sequence = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64;
        let mut this = Self { child, client, log, sequence };
        let deadline = Instant::now() + PATIENCE;
        while this.client.list(ListFilter::default()).await.is_err() {
            assert_eq!(this.child.try_wait().unwrap(), None, "it has ended");
            assert!(Instant::now() < deadline, "it does not answer");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        this
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn next(&mut self) -> i64 {
        self.sequence += 1;
        self.sequence
    }

    pub(crate) async fn get(&mut self, id: &str) -> Machine {
        self.client.get(MachineRef { id: id.into() }).await.unwrap().into_inner()
    }

    /// Waits for a settled state. FAILED may only be on the way to its repair.
    pub(crate) async fn reaches(&mut self, id: &str, state: MachineState) -> Machine {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let machine = self.get(id).await;
            if machine.state() == state {
                return machine;
            }
            let failed = machine.state() == MachineState::Failed;
            assert!(!failed || state == MachineState::Speculative, "{machine:?}");
            assert!(Instant::now() < deadline, "{machine:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn create(&mut self, id: &str) -> Machine {
        let sequence_number = self.next();
        let request = CreateRequest {
            machine_id: id.into(),
            shard_id: "s".into(),
            shard_epoch: 1,
            sequence_number,
        };
        self.client.create(request).await.unwrap();
        self.reaches(id, MachineState::Idle).await
    }

    pub(crate) async fn configure(&mut self, id: &str, cluster: &str) {
        let sequence_number = self.next();
        let request = ConfigureRequest {
            machine_id: id.into(),
            cluster_id: cluster.into(),
            bootstrap_blob: MARKER.into(),
            shard_id: "s".into(),
            shard_epoch: 1,
            sequence_number,
            ..ConfigureRequest::default()
        };
        self.client.configure(request).await.unwrap();
    }

    /// Create and Configure.
    pub(crate) async fn join(&mut self, id: &str, cluster: &str) -> Machine {
        self.create(id).await;
        self.configure(id, cluster).await;
        self.reaches(id, MachineState::Configured).await
    }

    pub(crate) async fn drain(&mut self, id: &str, grace_period_seconds: i64) {
        let sequence_number = self.next();
        let request = DrainRequest {
            machine_id: id.into(),
            grace_period_seconds,
            shard_id: "s".into(),
            shard_epoch: 1,
            sequence_number,
        };
        self.client.drain(request).await.unwrap();
    }

    pub(crate) async fn delete(&mut self, id: &str) {
        let sequence_number = self.next();
        let request = DeleteRequest {
            machine_id: id.into(),
            shard_id: "s".into(),
            shard_epoch: 1,
            sequence_number,
        };
        self.client.delete(request).await.unwrap();
        self.reaches(id, MachineState::Speculative).await;
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        // Both fail only when it has ended and been waited for already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- log of the provider ---\n{}", self.log());
        }
    }
}
