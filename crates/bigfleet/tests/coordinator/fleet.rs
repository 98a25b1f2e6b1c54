//! Three replicas: their directories, addresses, certificates and processes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
    sync::Arc,
};

use bigfleet_net::tls::{Security, Tls};
use bigfleet_testkit::pki::{Material, Pki};
use tempfile::TempDir;

use crate::{
    client::Client,
    rig::{
        binaries::{bigfleet, bigfleetctl},
        ports::port,
        process::{Process, flags, get, sum, until},
    },
};

/// Replicas of a fleet.
pub(crate) const REPLICAS: usize = 3;

/// Where one replica is, whether it runs or not.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) id: String,
    pub(crate) grpc: String,
    pub(crate) raft: String,
    pub(crate) http: String,
}

impl Place {
    fn new(ordinal: usize) -> Self {
        let [grpc, raft, http] = std::array::from_fn(|_| port());
        Self { id: format!("c-{ordinal}"), grpc, raft, http }
    }
}

/// A fleet. Processes end with it.
pub(crate) struct Fleet {
    pub(crate) dir: TempDir,
    pub(crate) pki: Pki,
    pub(crate) places: Vec<Place>,
    pub(crate) replicas: Vec<Option<Process>>,
    pub(crate) materials: Vec<Material>,
    pub(crate) admin: Material,
    /// Above 1 where a leader is to stay one although the machine is busy.
    timer_scale: u32,
    /// Flags of every replica besides the usual ones.
    also: Vec<String>,
}

/// What a busy machine needs.
const STEADY: u32 = 4;

impl Fleet {
    /// Nobody runs yet.
    pub(crate) fn new() -> Self {
        let pki = Pki::new().unwrap();
        let identity = |ordinal| format!("bigfleet://coordinator/c-{ordinal}");
        Self {
            dir: TempDir::new().unwrap(),
            places: (0..REPLICAS).map(Place::new).collect(),
            replicas: (0..REPLICAS).map(|_| None).collect(),
            materials: (0..REPLICAS).map(|i| pki.material(&[&identity(i)]).unwrap()).collect(),
            admin: pki.material(&["bigfleet://admin"]).unwrap(),
            timer_scale: STEADY,
            also: Vec::new(),
            pki,
        }
    }

    /// Three replicas that have opened a fleet.
    pub(crate) async fn open() -> Self {
        Self::open_scaled(STEADY).await
    }

