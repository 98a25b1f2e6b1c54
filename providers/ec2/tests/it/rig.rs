//! One stand-in in this process, one provider in a process of its own.

use std::{
    net::TcpListener,
    path::PathBuf,
    process::Stdio,
    time::{Duration, Instant},
};

use bigfleet_provider_ec2::{
    config::Ec2Config,
    http::{Http, LIMIT},
    sign::Scope,
    standin::{self, Faults, Settings, StandIn},
};
use bigfleet_wire::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter, Machine, MachineRef,
    MachineState, TransitionAck, capacity_provider_client::CapacityProviderClient,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tonic::{Code, Status, transport::Channel};

/// Nothing takes so long, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);
const LOOK: Duration = Duration::from_millis(10);

pub(crate) struct Rig {
    pub(crate) directory: TempDir,
    pub(crate) config: Ec2Config,
    /// Of the stand-in.
    url: String,
    _standin: Option<StandIn>,
    /// The provider brings its own stand-in.
    pub(crate) fake: bool,
    /// `--sweep-interval`.
    pub(crate) sweep: &'static str,
    /// More flags of the provider.
    pub(crate) flags: Vec<String>,
    http: Http,
    provider: Option<Child>,
    client: Option<CapacityProviderClient<Channel>>,
    sequence: i64,
}

