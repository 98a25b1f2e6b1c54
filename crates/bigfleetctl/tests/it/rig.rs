//! The binary with a home of its own, and the servers it meets.

use std::{path::PathBuf, process::Stdio, sync::Arc, time::Duration};

use bigfleet_net::tls::{Security, Tls};
use bigfleet_provider::{
    Identity, Stamped,
    fake::{Fake, FakeOptions, Seed},
};
use bigfleet_scripted::{
    coordinator::Coordinator,
    operator::{Operator, OperatorOptions},
};
use bigfleet_shard::{Options, Running, Setup, Supply, start};
use bigfleet_testkit::pki::Material;
use bigfleet_wire::v1alpha1::{
    CapacityNeed, ListShardReportsResponse, ListShardsResponse, RaftStatusResponse,
    ShardRegistryEntry,
};
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt as _, net::TcpListener, process::Command, task::JoinHandle};

pub(crate) const SECOND: i64 = 1_000_000_000;

/// Nothing here takes that long; what does has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A home for the binary.
pub(crate) struct Ctl {
    pub(crate) home: TempDir,
    flags: Vec<String>,
}

/// What a command left.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Done {
    /// Standard output of a command that succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    /// Standard error of a command that failed so.
    #[track_caller]
    pub(crate) fn failed(self, code: i32) -> String {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.err.contains("bigfleetctl: ") || code == 2, "{self:?}");
        self.err
    }
}

impl Ctl {
    /// One that dials these coordinators.
    pub(crate) fn to(coordinators: &[&str]) -> Self {
        let flags = vec!["--coordinator".to_owned(), coordinators.join(",")];
        Self { home: TempDir::new().unwrap(), flags }
    }

    /// One that says nothing of coordinators.
    pub(crate) fn bare() -> Self {
        Self { home: TempDir::new().unwrap(), flags: Vec::new() }
    }

    /// With this certificate.
    pub(crate) fn with(mut self, material: &Material) -> Self {
        self.flags.extend(material.args());
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// The process as it will be started.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bigfleetctl"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("BIGFLEET_")) {
            command.env_remove(name);
        }
        command.args(args).args(&self.flags).env("HOME", self.home.path()).kill_on_drop(true);
        command.current_dir(self.home.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) async fn run(&self, args: &[&str]) -> Done {
        self.run_with(args, "").await
    }

    /// With something on standard input, which is no terminal.
    pub(crate) async fn run_with(&self, args: &[&str], input: &str) -> Done {
        let mut child = self.command(args).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // One that does not read has ended already.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
        let output = output.expect("it ends").unwrap();
        Done {
            code: output.status.code().expect("no signal"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

pub(crate) fn mtls(material: &Material) -> Security {
    let tls = Tls::load(&material.cert(), &material.key(), &material.ca()).unwrap();
    Security::Mtls(Arc::new(tls))
}

pub(crate) async fn coordinator() -> Coordinator {
    Coordinator::start(&Security::Plaintext).await.unwrap()
}

/// A coordinator of one replica that leads, with these shards.
pub(crate) async fn leading(security: &Security, shards: &[(&str, &str)]) -> Coordinator {
    let coordinator = Coordinator::start(security).await.unwrap();
    lead(&coordinator, shards);
    coordinator
}

pub(crate) fn lead(coordinator: &Coordinator, shards: &[(&str, &str)]) {
    let entry = |(id, address): &(&str, &str)| ShardRegistryEntry {
        shard_id: (*id).to_owned(),
        address: (*address).to_owned(),
        registered_at_unix_ns: 1_700_000_000 * SECOND,
        last_heartbeat_unix_ns: now(),
    };
    coordinator
        .reply(ListShardsResponse { shards: shards.iter().map(entry).collect(), leading_ms: 0 });
    coordinator.reply(ListShardReportsResponse::default());
    coordinator.reply(leader_status("node-1"));
}

pub(crate) fn leader_status(node: &str) -> RaftStatusResponse {
    RaftStatusResponse {
        node_id: node.to_owned(),
        fleet_id: "6f2c.00000000".to_owned(),
        phase: 2,
        role: "leader".to_owned(),
        term: 7,
        leader_id: node.to_owned(),
        commit_index: 40,
        applied_index: 40,
        voters: ["node-1", "node-2", "node-3"].map(str::to_owned).to_vec(),
        ..Default::default()
    }
}

pub(crate) fn now() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_nanos()).unwrap()
}

/// A real shard with a fake provider, in this process.
pub(crate) struct Shard {
    pub(crate) addr: String,
    running: Running,
    clock: JoinHandle<()>,
}

impl Shard {
    pub(crate) async fn start(id: &str, security: Security) -> Self {
        let fake = Fake::new(FakeOptions::instant());
        fake.seed(&Seed { idle: 4, speculative: 8, ..Seed::default() }).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        let supply: Arc<dyn Supply> = Arc::new(Stamped::new(fake.clone(), Identity::new(id, 3)));
        let options = Options {
            id: id.to_owned(),
            cycle_interval: Duration::from_millis(100),
            ..Options::default()
        };
        let setup = Setup::in_memory(options, 3, supply, listener).unwrap();
        let running = start(Setup { own_thread: true, security, ..setup });
        let clock = tokio::spawn(async move { fake.run().await });
        Self { addr, running, clock }
    }

    /// A cluster that asks for this and is heard.
    pub(crate) async fn cluster(&self, id: &str, needs: Vec<CapacityNeed>) -> Operator {
        let options = OperatorOptions::new(id);
        let operator = Operator::connect(&self.addr, &Security::Plaintext, options).await.unwrap();
        operator.roll_up(needs).await.unwrap();
        operator
    }

    pub(crate) async fn stop(self) {
        self.running.stop().await;
        self.clock.abort();
    }
}
