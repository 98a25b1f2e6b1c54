//! Real sockets, real disks, real certificates.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bigfleet_net::{
    grpc::{self, GrpcServer},
    peer::Gate,
    readiness::Readiness,
    rule::Rule,
    shutdown::Shutdown,
    tls::{Security, Tls},
};
use bigfleet_testkit::pki::{Material, Pki};
use tokio::{
    net::TcpListener,
    time::{Instant, sleep},
};

use super::{super::*, *};
use crate::{
    log::RealDisk,
    state::{Command, MAX_KIND},
};

const LIMIT: Duration = Duration::from_secs(60);

/// The join address without the service in front of it.
#[derive(Clone, Default)]
struct Direct(Arc<std::sync::Mutex<Vec<Consensus>>>);

impl Direct {
    fn all(&self) -> Vec<Consensus> {
        self.0.lock().unwrap().clone()
    }
}

impl Peers for Direct {
    fn statuses(&self) -> Answer<'_, Vec<Result<Status, String>>> {
        Box::pin(async { self.all().iter().map(|one| Ok(one.status())).collect() })
    }

    fn join(&self, request: Joiner) -> Answer<'_, Result<(), MembershipError>> {
        Box::pin(async move {
            for one in self.all() {
                match one.join(&request).await {
                    Err(MembershipError::NotLeader) => {}
                    other => return other,
                }
            }
            Err(MembershipError::NotLeader)
        })
    }
}

struct Site {
    pki: Pki,
    peers: Direct,
    shutdown: Shutdown,
    held: Vec<(Material, tempfile::TempDir)>,
}

impl Site {
    fn new() -> Self {
        let (peers, shutdown) = (Direct::default(), Shutdown::new());
        Self { pki: Pki::new().unwrap(), peers, shutdown, held: Vec::new() }
    }

    fn security(&mut self, identity: &str) -> Security {
        let material = self.pki.material(&[identity]).unwrap();
        let tls = Tls::load(&material.cert(), &material.key(), &material.ca()).unwrap();
        self.held.push((material, tempfile::tempdir().unwrap()));
        Security::Mtls(Arc::new(tls))
    }

    /// A replica with a certificate of its own, on a port of its own.
    async fn start(&mut self, node_id: &str, alone: bool) -> (Consensus, SocketAddr) {
        let security = self.security(&format!("bigfleet://coordinator/{node_id}"));
        let peers = (!alone).then(|| Arc::new(self.peers.clone()) as Arc<dyn Peers>);
        self.start_with(node_id, security, peers).await
    }

    async fn start_with(
        &mut self,
        node_id: &str,
        security: Security,
        peers: Option<Arc<dyn Peers>>,
    ) -> (Consensus, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let world = World {
            disk: Arc::new(RealDisk),
            root: self.held.last().unwrap().1.path().to_owned(),
            transport: Arc::new(GrpcTransport::new(security.clone())),
            peers,
            entropy: Arc::new(Entropy::from_system().unwrap()),
            log_thread: true,
            observe_fsync: None,
        };
        let config = Config {
            node_id: node_id.to_owned(),
            raft_address: format!("localhost:{}", address.port()),
            grpc_address: String::new(),
            max_kind: MAX_KIND,
            bootstrap: true,
            force_bootstrap: false,
            initial_replicas: 3,
            timers: Timers::scaled(4),
            compaction: Compaction::default(),
        };
        let consensus = Consensus::start(config, world).await.unwrap();
        let server = GrpcServer::new(security, Readiness::new("test"));
        let server =
            server.add_service(ConsensusService::server(consensus.clone(), Gate::default()));
        tokio::spawn(server.serve(listener, self.shutdown.clone()));
        self.peers.0.lock().unwrap().push(consensus.clone());
        (consensus, address)
    }