impl Rig {
    /// With eight slots, nothing running so far.
    pub(crate) async fn new(faults: &Value) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let faults = Faults::default().patched(faults).unwrap();
        let settings = Settings { file: Some(directory.path().join("standin")), faults };
        let standin = StandIn::start(settings, None).await.unwrap();
        let rig = Self::beside(standin.url(), directory);
        Self { _standin: Some(standin), ..rig }
    }

    /// With a stand-in that somebody else started.
    pub(crate) fn beside(url: String, directory: TempDir) -> Self {
        Self {
            config: standin::config(8, &url),
            url,
            _standin: None,
            directory,
            fake: false,
            sweep: "300ms",
            flags: Vec::new(),
            http: Http::new(standin::credentials(), false).unwrap(),
            provider: None,
            client: None,
            sequence: 0,
        }
    }

    /// With a provider that serves.
    pub(crate) async fn serving(faults: &Value) -> Self {
        let mut rig = Self::new(faults).await;
        rig.start().await;
        rig
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    pub(crate) fn command(&self, port: u16) -> Command {
        let config = self.directory.path().join("config.yaml");
        std::fs::write(&config, serde_saphyr::to_string(&self.config).unwrap()).unwrap();
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.log()).unwrap();
        let credentials = standin::credentials();
        let mut command = Command::new(env!("CARGO_BIN_EXE_bigfleet-provider-ec2"));
        if self.fake {
            command.args(["--use-fake-backend", "--seed-count=8"]);
        } else {
            let at = |service: &str| format!("--{service}-endpoint={}", self.url);
            command.args(["ec2", "pricing", "command", "queue"].map(at));
            command.arg(format!("--config={}", config.display()));
        }
        command
            .arg(format!("--addr=127.0.0.1:{port}"))
            .arg(format!("--state={}", self.directory.path().join("state").display()))
            .args(["--provider=p", "--metrics-addr=0"])
            .arg(format!("--sweep-interval={}", self.sweep))
            .args(&self.flags)
            .env("AWS_ACCESS_KEY_ID", credentials.access_key)
            .env("AWS_SECRET_ACCESS_KEY", credentials.secret_key)
            .env_remove("AWS_SESSION_TOKEN")
            .stderr(Stdio::from(log))
            .kill_on_drop(true);
        command
    }

    /// Starts the provider and waits until it answers.
    pub(crate) async fn start(&mut self) {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut provider = self.command(port).spawn().unwrap();
        let uri = format!("http://127.0.0.1:{port}");
        let channel = Channel::from_shared(uri).unwrap().connect_lazy();
        let mut client = CapacityProviderClient::new(channel);
        let begun = Instant::now();
        while client.list(ListFilter::default()).await.is_err() {
            if let Some(status) = provider.try_wait().unwrap() {
                panic!("{status}: {}", std::fs::read_to_string(self.log()).unwrap());
            }
            assert!(begun.elapsed() < PATIENCE, "the provider does not serve");
            tokio::time::sleep(LOOK).await;
        }
        (self.provider, self.client) = (Some(provider), Some(client));
    }

    /// `kill -9`.
    pub(crate) async fn kill(&mut self) {
        if let Some(mut provider) = self.provider.take() {
            provider.kill().await.unwrap();
        }
    }

    pub(crate) async fn restart(&mut self) {
        self.kill().await;
        self.start().await;
    }

    fn client(&mut self) -> CapacityProviderClient<Channel> {
        self.sequence += 1;
        self.client.clone().unwrap()
    }

    pub(crate) async fn create(&mut self, id: &str) -> Result<TransitionAck, Status> {
        let mut client = self.client();
        let request = CreateRequest {
            machine_id: id.into(),
            shard_id: "s".into(),
            shard_epoch: 1,
            sequence_number: self.sequence,
        };
        client.create(request).await.map(tonic::Response::into_inner)
    }

    pub(crate) async fn configure(
        &mut self,
        id: &str,
        cluster: &str,
        blob: &[u8],
    ) -> Result<TransitionAck, Status> {
        let mut client = self.client();
        let request = ConfigureRequest {
            machine_id: id.into(),
            cluster_id: cluster.into(),
            bootstrap_blob: blob.to_vec(),
            shard_id: "s".into(),
            shard_epoch: 1,
            sequence_number: self.sequence,
            ..ConfigureRequest::default()
        };
        client.configure(request).await.map(tonic::Response::into_inner)
    }

    pub(crate) async fn drain(&mut self, id: &str, grace: i64) -> Result<TransitionAck, Status> {
        let mut client = self.client();
        let request = DrainRequest {
            machine_id: id.into(),
            grace_period_seconds: grace,
            shard_id: "s".into(),
            shard_epoch: 1,
            sequence_number: self.sequence,
        };
        client.drain(request).await.map(tonic::Response::into_inner)
    }

    pub(crate) async fn delete(&mut self, id: &str) -> Result<TransitionAck, Status> {
        let mut client = self.client();
        let request = DeleteRequest {
            machine_id: id.into(),
            shard_id: "s".into(),
            shard_epoch: 1,
            sequence_number: self.sequence,
        };
        client.delete(request).await.map(tonic::Response::into_inner)
    }

    pub(crate) async fn get(&mut self, id: &str) -> Machine {
        self.client().get(MachineRef { id: id.into() }).await.unwrap().into_inner()
    }

    pub(crate) async fn find(&mut self, id: &str) -> Option<Machine> {
        match self.client().get(MachineRef { id: id.into() }).await {
            Ok(machine) => Some(machine.into_inner()),
            Err(status) if status.code() == Code::NotFound => None,
            Err(status) => panic!("{status}"),
        }
    }

    pub(crate) async fn list(&mut self) -> Vec<Machine> {
        self.client().list(ListFilter::default()).await.unwrap().into_inner().machines
    }

    pub(crate) async fn reaches(&mut self, id: &str, state: MachineState) -> Machine {
        self.becomes(id, |machine| machine.state() == state).await
    }

    pub(crate) async fn becomes(&mut self, id: &str, wanted: impl Fn(&Machine) -> bool) -> Machine {
        let begun = Instant::now();
        loop {
            let machine = self.get(id).await;
            if wanted(&machine) {
                return machine;
            }
            assert!(begun.elapsed() < PATIENCE, "stays {machine:?}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// From SPECULATIVE to IDLE.
    pub(crate) async fn bring(&mut self, id: &str) -> Machine {
        self.create(id).await.unwrap();
        self.reaches(id, MachineState::Idle).await
    }

    /// From SPECULATIVE to CONFIGURED.
    pub(crate) async fn bind(&mut self, id: &str, cluster: &str) -> Machine {
        self.bring(id).await;
        self.configure(id, cluster, b"blob").await.unwrap();
        self.reaches(id, MachineState::Configured).await
    }

    pub(crate) async fn admin(&self, path: &str, body: Value) {
        let url = format!("{}/admin/{path}", self.url);
        let scope = Scope { region: "r".into(), service: "admin".into() };
        let endpoint = self.http.endpoint(&url, scope).unwrap();
        let body = body.to_string().into();
        let answer = endpoint.post("application/json", None, body, LIMIT).await.unwrap();
        assert!(answer.status.is_success(), "{path}: {answer:?}");
    }

    pub(crate) async fn faults(&self, patch: Value) {
        self.admin("faults", patch).await;
    }

    pub(crate) async fn truth(&self) -> Value {
        let url = format!("{}/admin/truth", self.url);
        serde_json::from_slice(&self.http.get(&url).await.unwrap().body).unwrap()
    }

    /// Waits until the truth looks so.
    pub(crate) async fn truth_becomes(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let truth = self.truth().await;
            if wanted(&truth) {
                return truth;
            }
            assert!(begun.elapsed() < PATIENCE, "stays {truth}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The only live host there is.
    pub(crate) async fn only_host(&self) -> Value {
        let truth = self.truth().await;
        let hosts = truth["hosts"].as_array().unwrap();
        assert_eq!(hosts.len(), 1, "{truth}");
        hosts[0].clone()
    }
}

/// The first slot of on-demand capacity.
pub(crate) const SLOT: &str = "p/on-demand/m6i.large/standin-1a/000";
/// One of spot capacity.
pub(crate) const SPOT: &str = "p/spot/m6i.large/standin-1b/000";

pub(crate) fn sound() -> Value {
    json!({})
}
