//! A provider process, its hooks and its client.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use bigfleet_provider_static::Spool;
use bigfleet_wire::v1alpha1::{
    ConfigureRequest, DeleteRequest, DrainRequest, ListFilter, Machine, MachineRef, MachineState,
    capacity_provider_client::CapacityProviderClient,
};
use tempfile::TempDir;
use tonic::{
    Status,
    transport::{Channel, Endpoint},
};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_bigfleet-provider-static");
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// What every hook of a sound rig does: tell its name, then what the test adds.
const SOUND: [(&str, &str); 6] = [
    ("power-on", ""),
    ("power-off", ""),
    ("install", ""),
    ("drain", ""),
    ("wipe", ""),
    ("status", ""),
];

pub(crate) struct Rig {
    pub(crate) root: TempDir,
    process: Option<Process>,
    flags: Vec<String>,
    files: Option<u32>,
}

struct Process {
    child: Child,
    client: CapacityProviderClient<Channel>,
    metrics: u16,
}

impl Rig {
    /// Hooks that succeed, and no process so far.
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("hooks")).unwrap();
        let rig = Self { root, process: None, flags: Vec::new(), files: None };
        for (hook, body) in SOUND {
            rig.hook(hook, body);
        }
        rig
    }

    pub(crate) fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.to_owned());
        self
    }

    /// Starts with a soft limit of open files.
    pub(crate) fn files(mut self, limit: u32) -> Self {
        self.files = Some(limit);
        self
    }

    /// In scripts `$LOG` is where all hooks tell what they do.
    pub(crate) fn hook(&self, name: &str, body: &str) {
        let path = self.path(&format!("hooks/{name}"));
        let log = self.path("log");
        let text = format!(
            "#!/bin/sh\nLOG='{}'\nINPUT=$(cat)\necho {name} >>\"$LOG\"\n{body}\n",
            log.display()
        );
        // Complete when it appears: a running provider may start it at any moment.
        let new = path.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(new, path).unwrap();
    }

    /// An inventory of these ids; the host of `m-1` is `SN-m-1`.
    pub(crate) fn inventory(&self, ids: &[&str]) {
        let mut text = "provider: metal-test\ndefaults: {zone: z1, instance_type: t1}\n\
                        hooks: {dir: hooks, timeout: 5m}\nmachines:\n"
            .to_owned();
        for id in ids {
            text += &format!("  - {{id: {id}, host: SN-{id}, bmc: {{address: h, secret: s}}}}\n");
        }
        self.write_inventory(&text);
    }

    pub(crate) fn write_inventory(&self, text: &str) {
        let new = self.path("inventory.new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.path("inventory.yaml")).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = match self.files {
            None => Command::new(BINARY),
            Some(files) => {
                let mut shell = Command::new("sh");
                let script = format!("ulimit -Sn {files}; exec \"$0\" \"$@\"");
                shell.args(["-c", &script, BINARY]);
                shell
            }
        };
        command
            .arg(format!("--inventory={}", self.path("inventory.yaml").display()))
            .arg(format!("--state={}", self.path("state").display()))
            .arg("--log-level=trace")
            .args(&self.flags)
            .stderr(
                fs::File::options().create(true).append(true).open(self.path("stderr")).unwrap(),
            );
        command
    }

    /// Boots it, and waits until it answers.
    pub(crate) async fn start(&mut self) {
        let (port, metrics) = (free_port(), free_port());
        let mut child = self
            .command()
            .arg(format!("--addr=127.0.0.1:{port}"))
            .arg(format!("--metrics-addr=127.0.0.1:{metrics}"))
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let end = Instant::now() + PATIENCE;
        let client = loop {
            let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}")).unwrap();
            match endpoint.connect().await {
                Ok(channel) => break CapacityProviderClient::new(channel),
                Err(error) => {
                    assert!(child.try_wait().unwrap().is_none(), "it ended: {}", self.stderr());
                    assert!(Instant::now() < end, "{error}");
                    tokio::time::sleep(LOOK).await;
                }
            }
        };
        self.process = Some(Process { child, client, metrics });
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        let mut process = self.process.take().unwrap();
        process.child.kill().unwrap();
        process.child.wait().unwrap();
    }

    fn client(&mut self) -> &mut CapacityProviderClient<Channel> {
        &mut self.process.as_mut().unwrap().client
    }

    /// For calls beside those of the rig.
    pub(crate) fn another_client(&self) -> CapacityProviderClient<Channel> {
        self.process.as_ref().unwrap().client.clone()
    }

    pub(crate) async fn get(&mut self, id: &str) -> Result<Machine, Status> {
        let found = self.client().get(MachineRef { id: id.into() }).await;
        found.map(tonic::Response::into_inner)
    }

    pub(crate) async fn list(&mut self) -> Vec<Machine> {
        self.client().list(ListFilter::default()).await.unwrap().into_inner().machines
    }

    pub(crate) async fn configure(&mut self, id: &str, blob: &str) {
        self.client().configure(configure(id, blob)).await.unwrap();
    }

    pub(crate) async fn drain(&mut self, id: &str, grace: i64) {
        self.client().drain(drain(id, grace)).await.unwrap();
    }

    pub(crate) async fn delete(&mut self, id: &str) -> Status {
        let request = DeleteRequest { machine_id: id.into(), ..DeleteRequest::default() };
        self.client().delete(request).await.unwrap_err()
    }

    pub(crate) async fn reaches(&mut self, id: &str, state: MachineState) -> Machine {
        let end = Instant::now() + PATIENCE;
        loop {
            let machine = self.get(id).await.unwrap();
            if machine.state() == state {
                return machine;
            }
            assert!(Instant::now() < end, "{machine:?}\n{}", self.stderr());
            tokio::time::sleep(LOOK).await;
        }
    }

    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(self.path("stderr")).unwrap()
    }

    /// What the hooks told, in order.
    pub(crate) fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Files in the spool but for its lock.
    pub(crate) fn blobs(&self) -> usize {
        fs::read_dir(self.path("state/blobs")).unwrap().count() - 1
    }

    /// One sample of `/metrics`.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let port = self.process.as_ref().unwrap().metrics;
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if self.process.is_some() {
            self.kill();
        }
        // No hook outlives a test.
        let _ = Spool::open(&self.path("state/blobs"));
    }
}

pub(crate) fn configure(id: &str, blob: &str) -> ConfigureRequest {
    ConfigureRequest {
        machine_id: id.into(),
        cluster_id: "c-1".into(),
        bootstrap_blob: blob.into(),
        ..ConfigureRequest::default()
    }
}

pub(crate) fn drain(id: &str, grace: i64) -> DrainRequest {
    DrainRequest { machine_id: id.into(), grace_period_seconds: grace, ..DrainRequest::default() }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Waits for the world to look so.
pub(crate) async fn until(mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "it does not come about");
        tokio::time::sleep(LOOK).await;
    }
}
