//! Whose a machine is, by the files of the shards: never two shards', in the end one's.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bigfleet_model::gate::inventory;
use bigfleet_shard::holdings::{Holdings, Ownership, file};
use bigfleet_wire::v1alpha1::Machine;
use tokio::{task::JoinHandle, time::sleep};

use crate::site::Truth;

/// How often it looks.
const LOOK: Duration = Duration::from_millis(50);

/// Where shards keep what they own, by shard.
pub(crate) type Files = BTreeMap<&'static str, PathBuf>;

/// What a shard's file says.
pub(crate) fn holdings(path: &Path) -> Holdings {
    file::read(path).unwrap()
}

/// Owners of every machine.
pub(crate) fn owners(files: &Files, machines: &[Machine]) -> BTreeMap<String, Vec<&'static str>> {
    let shards: Vec<(&'static str, Ownership)> =
        files.iter().map(|(shard, path)| (*shard, Ownership::of(&holdings(path)))).collect();
    let owners_of = |message: &Machine| {
        let machine = inventory::machine(message.clone()).unwrap().machine;
        let owns = |(_, one): &&(&'static str, Ownership)| {
            one.owns(&machine.id, machine.state, machine.cluster.as_ref(), &machine.class)
        };
        let owners = shards.iter().filter(owns).map(|(shard, _)| *shard).collect();
        (message.id.clone(), owners)
    };
    machines.iter().map(owners_of).collect()
}

/// Looks all the time.
pub(crate) struct Witness {
    looks: Arc<AtomicU64>,
    looking: JoinHandle<()>,
}

impl Witness {
    pub(crate) fn start(files: Files, mut truth: Truth) -> Self {
        let looks = Arc::new(AtomicU64::new(0));
        let count = looks.clone();
        let looking = tokio::spawn(async move {
            loop {
                if let Some(machines) = truth.list().await {
                    never_two(&files, &machines);
                    count.fetch_add(1, Ordering::Relaxed);
                }
                sleep(LOOK).await;
            }
        });
        Self { looks, looking }
    }

    /// It has seen nothing odd.
    pub(crate) async fn end(self) {
        self.looking.abort();
        let ended = self.looking.await;
        assert!(ended.unwrap_err().is_cancelled(), "a machine had two owners; see above");
        assert!(self.looks.load(Ordering::Relaxed) > 0, "it never saw a machine");
    }
}

/// Files are read one after the other; whoever lets go writes that down long before
/// anybody gains, so that a second look tells what the first may have missed.
fn never_two(files: &Files, machines: &[Machine]) {
    let twice = |owners: &BTreeMap<String, Vec<&'static str>>| -> Vec<String> {
        let twice = owners.iter().filter(|(_, owners)| owners.len() > 1);
        twice.map(|(machine, owners)| format!("{machine}: {owners:?}")).collect()
    };
    let first = twice(&owners(files, machines));
    if !first.is_empty() {
        let second = twice(&owners(files, machines));
        assert!(second.is_empty(), "two owners: {second:?}");
    }
}
