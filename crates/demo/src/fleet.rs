//! The whole fleet: processes, clouds, clusters, and eyes on them.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use bigfleet_net::{shutdown::Shutdown, tls::Security};
use bigfleet_provider_sim::{Freeze, Selector, SetStock};
use bigfleet_wire::v1alpha1::{ActuationMode, MachineState, ProviderEntry};
use futures_util::future::join_all;
use tempfile::TempDir;
use tokio::time::Instant;

use crate::{
    Error,
    cluster::{self, Backend, Cluster, workload::Workload},
    door,
    eyes::Eyes,
    kubernetes::{self, Assets},
    metrics::Metrics,
    part::Part,
    pki::{Material, Pki},
    ports,
    supply::{GENERAL, SITES, Supply},
    terminal,
};

/// How long the fleet may take to come up before that is an error.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two cycles of a shard: also what bounds reclaims.
pub(crate) const CYCLE: Duration = Duration::from_millis(300);
/// How long idle rented machines are kept.
pub(crate) const HOLD: Duration = Duration::from_secs(2);

/// A fleet at work.
pub(crate) struct Fleet {
    pub(crate) coordinators: Vec<Node>,
    pub(crate) shards: Vec<Node>,
    pub(crate) supplies: Vec<Supply>,
    pub(crate) clusters: Vec<Cluster>,
    pub(crate) eyes: Eyes,
    /// The identity of whoever only looks.
    pub(crate) reader: Security,
    /// Where `bigfleetctl` reads how to reach it.
    pub(crate) config: PathBuf,
    /// Where whoever reads clusters finds them.
    pub(crate) kubeconfig: PathBuf,
    /// Processes of real control planes; none where they are in memory.
    planes: Vec<Part>,
    stop: Shutdown,
    keeper: Part,
    directory: TempDir,
}

/// A process and where it is.
pub(crate) struct Node {
    pub(crate) part: Part,
    pub(crate) addr: String,
    /// Where its metrics are.
    pub(crate) http: String,
}

/// What clusters keep their objects in.
struct Worlds {
    backends: Vec<Backend>,
    planes: Vec<Part>,
    kubeconfig: PathBuf,
}

async fn worlds(
    kubernetes: bool,
    root: &Path,
    pki: &Pki,
    stop: &Shutdown,
) -> Result<Worlds, Error> {
    let names: Vec<String> = CLUSTERS.iter().map(|(id, _)| format!("cluster-{id}")).collect();
    if kubernetes {
        let planes = kubernetes::start(&Assets::find()?, root, pki, &names).await?;
        let backends = planes.clients.into_iter().map(Backend::real).collect();
        return Ok(Worlds { backends, planes: planes.parts, kubeconfig: planes.kubeconfig });
    }
    let servers: Vec<_> = names.iter().map(|_| cluster::server()).collect();
    let backends = servers.iter().map(Backend::memory).collect();
    let servers = names.into_iter().zip(servers).collect();
    let kubeconfig = door::open(root, servers, stop.clone()).await?;
    Ok(Worlds { backends, planes: Vec::new(), kubeconfig })
}

/// Which shard serves which cluster.
const CLUSTERS: [(&str, usize); 3] = [("a", 0), ("b", 0), ("c", 1)];

impl Fleet {
    /// Starts everything, and waits for nothing.
    pub(crate) async fn start(seed: u64, kubernetes: bool) -> Result<Self, Error> {
        let directory = tempfile::Builder::new().prefix("bigfleet-demo-").tempdir()?;
        let root = directory.path();
        let keeper = Part::keeper(root);
        keeper.start().await?;
        let pki = Pki::new(root.join("tls"))?;
        let stop = Shutdown::new();
        let Worlds { backends, planes, kubeconfig } = worlds(kubernetes, root, &pki, &stop).await?;
        let ports: [String; 13] = ports::free()?;
        let (of_replicas, of_shards) = ports.split_at(9);
        let (grpc, http) = (of_replicas[..3].to_vec(), of_replicas[3..6].to_vec());
        let mut coordinators = Vec::new();
        for (number, raft) in of_replicas[6..].iter().enumerate() {
            let id = format!("coordinator-{number}");
            let material = pki.issue(&format!("coordinator/{id}"))?;
            let mut args = replica(&id, &grpc[number], raft, &grpc.join(","), root, &material);
            args.push(format!("--metrics-addr={}", http[number]));
            let part = Part::new(&id, args, root);
            part.start().await?;
            let (addr, http) = (grpc[number].clone(), http[number].clone());
            coordinators.push(Node { part, addr, http });
        }
        let (mut shards, mut supplies) = (Vec::new(), Vec::new());
        for (number, site) in SITES.iter().enumerate() {
            let provider = pki.issue(&format!("provider/{}", site.name))?.security()?;
            let supply = Supply::start(site, seed, provider).await?;
            let id = format!("shard-{number}");
            let material = pki.issue(&format!("shard/{id}"))?;
            let (addr, http) = (of_shards[number].clone(), of_shards[2 + number].clone());
            let mut args = shard(&id, &addr, &supply.addr, &grpc.join(","), root, &material);
            args.push(format!("--metrics-addr={http}"));
            let part = Part::new(&id, args, root);
            part.start().await?;
            shards.push(Node { part, addr, http });
            supplies.push(supply);
        }
        let mut clusters = Vec::new();
        for ((id, shard), backend) in CLUSTERS.into_iter().zip(backends) {
            let security = pki.issue(&format!("cluster/cluster-{id}"))?.security()?;
            let addr = &shards[shard].addr;
            clusters.push(Cluster::start(id, shard, addr, security, backend)?);
        }
        let (reader, admin) = (pki.issue("readonly")?, pki.issue("admin")?);
        let config = terminal::write(root, &grpc, &reader, &admin)?;
        let (reader, admin) = (reader.security()?, admin.security()?);
        let addresses: Vec<String> = shards.iter().map(|node| node.addr.clone()).collect();
        let eyes = Eyes::open(&addresses, &grpc, &reader, &admin)?;
        Ok(Self {
            coordinators,
            shards,
            supplies,
            clusters,
            eyes,
            reader,
            config,
            kubeconfig,
            planes,
            stop,
            keeper,
            directory,
        })
    }

