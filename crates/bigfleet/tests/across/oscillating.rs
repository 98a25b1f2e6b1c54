//! A deficit that comes and goes (coordinator chapter §9).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use crate::{
    neighbourhood::{Neighbourhood, TWO, whole},
    stock,
};

/// A pass at every tick of the leader's, which come once a second: with an interval of a
/// second every tick that is early by a moment is passed over.
const RESTLESS: &[&str] = &["--rebalance-interval=500ms", "--rebalance-cooldown=12s"];

/// As in [`RESTLESS`].
const COOLDOWN: Duration = Duration::from_secs(12);

/// Passes after which the other shard lacks machines.
const TURN: f64 = 4.0;

/// When a machine went to another shard: not before the first, not after the second.
type Crossing = (Instant, Instant);

/// Machines that crossed, as far as somebody saw who looks all the time.
struct Crossings {
    looked: Instant,
    transfers: BTreeSet<String>,
    machines: BTreeMap<String, Vec<Crossing>>,
}

impl Crossings {
    async fn look(&mut self, all: &Neighbourhood) {
        let before = Instant::now();
        let Some(open) = all.transfers().await else { return };
        let after = Instant::now();
        for moved in open.into_iter().filter(|one| one.phase == "moved") {
            if self.transfers.insert(moved.transfer_id) {
                for machine in moved.machine_ids {
                    self.machines.entry(machine).or_default().push((self.looked, after));
                }
            }
        }
        self.looked = before;
    }

    fn never_twice_within(&self, cooldown: Duration) {
        for (machine, crossings) in &self.machines {
            for pair in crossings.windows(2) {
                let at_most = pair[1].1 - pair[0].0;
                assert!(at_most >= cooldown, "{machine} crossed twice within {at_most:?}");
            }
        }
    }
}

/// Two shards lack machines in turn, and each has what the other lacks: whatever goes there
/// and comes back stays for a while. `BIGFLEET_PASSES` makes it as long as one likes.
#[tokio::test]
async fn an_oscillating_deficit_moves_no_machine_twice_within_a_cooldown() {
    let passes = std::env::var("BIGFLEET_PASSES").map_or(30.0, |text| text.parse().unwrap());
    let mut provider = stock::zones(2);
    provider.push(stock::idle("both", 8, &["zone-a", "zone-b"]));
    let all = Neighbourhood::open(&provider, RESTLESS, TWO).await;
    let witness = all.witness();
    let members = [("one", "c1"), ("two", "c2")]
        .map(|(at, cluster)| all.shard(at).member(cluster, &whole(), 1));
    let (looked, transfers, machines) = (Instant::now(), BTreeSet::new(), BTreeMap::new());
    let mut crossings = Crossings { looked, transfers, machines };
    let first = all.passes().await;
    loop {
        let done = all.passes().await - first;
        if done >= passes {
            break;
        }
        let lacks = usize::from(done / TURN % 2.0 >= 1.0);
        members[lacks].cluster().scale(0, 7);
        members[1 - lacks].cluster().scale(0, 1);
        crossings.look(&all).await;
        sleep(Duration::from_millis(50)).await;
    }
    let seen: usize = crossings.machines.values().map(Vec::len).sum();
    println!("{passes} passes: {seen} crossings of {} machines", crossings.machines.len());
    let came_again = crossings.machines.values().any(|times| times.len() > 1);
    assert!(seen > 2 && came_again, "nothing was tested: {:?}", crossings.machines);
    crossings.never_twice_within(COOLDOWN);
    witness.end().await;
}