    async fn leader(&self) -> Consensus {
        let end = Instant::now() + LIMIT;
        loop {
            let opened = |one: &Consensus| one.read(|state| state.fleet_id().is_some());
            if let Some(leader) = self.peers.all().into_iter().find(|one| opened(one) == Some(true))
            {
                return leader;
            }
            let statuses: Vec<_> = self.peers.all().iter().map(Consensus::status).collect();
            assert!(Instant::now() < end, "no open fleet: {statuses:#?}");
            sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.shutdown.request();
    }
}

fn put(value: u64) -> Command {
    let (name, address) = (format!("p-{}", value % 100), value.to_string());
    Command::UpsertProvider { name, address, region: String::new() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_agree_over_mtls_and_let_no_others_in() {
    let mut site = Site::new();
    let mut port = None;
    for ordinal in 0..3 {
        port = Some(site.start(&format!("c-{ordinal}"), false).await.1);
    }
    let leader = site.leader().await;
    for value in 0..20 {
        leader.propose(&put(value), LIMIT).await.unwrap();
    }
    let end = Instant::now() + LIMIT;
    let applied = |one: &Consensus| one.peek(|state| state.providers().len()) == Some(20);
    while !site.peers.all().iter().all(applied) {
        assert!(Instant::now() < end, "not replicated");
        sleep(Duration::from_millis(20)).await;
    }
    // Identities of other kinds pass the handshake and are refused.
    for (identity, admitted) in [
        ("bigfleet://admin", true),
        ("bigfleet://coordinator/c-9", true),
        ("bigfleet://shard/s-1", false),
        ("bigfleet://readonly", false),
    ] {
        let security = site.security(identity);
        let address = format!("localhost:{}", port.unwrap().port());
        let channel = grpc::connect(&address, &security, Rule::coordinators()).await.unwrap();
        let mut client = proto::consensus_client::ConsensusClient::new(channel);
        let refused = client.call(proto::CallRequest::default()).await.unwrap_err();
        let expected = match admitted {
            true => tonic::Code::InvalidArgument,
            false => tonic::Code::PermissionDenied,
        };
        assert_eq!(refused.code(), expected, "{identity}: {refused}");
    }
    // Another fleet, another member.
    let transport = GrpcTransport::new(site.security("bigfleet://coordinator/c-9"));
    let running = leader.shared.running().unwrap();
    let member = running.members().get_node(&running.me).unwrap().clone();
    let ask = |fleet_id: &str, to| {
        let (from, request) = (MemberId::new("c-9", 1), Request::PreVote(None));
        let envelope = Envelope { fleet_id: fleet_id.to_owned(), from, to, request };
        transport.call(&member, envelope)
    };
    let mine = leader.status().fleet_id;
    assert!(matches!(ask(&mine, running.me).await, Ok(Response::PreVote(false))));
    let foreign = ask("u.00000000", running.me).await.unwrap_err();
    assert_eq!(foreign, CallError::Refused(format!("this is fleet {mine}")));
    let wiped = MemberId { incarnation: 1, ..running.me };
    assert!(matches!(ask(&mine, wiped).await, Err(CallError::Refused(_))));
}

/// As processes do it: status and join over the service, consensus beside it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_find_each_other_behind_the_join_address() {
    let mut site = Site::new();
    let mut listeners = Vec::new();
    for _ in 0..3 {
        listeners.push(TcpListener::bind("127.0.0.1:0").await.unwrap());
    }
    let port = |one: &TcpListener| format!("localhost:{}", one.local_addr().unwrap().port());
    let join_addr: Vec<String> = listeners.iter().map(port).collect();
    let join_addr = [join_addr.join(","), "unresolved.invalid:1".to_owned()].join(",");
    for (ordinal, listener) in listeners.into_iter().enumerate() {
        let node_id = format!("c-{ordinal}");
        let security = site.security(&format!("bigfleet://coordinator/{node_id}"));
        let peers = Arc::new(JoinAddr::new(&join_addr, security.clone()));
        let (consensus, _) = site.start_with(&node_id, security.clone(), Some(peers)).await;
        let service = crate::service::Coordinator::new(
            Arc::new(consensus),
            crate::reports::LivenessLimits::default(),
            Arc::default(),
        );
        let server = GrpcServer::new(security, Readiness::new("test"));
        let server = server.add_service(Arc::new(service).into_service());
        tokio::spawn(server.serve(listener, site.shutdown.clone()));
    }
    let leader = site.leader().await;
    leader.propose(&put(1), LIMIT).await.unwrap();
    assert_eq!(leader.status().voters, ["c-0", "c-1", "c-2"]);
    // A member that is gone is told so in a way that it understands.
    let security = site.security("bigfleet://coordinator/c-1");
    let request = Joiner {
        node_id: "c-1".to_owned(),
        raft_address: "localhost:1".to_owned(),
        fleet_id: leader.status().fleet_id,
        max_kind: MAX_KIND,
        incarnation: 1,
        ..Joiner::default()
    };
    let refused = JoinAddr::new(&join_addr, security).join(request).await.unwrap_err();
    assert_eq!(refused, MembershipError::NoLongerAMember("c-1".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_voter_opens_alone_and_keeps_its_word() {
    let mut site = Site::new();
    site.start("node-1", true).await;
    let leader = site.leader().await;
    leader.propose(&put(1), LIMIT).await.unwrap().outcome.unwrap();
    leader.shutdown().await;
    let root = site.held[0].1.path();
    let lock = crate::log::DataDir::lock(Arc::new(RealDisk), root);
    assert!(matches!(lock, Err(crate::log::LogError::Locked { .. })), "one holder");
}

/// `cargo test -p bigfleet-coordinator --release -- --ignored --nocapture commits`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures the disk"]
async fn single_commits_a_second_beside_raw_fsyncs() {
    use std::io::Write;
    let mut file = tempfile::tempfile().unwrap();
    let (begun, mut fsyncs) = (std::time::Instant::now(), 0_u32);
    while begun.elapsed() < Duration::from_secs(2) {
        file.write_all(&[0; 256]).unwrap();
        file.sync_data().unwrap();
        fsyncs += 1;
    }
    println!("raw: {:.0} fsyncs/s", f64::from(fsyncs) / begun.elapsed().as_secs_f64());
    for replicas in [1, 3] {
        let mut site = Site::new();
        for ordinal in 0..replicas {
            site.start(&format!("c-{ordinal}"), replicas == 1).await;
        }
        let leader = site.leader().await;
        for clients in [1, 64, 256] {
            let (begun, mut all) = (std::time::Instant::now(), tokio::task::JoinSet::new());
            for client in 0..clients {
                let leader = leader.clone();
                all.spawn(async move {
                    let (mut commits, mut slowest) = (0_u64, Duration::ZERO);
                    while begun.elapsed() < Duration::from_secs(3) {
                        let called = std::time::Instant::now();
                        leader.propose(&put(client * 1_000_000 + commits), LIMIT).await.unwrap();
                        slowest = slowest.max(called.elapsed());
                        commits += 1;
                    }
                    (commits, slowest)
                });
            }
            let done = all.join_all().await;
            let commits: u64 = done.iter().map(|(commits, _)| commits).sum();
            let slowest = done.iter().map(|(_, slowest)| *slowest).max().unwrap();
            let rate = commits as f64 / begun.elapsed().as_secs_f64();
            println!(
                "{replicas} replicas, {clients} clients: {rate:.0} commits/s, slowest {slowest:?}"
            );
        }
    }
}