    /// The same, with other timers.
    pub(crate) async fn open_scaled(timer_scale: u32) -> Self {
        let mut fleet = Self { timer_scale, ..Self::new() };
        fleet.start_all();
        fleet.until_open().await;
        fleet
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The data directory of a replica.
    pub(crate) fn data_dir(&self, replica: usize) -> PathBuf {
        self.path(&self.places[replica].id)
    }

    /// Addresses of all replicas, as a flag writes them.
    pub(crate) fn addresses(&self) -> String {
        self.places.iter().map(|place| place.grpc.clone()).collect::<Vec<_>>().join(",")
    }

    /// What a replica is started with, and these flags besides or instead.
    pub(crate) fn args(&self, replica: usize, more: &[&str]) -> Vec<String> {
        let (place, material) = (&self.places[replica], &self.materials[replica]);
        let usual = [
            ("--id", place.id.clone()),
            ("--listen", place.grpc.clone()),
            ("--raft-bind", place.raft.clone()),
            ("--metrics-addr", place.http.clone()),
            ("--data-dir", self.data_dir(replica).display().to_string()),
            ("--join-addr", self.addresses()),
            ("--bootstrap", "true".to_owned()),
            ("--raft-timer-scale", self.timer_scale.to_string()),
            ("--tls-cert", material.cert().display().to_string()),
            ("--tls-key", material.key().display().to_string()),
            ("--tls-ca", material.ca().display().to_string()),
        ];
        let all: Vec<&str> =
            self.also.iter().map(String::as_str).chain(more.iter().copied()).collect();
        std::iter::once("coordinator".to_owned()).chain(flags(usual, &all)).collect()
    }

    /// Every replica is started with these flags from now on.
    pub(crate) fn also(&mut self, flags: &[&str]) {
        self.also.extend(flags.iter().map(|&flag| flag.to_owned()));
    }

    pub(crate) fn log(&self, replica: usize) -> PathBuf {
        self.path(&format!("{}.log", self.places[replica].id))
    }

    pub(crate) fn start(&mut self, replica: usize) {
        let args = self.args(replica, &[]);
        self.replicas[replica] = Some(Process::spawn(&bigfleet(), &args, &self.log(replica)));
    }

    pub(crate) fn start_all(&mut self) {
        (0..REPLICAS).for_each(|replica| self.start(replica));
    }

    pub(crate) fn process(&mut self, replica: usize) -> &mut Process {
        self.replicas[replica].as_mut().expect("it was started")
    }

    /// SIGKILL, and gone when this returns.
    pub(crate) async fn kill(&mut self, replica: usize) {
        let mut process = self.replicas[replica].take().expect("it was started");
        process.kill().await;
    }

    /// Kills a replica and empties its disk.
    pub(crate) async fn wipe(&mut self, replica: usize) {
        self.kill(replica).await;
        fs::remove_dir_all(self.data_dir(replica)).unwrap();
    }

    /// All three vote in one open fleet, and all three see its leader.
    pub(crate) async fn until_open(&mut self) -> String {
        let client = self.client();
        let seen = until("an open fleet of three voters", async || {
            for (place, process) in self.places.iter().zip(&mut self.replicas) {
                let process = process.as_mut()?;
                assert!(process.is_running(), "{} ended: {}", place.id, process.tail());
            }
            let mut fleets = Vec::new();
            for replica in 0..REPLICAS {
                let status = client.status(replica).await.ok()?;
                let settled = status.phase == 2 && status.voters.len() == REPLICAS;
                (settled && !status.leader_id.is_empty()).then_some(())?;
                fleets.push(status.fleet_id);
                get(&self.places[replica].http, "/readyz")
                    .await
                    .filter(|(code, _)| *code == 200)?;
            }
            fleets.dedup();
            fleets.pop().filter(|_| fleets.is_empty())
        });
        seen.await
    }

    /// Who leads, as the replicas that run say of themselves.
    pub(crate) async fn leader(&self) -> usize {
        let client = self.client();
        until("a leader", async || self.leader_now(&client).await).await
    }

    pub(crate) async fn leader_now(&self, client: &Client) -> Option<usize> {
        for replica in (0..REPLICAS).filter(|one| self.replicas[*one].is_some()) {
            if let Ok(status) = client.status(replica).await
                && status.leader_id == self.places[replica].id
            {
                return Some(replica);
            }
        }
        None
    }

    pub(crate) fn client(&self) -> Client {
        self.client_as(&self.admin)
    }

    pub(crate) fn client_as(&self, material: &Material) -> Client {
        Client::new(self.places.iter().map(|place| place.grpc.clone()), &security(material))
    }

    /// `/readyz` of a replica.
    pub(crate) async fn readyz(&self, replica: usize) -> Option<(u16, String)> {
        get(&self.places[replica].http, "/readyz").await
    }

    /// A metric of a replica.
    pub(crate) async fn metric(&self, replica: usize, name: &str) -> Option<f64> {
        sum(&get(&self.places[replica].http, "/metrics").await?.1, name)
    }

    /// Runs `bigfleetctl` as an admin.
    pub(crate) async fn ctl(&self, args: &[&str]) -> Output {
        let mut command = tokio::process::Command::new(bigfleetctl());
        command.env_clear().env("HOME", self.dir.path());
        command.args(["--coordinator", &self.addresses()]).args(self.admin.args()).args(args);
        command.output().await.unwrap()
    }
}

/// Copies a directory.
pub(crate) fn copy(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp").arg("-rT").args([from, to]).status();
    assert!(copied.unwrap().success(), "cp {} {}", from.display(), to.display());
}

pub(crate) fn security(material: &Material) -> Security {
    Security::Mtls(Arc::new(Tls::load(&material.cert(), &material.key(), &material.ca()).unwrap()))
}
