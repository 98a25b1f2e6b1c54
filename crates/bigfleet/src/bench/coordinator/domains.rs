//! A fleet of many domains: its snapshot, a restore of it, and a replica that joins.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use bigfleet_coordinator::{
    backup::Backup,
    consensus::Restore,
    log::{Disk, RealDisk, SnapshotMeta, Snapshots, StoredSnapshot},
    state::State,
};
use bigfleet_wire::v1alpha1::{
    AssignDomainRequest, ReportAck, ShardReport, SnapshotSaveRequest, snapshot_save_chunk::Payload,
};
use tokio::task::JoinSet;
use tonic::{Response, Status};

use super::{
    CUT_SECONDS, at_most,
    caller::Caller,
    mebibytes, rate,
    replicas::{Client, Replicas, failed},
    told,
};
use crate::{bench::quality::Grade, error::Error};

const CLIENTS: usize = 256;

/// Each connection carries so many clients.
const PER_CONNECTION: usize = 32;

/// The owner of all of them.
const SHARD: &str = "owner";

pub(super) async fn measure(
    replicas: &mut Replicas,
    domains: usize,
    dir: &Path,
    grades: &mut Vec<Grade>,
) -> Result<(), Error> {
    replicas.settled().await?;
    let mut caller = Caller::new(replicas)?;
    caller.call(register).await?;
    let began = Instant::now();
    assign(replicas, domains).await?;
    grades.push(told("domains", domains.to_string()));
    grades.push(told("assigned per second", rate(domains as f64 / began.elapsed().as_secs_f64())));

    let began = Instant::now();
    let saved = save(&mut caller).await?;
    grades.push(told("snapshot saved by a client, s", seconds(began.elapsed())));
    grades.push(told("its size", mebibytes(saved.state.len() as u64)));
    let began = Instant::now();
    let state = State::from_payload(&saved.state).map_err(|error| failed(&error))?;
    grades.push(told("state loaded from it, s", seconds(began.elapsed())));
    grades.push(at_most(
        "snapshot cut, written and synced, s",
        cut(&state, &saved, dir)?,
        CUT_SECONDS,
    ));
    grades.push(told("restored into an empty directory, s", restore(saved, dir)?));

    let follower = (replicas.settled().await? + 1) % 3;
    replicas.wipe(follower)?;
    let began = Instant::now();
    replicas.start(follower)?;
    replicas.settled().await?;
    grades.push(told("a wiped replica votes again after, s", seconds(began.elapsed())));
    Ok(())
}

fn seconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64())
}

async fn register(mut client: Client) -> Result<Response<ReportAck>, Status> {
    let report = ShardReport { shard_id: SHARD.to_owned(), cycle: 1, ..ShardReport::default() };
    client.report_shard(report).await
}

async fn assign(replicas: &Replicas, domains: usize) -> Result<(), Error> {
    let mut tasks = JoinSet::new();
    let mut caller = Caller::new(replicas)?;
    for number in 0..CLIENTS {
        if number % PER_CONNECTION == 0 {
            caller = Caller::new(replicas)?;
        }
        let mut caller = caller.clone();
        tasks.spawn(async move {
            for domain in (number..domains).step_by(CLIENTS) {
                let request = AssignDomainRequest {
                    topology_key: "topology.kubernetes.io/rack".to_owned(),
                    topology_value: format!("region-1-zone-a-rack-{domain}"),
                    shard_id: SHARD.to_owned(),
                };
                let call = |mut client: Client| {
                    let request = request.clone();
                    async move { client.assign_domain(request).await }
                };
                caller.call(call).await?;
            }
            Ok::<(), Error>(())
        });
    }
    tasks.join_all().await.into_iter().collect()
}

async fn save(caller: &mut Caller) -> Result<StoredSnapshot, Error> {
    let call =
        |mut client: Client| async move { client.snapshot_save(SnapshotSaveRequest {}).await };
    let mut stream = caller.call(call).await?;
    let (mut meta, mut state) = (SnapshotMeta::default(), Vec::new());
    while let Some(chunk) = stream.message().await.map_err(|status| failed(&status))? {
        match chunk.payload {
            Some(Payload::MetaJson(json)) => {
                meta = serde_json::from_slice(&json).map_err(|error| failed(&error))?;
            }
            Some(Payload::Data(data)) => state.extend(data),
            None => {}
        }
    }
    Ok(StoredSnapshot { meta, state })
}

/// What a replica does every 30 s: a copy, its payload, on the disk.
fn cut(state: &State, saved: &StoredSnapshot, dir: &Path) -> Result<f64, Error> {
    let snapshots = Snapshots::open(Arc::new(RealDisk), &dir.join("cut"));
    let snapshots = snapshots.map_err(|error| failed(&error))?;
    let began = Instant::now();
    let payload = state.clone().to_payload();
    let stored = StoredSnapshot { meta: saved.meta.clone().describing(&payload), state: payload };
    snapshots.save(&stored).map_err(|error| failed(&error))?;
    Ok(began.elapsed().as_secs_f64())
}

fn restore(backup: StoredSnapshot, dir: &Path) -> Result<String, Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let began = Instant::now();
    let restore = Restore {
        backup: Backup::from_snapshot(backup).map_err(|error| failed(&error))?,
        node_id: "c-0".to_owned(),
        raft_address: "127.0.0.1:7791".to_owned(),
        above: None,
        now: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
        incarnation: 1,
        // The backup names its own.
        uuid: String::new(),
    };
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    restore.into_dir(&disk, &dir.join("restored")).map_err(|error| failed(&error))?;
    Ok(seconds(began.elapsed()))
}
