//! Every set of wiped disks, with replicas that come back one after the other: the same
//! fleet, a new one where nothing is left of the old, or a wait that one can see. Never
//! two.

use std::{collections::BTreeSet, fs, path::PathBuf};

use crate::{
    client::Client,
    fleet::{Fleet, REPLICAS, copy},
    rig::process::until,
};

/// A fleet at rest, whose disks were put aside.
struct Kept {
    fleet: Fleet,
    client: Client,
    id: String,
}

impl Kept {
    async fn new() -> Self {
        let mut fleet = Fleet::open_scaled(2).await;
        let client = fleet.client();
        client.write("kept").await.unwrap();
        let id = fleet.until_open().await;
        let mut kept = Self { fleet, client, id };
        kept.stop().await;
        for replica in 0..REPLICAS {
            copy(&kept.fleet.data_dir(replica), &kept.aside(replica));
        }
        kept
    }

    fn aside(&self, replica: usize) -> PathBuf {
        self.fleet.path(&format!("aside-{replica}"))
    }

    async fn stop(&mut self) {
        for replica in 0..REPLICAS {
            if self.fleet.replicas[replica].is_some() {
                self.fleet.kill(replica).await;
            }
        }
    }

    /// Everybody stops, these lose their disks, and all come back in this order.
    async fn lose(&mut self, wiped: &BTreeSet<usize>, order: [usize; REPLICAS]) {
        self.stop().await;
        for replica in 0..REPLICAS {
            fs::remove_dir_all(self.fleet.data_dir(replica)).unwrap();
            if !wiped.contains(&replica) {
                copy(&self.aside(replica), &self.fleet.data_dir(replica));
            }
            drop(fs::remove_file(self.fleet.log(replica)));
        }
        for replica in order {
            self.fleet.start(replica);
            until("an answer of a replica", async || {
                self.one_fleet(wiped).await;
                self.client.status(replica).await.ok()
            })
            .await;
        }
    }

    /// Fleets that are open now: one at most, and a new one only where the old is gone.
    async fn one_fleet(&self, wiped: &BTreeSet<usize>) {
        let mut open = BTreeSet::new();
        for replica in 0..REPLICAS {
            let Ok(status) = self.client.status(replica).await else { continue };
            if status.phase == 2 {
                open.insert(status.fleet_id);
            }
        }
        assert!(open.len() <= 1, "{wiped:?} wiped: {open:?} are open");
        if wiped.len() < REPLICAS {
            assert!(open.iter().all(|id| *id == self.id), "{wiped:?} wiped: {open:?} is new");
        }
    }

    /// A majority of the old disks: the old fleet, with all that it knew.
    async fn goes_on(&mut self, wiped: &BTreeSet<usize>) {
        assert_eq!(self.fleet.until_open().await, self.id, "{wiped:?} wiped");
        let written = until("an answer", async || self.client.written().await.ok()).await;
        assert_eq!(written, ["kept"], "{wiped:?} wiped");
    }

    /// One old disk: nobody decides, everybody lives and says what it waits for.
    async fn waits(&mut self, wiped: &BTreeSet<usize>) {
        until("replicas that say that they wait", async || {
            self.one_fleet(wiped).await;
            for replica in 0..REPLICAS {
                let ready = self.fleet.readyz(replica).await?;
                assert_eq!(ready, (503, "no raft leader observed".to_owned()), "{replica}");
                let log = self.fleet.process(replica).log();
                let says = ["have not answered", "not joined yet"];
                says.iter().any(|words| log.contains(words)).then_some(())?;
            }
            Some(())
        })
        .await;
        for replica in 0..REPLICAS {
            let status = self.client.status(replica).await.unwrap();
            let phase = if wiped.contains(&replica) { 0 } else { 2 };
            assert_eq!(status.phase, phase, "{wiped:?} wiped: {status:?}");
            assert!(self.fleet.process(replica).is_running());
        }
    }

    /// Nothing is left: a fleet forms anew, and knows nothing.
    async fn begins_anew(&mut self) {
        assert_ne!(self.fleet.until_open().await, self.id);
        assert!(self.client.written().await.unwrap().is_empty());
    }
}

async fn every_set(order: [usize; REPLICAS]) {
    let mut kept = Kept::new().await;
    for set in 0..1 << REPLICAS {
        let wiped: BTreeSet<usize> = (0..REPLICAS).filter(|one| set & 1 << one != 0).collect();
        println!("{wiped:?} wiped, back in order {order:?}");
        kept.lose(&wiped, order).await;
        match wiped.len() {
            0 | 1 => kept.goes_on(&wiped).await,
            2 => kept.waits(&wiped).await,
            _ => kept.begins_anew().await,
        }
    }
}

#[tokio::test]
async fn coordinator_inv_i10_any_disks_wiped_and_the_first_comes_first() {
    every_set([0, 1, 2]).await;
}

#[tokio::test]
async fn coordinator_inv_i10_any_disks_wiped_and_the_first_comes_last() {
    every_set([2, 1, 0]).await;
}