    /// Everybody answers: a leader, shards with machines, a session for each cluster.
    pub(crate) async fn until_up(&self) -> Result<(), Error> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let missing = match self.missing() {
                Some(missing) => missing,
                None => match self.register().await {
                    Ok(()) => return Ok(()),
                    Err(status) => format!("the coordinator knows no providers: {status}"),
                },
            };
            self.check().await?;
            if Instant::now() > deadline {
                return Err(Error::NotReady { seconds: PATIENCE.as_secs(), missing });
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Says where machines come from, as whoever runs a fleet does.
    async fn register(&self) -> Result<(), tonic::Status> {
        for (site, supply) in SITES.iter().zip(&self.supplies) {
            let (name, address) = (site.name.to_owned(), supply.addr.clone());
            let provider = ProviderEntry { name, address, region: String::new() };
            self.eyes.register(&provider).await?;
        }
        Ok(())
    }

    /// What does not answer yet.
    pub(crate) fn missing(&self) -> Option<String> {
        let seen = |number| self.eyes.replica(number);
        let leads = |number| seen(number).is_some_and(|it| it.voters.len() == 3 && it.phase == 2);
        for (number, node) in self.coordinators.iter().enumerate() {
            if !leads(number) || seen(number).is_none_or(|it| it.leader_id.is_empty()) {
                return Some(format!("{} knows no leader of three", node.part.id));
            }
        }
        for (number, node) in self.shards.iter().enumerate() {
            let seen = self.eyes.shard(number);
            if seen.answered.is_none() || seen.machines.is_empty() {
                return Some(format!("{} has no machines", node.part.id));
            }
            let clusters = self.clusters.iter().filter(|cluster| cluster.shard == number);
            let connected = seen.sessions.iter().filter(|session| session.connected).count();
            if connected < clusters.count() {
                return Some(format!("{} lacks a session", node.part.id));
            }
        }
        None
    }

    /// What a shard says in its own metrics, now.
    pub(crate) async fn metrics(&self, number: usize) -> std::io::Result<Metrics> {
        Metrics::read(&self.shards[number].http).await
    }

    /// Whether clusters are real API servers.
    pub(crate) fn is_real(&self) -> bool {
        !self.planes.is_empty()
    }

    /// Whether every process that should run does.
    pub(crate) async fn check(&self) -> Result<(), Error> {
        let nodes = self.coordinators.iter().chain(&self.shards).map(|node| &node.part);
        for part in nodes.chain(&self.planes) {
            if let Some(error) = part.died().await {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Everything works as usual again: parts run, clouds obey, brakes are off.
    pub(crate) async fn heal(&self) -> Result<(), Error> {
        for node in self.coordinators.iter().chain(&self.shards) {
            node.part.start().await?;
        }
        for cluster in &self.clusters {
            cluster.recover()?;
        }
        for (number, site) in SITES.iter().enumerate() {
            self.thaw(number, &Selector::default())?;
            self.supplies[number].closed.to([]);
            for cloud in [site.cheap_cloud(), site.dear_cloud()] {
                for zone in site.zones(cloud) {
                    self.stock(number, zone, u32::MAX)?;
                }
            }
        }
        Ok(())
    }

    /// Brakes of all shards off; they must answer.
    pub(crate) async fn release_brakes(&self) -> Result<(), tonic::Status> {
        for number in 0..self.shards.len() {
            let paused = self.eyes.shard(number).summary;
            if paused.is_some_and(|it| it.actuation_paused || it.dry_run) {
                self.eyes.actuate(number, ActuationMode::Active.into(), "reset").await?;
            }
        }
        Ok(())
    }

    /// Lets clouds obey again; an empty selector means all.
    pub(crate) fn thaw(&self, number: usize, whom: &Selector) -> Result<(), Error> {
        let thaw = Freeze { frozen: false, ..Freeze::default() };
        if *whom != Selector::default() {
            self.supplies[number].controls.freeze(whom, thaw)?;
            return Ok(());
        }
        let ids: Vec<String> = self.eyes.shard(number).machines.iter().filter_map(id_of).collect();
        if !ids.is_empty() {
            let all = Selector { machines: ids, ..Selector::default() };
            self.supplies[number].controls.freeze(&all, thaw)?;
        }
        Ok(())
    }

    /// How many general machines a zone has left.
    pub(crate) fn stock(&self, number: usize, zone: &str, count: u32) -> Result<(), Error> {
        let stock = SetStock { count, refill_per_hour: None };
        self.supplies[number].controls.stock(&Selector::zone(zone), stock)?;
        Ok(())
    }

    /// Sets a level.
    pub(crate) fn demand(&self, cluster: usize, workload: Workload, count: u32) {
        self.clusters[cluster].demand(workload, count);
    }

    /// Bytes in use by all processes of the demo, where the system tells.
    pub(crate) fn resident_bytes(&self) -> Option<u64> {
        let parts = self.coordinators.iter().chain(&self.shards).map(|node| &node.part);
        let pids = parts.chain(&self.planes).chain([&self.keeper]).filter_map(Part::pid);
        pids.chain([std::process::id()]).map(resident).sum()
    }

    /// Ends everything and leaves nothing.
    pub(crate) async fn stop(&self) -> Result<(), Error> {
        join_all(self.clusters.iter().map(Cluster::stop)).await;
        for node in self.coordinators.iter().chain(&self.shards) {
            node.part.kill().await;
        }
        self.supplies.iter().for_each(Supply::stop);
        self.stop.request();
        join_all(self.planes.iter().map(Part::kill)).await;
        self.keeper.kill().await;
        let path = self.directory.path();
        match std::fs::remove_dir_all(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::file(path)(error))
            }
            _ => Ok(()),
        }
    }
}

fn id_of(view: &bigfleet_wire::v1alpha1::MachineView) -> Option<String> {
    view.machine.as_ref().map(|machine| machine.id.clone())
}

/// What a process has in memory; pages that several share count once.
fn resident(pid: u32) -> Option<u64> {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

fn replica(
    id: &str,
    grpc: &str,
    raft: &str,
    all: &str,
    root: &Path,
    material: &Material,
) -> Vec<String> {
    let mut args = vec![
        "coordinator".to_owned(),
        format!("--id={id}"),
        format!("--listen={grpc}"),
        format!("--raft-bind={raft}"),
        format!("--data-dir={}", root.join(id).display()),
        format!("--join-addr={all}"),
        "--bootstrap=true".to_owned(),
        "--log-level=warn".to_owned(),
    ];
    args.extend(material.flags());
    args
}

fn shard(
    id: &str,
    addr: &str,
    provider: &str,
    coordinators: &str,
    root: &Path,
    material: &Material,
) -> Vec<String> {
    let mut args = vec![
        "shard".to_owned(),
        format!("--id={id}"),
        format!("--listen={addr}"),
        format!("--data-dir={}", root.join(id).display()),
        format!("--provider-addr={provider}"),
        format!("--coordinator-addr={coordinators}"),
        "--coordinator-heartbeat-interval=1s".to_owned(),
        format!("--cycle-interval={}ms", CYCLE.as_millis()),
        format!("--idle-hold-on-demand={}ms", HOLD.as_millis()),
        format!("--idle-hold-spot={}ms", HOLD.as_millis()),
        "--available-capacity-interval=1s".to_owned(),
        "--execute-timeout=10s".to_owned(),
        "--bootstrap-timeout=5s".to_owned(),
        "--log-level=warn".to_owned(),
    ];
    args.extend(material.flags());
    args
}

/// Whether a machine is one that plain pods run on.
pub(crate) fn is_general(machine: &bigfleet_wire::v1alpha1::Machine) -> bool {
    machine.instance_type == GENERAL
}

/// Whether nothing is under way with a machine.
pub(crate) fn at_rest(machine: &bigfleet_wire::v1alpha1::Machine) -> bool {
    use MachineState::{Configured, Idle, Speculative};
    matches!(machine.state(), Speculative | Idle | Configured)
}
