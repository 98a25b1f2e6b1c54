//! Three replicas as children.

use std::{
    env, fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use bigfleet_net::{grpc::connect_lazy, message_limits, rule::Rule, tls::Security};
use bigfleet_wire::v1alpha1::{
    RaftStatusRequest, RaftStatusResponse, coordinator_client::CoordinatorClient,
};
use tokio::time::sleep;
use tonic::transport::Channel;

use crate::{bench::memory, error::Error};

const REPLICAS: usize = 3;

/// How long anything may take to settle.
const PATIENCE: Duration = Duration::from_secs(120);

/// A client of one replica.
pub(super) type Client = CoordinatorClient<Channel>;

/// They end when this is dropped.
pub(super) struct Replicas {
    dir: PathBuf,
    places: Vec<Place>,
    timer_scale: u32,
}

struct Place {
    grpc: String,
    raft: String,
    process: Option<Child>,
}

impl Drop for Replicas {
    fn drop(&mut self) {
        for process in self.places.iter_mut().filter_map(|place| place.process.as_mut()) {
            // It may have ended by itself; nobody needs what it leaves.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Replicas {
    /// An open fleet with its logs under this directory.
    pub(super) async fn open(dir: &Path, timer_scale: u32) -> Result<Self, Error> {
        let place = |_| Ok(Place { grpc: free_addr()?, raft: free_addr()?, process: None });
        let places: Result<Vec<Place>, Error> = (0..REPLICAS).map(place).collect();
        let mut this = Self { dir: dir.to_owned(), places: places?, timer_scale };
        for replica in 0..REPLICAS {
            this.start(replica)?;
        }
        this.settled().await?;
        Ok(this)
    }

    fn data_dir(&self, replica: usize) -> PathBuf {
        self.dir.join(format!("c-{replica}"))
    }

    pub(super) fn start(&mut self, replica: usize) -> Result<(), Error> {
        let all: Vec<&str> = self.places.iter().map(|place| &*place.grpc).collect();
        let place = &self.places[replica];
        let process = Command::new(env::current_exe()?)
            .args(["coordinator", "--bootstrap", "--id", &format!("c-{replica}")])
            .args(["--listen", &place.grpc, "--raft-bind", &place.raft])
            .args(["--join-addr", &all.join(","), "--metrics-addr", "0"])
            .args(["--raft-timer-scale", &self.timer_scale.to_string()])
            .args(["--log-level", "error", "--data-dir"])
            .arg(self.data_dir(replica))
            .stdout(Stdio::null())
            .spawn()?;
        self.places[replica].process = Some(process);
        Ok(())
    }

    /// Kills a replica and empties its disk.
    pub(super) fn wipe(&mut self, replica: usize) -> Result<(), Error> {
        if let Some(mut process) = self.places[replica].process.take() {
            process.kill()?;
            process.wait()?;
        }
        Ok(fs::remove_dir_all(self.data_dir(replica))?)
    }

    /// A connection of its own to a replica.
    fn client(&self, replica: usize) -> Result<Client, Error> {
        let addr = &self.places[replica].grpc;
        let channel = connect_lazy(addr, &Security::Plaintext, Rule::any_certificate());
        let channel = channel.map_err(|error| failed(&error))?;
        Ok(message_limits!(CoordinatorClient::new(channel)))
    }

    /// A connection of its own to each replica.
    pub(super) fn clients(&self) -> Result<Vec<Client>, Error> {
        (0..REPLICAS).map(|replica| self.client(replica)).collect()
    }

    pub(super) async fn status(&self, replica: usize) -> Option<RaftStatusResponse> {
        let mut client = self.client(replica).ok()?;
        let status =
            tokio::time::timeout(Duration::from_secs(2), client.raft_status(RaftStatusRequest {}));
        Some(status.await.ok()?.ok()?.into_inner())
    }

    /// The leader, once all vote and have applied what it has.
    pub(super) async fn settled(&self) -> Result<usize, Error> {
        let began = Instant::now();
        loop {
            let mut all = Vec::new();
            for replica in 0..REPLICAS {
                all.extend(self.status(replica).await);
            }
            let leader = all.iter().position(|one| one.leader_id == one.node_id);
            let index = leader.map(|leader| all[leader].applied_index);
            let same = |one: &RaftStatusResponse| {
                one.phase == 2 && one.voters.len() == REPLICAS && Some(one.applied_index) == index
            };
            match leader {
                Some(leader) if all.len() == REPLICAS && all.iter().all(same) => return Ok(leader),
                _ if began.elapsed() > PATIENCE => {
                    return Err(Error::Load(format!("no fleet of three has settled: {all:?}")));
                }
                _ => sleep(Duration::from_millis(10)).await,
            }
        }
    }

    /// Resident bytes of a replica, now and at most.
    pub(super) fn resident(&self, replica: usize) -> (u64, u64) {
        self.places[replica].process.as_ref().map_or((0, 0), |process| {
            (memory::resident_bytes_of(process.id()), memory::peak_resident_bytes_of(process.id()))
        })
    }
}

pub(super) fn failed(error: &dyn std::error::Error) -> Error {
    Error::Load(error.to_string())
}

/// An address that was free a moment ago.
fn free_addr() -> Result<String, Error> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}
