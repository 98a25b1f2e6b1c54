//! Shards that report and an admin who writes, for as long as they are let.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use bigfleet_wire::v1alpha1::{ShardReport, ShardSummary};
use tokio::{task::JoinSet, time::interval};
use tokio_util::sync::CancellationToken;

use crate::{client::Client, fleet::Fleet};

/// Shards of the load.
pub(crate) const SHARDS: usize = 20;

/// Writers at once.
const WRITERS: usize = 4;

/// A load under way.
pub(crate) struct Load {
    stop: CancellationToken,
    reporting: JoinSet<()>,
    writing: JoinSet<BTreeSet<String>>,
    reports: Arc<AtomicU64>,
}

impl Load {
    /// All shards together report so often a second.
    pub(crate) fn start(fleet: &Fleet, per_second: u64) -> Self {
        let stop = CancellationToken::new();
        let reports = Arc::<AtomicU64>::default();
        let (mut reporting, mut writing) = (JoinSet::new(), JoinSet::new());
        let between = Duration::from_secs(SHARDS as u64) / u32::try_from(per_second).unwrap();
        for shard in 0..SHARDS {
            let id = format!("load-{shard}");
            let material = fleet.pki.material(&[&format!("bigfleet://shard/{id}")]).unwrap();
            let client = fleet.client_as(&material);
            let (stop, reports) = (stop.clone(), reports.clone());
            reporting.spawn(async move {
                stop.run_until_cancelled(report(client, id, between, &reports)).await;
                drop(material);
            });
        }
        for writer in 0..WRITERS {
            writing.spawn(write(fleet.client(), writer, stop.clone()));
        }
        Self { stop, reporting, writing, reports }
    }

    /// Reports that were answered so far.
    pub(crate) fn reports(&self) -> u64 {
        self.reports.load(Ordering::Relaxed)
    }

    /// Ends it; what was acknowledged.
    pub(crate) async fn stop(self) -> BTreeSet<String> {
        self.stop.cancel();
        self.reporting.join_all().await;
        self.writing.join_all().await.into_iter().flatten().collect()
    }
}

async fn report(client: Client, id: String, between: Duration, reports: &AtomicU64) {
    let cycle = AtomicI64::new(0);
    let mut ticks = interval(between);
    loop {
        ticks.tick().await;
        let report = ShardReport {
            shard_id: id.clone(),
            cycle: cycle.fetch_add(1, Ordering::Relaxed) + 1,
            shard_epoch: 1,
            instance: 7,
            shard_address: "shard:7780".to_owned(),
            summary: Some(ShardSummary { total_machines: 100, ..ShardSummary::default() }),
            ..ShardReport::default()
        };
        if client.report(&report).await.is_ok() {
            reports.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Names one after the other; those that were acknowledged.
async fn write(client: Client, writer: usize, stop: CancellationToken) -> BTreeSet<String> {
    let mut acknowledged = BTreeSet::new();
    for number in 0.. {
        let name = format!("w{writer}-{number}");
        let written = stop.run_until_cancelled(client.write(&name)).await;
        match written {
            None => break,
            Some(Ok(())) => {
                acknowledged.insert(name);
            }
            // Nobody leads just now.
            Some(Err(_)) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    acknowledged
}
