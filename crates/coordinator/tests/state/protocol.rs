//! Domains and clusters change hands between shards that do what coordinator chapter §8
//! asks of them, over a network that delays and repeats reports and loses answers, under
//! leaders that change at any time: I1, never two holders; I9, in peace all settles.

use std::{collections::BTreeSet, time::Duration};

use bigfleet_coordinator::{
    reports::{Begun, LivenessLimits, Now, Rejected, Reports, batches},
    state::{Command, Domain, Key, ShardId, State},
};
use bigfleet_wire::v1alpha1 as wire;

use crate::{draw::Random, seeds};

const FLEET: &str = "u.00000000";
const SHARDS: [&str; 3] = ["a", "b", "c"];

/// What a shard keeps on its disk, and what its process knows.
struct Shard {
    id: &'static str,
    epoch: i64,
    cycle: i64,
    term: i64,
    version: i64,
    digest: u64,
    held: BTreeSet<Key>,
    releasing: BTreeSet<Key>,
}

impl Shard {
    fn report(&mut self) -> wire::ShardReport {
        self.cycle += 1;
        wire::ShardReport {
            shard_id: self.id.into(),
            shard_epoch: self.epoch,
            instance: self.epoch.unsigned_abs(),
            cycle: self.cycle,
            fleet_id: FLEET.into(),
            observed_term: self.term,
            assignment_version: self.version,
            assignment_digest: self.digest,
            releasing: Some(to_wire(&self.releasing)),
            ..wire::ShardReport::default()
        }
    }

    fn hear(&mut self, ack: &wire::ReportAck) {
        if ack.coordinator_term < self.term {
            return;
        }
        self.term = ack.coordinator_term;
        let Some(assignment) = &ack.assignment else { return };
        let clusters = assignment.clusters.iter().map(|id| Key::Cluster(id.as_str().into()));
        let domains = assignment
            .domains
            .iter()
            .map(|one| Key::Domain(Domain::new(&one.topology_key, &one.topology_value)));
        let now: BTreeSet<Key> = clusters.chain(domains).collect();
        self.releasing.extend(self.held.difference(&now).cloned());
        self.releasing.retain(|key| !now.contains(key));
        self.held = now;
        self.version = assignment.version;
        self.digest = assignment.digest;
    }

    /// A new process on the same disk.
    fn restart(&mut self) {
        self.epoch += 1;
        self.cycle = 0;
    }
}

fn to_wire(keys: &BTreeSet<Key>) -> wire::Assignment {
    let domains = keys.iter().filter_map(Key::domain).map(|domain| wire::DomainAssignment {
        topology_key: domain.key.to_string(),
        topology_value: domain.value.to_string(),
        shard_id: String::new(),
    });
    wire::Assignment {
        domains: domains.collect(),
        clusters: keys.iter().filter_map(Key::cluster).map(ToString::to_string).collect(),
        ..wire::Assignment::default()
    }
}

struct World {
    state: State,
    reports: Reports,
    index: u64,
    now: Now,
    shards: Vec<Shard>,
    /// Reports that the network may still deliver, again and late.
    network: Vec<wire::ShardReport>,
}

impl World {
    fn new() -> Self {
        let shard = |id| Shard {
            id,
            epoch: 1,
            cycle: 0,
            term: 0,
            version: 0,
            digest: 1,
            held: BTreeSet::new(),
            releasing: BTreeSet::new(),
        };
        let mut world = Self {
            state: State::default(),
            reports: Reports::new(1, LivenessLimits::default(), 1),
            index: 0,
            now: Now { monotonic: Duration::ZERO, unix_nanos: 0 },
            shards: SHARDS.map(shard).into(),
            network: Vec::new(),
        };
        world.commit(&Command::InitFleet { fleet_id: FLEET.into() });
        world
    }

    fn commit(&mut self, command: &Command) {
        self.index += 1;
        let outcome = self.state.apply(self.index, command);
        self.reports.committed(&self.state, &outcome, self.now);
    }

    fn elect(&mut self) {
        let term = self.reports.term() + 1;
        self.reports = Reports::new(term, LivenessLimits::default(), self.index);
    }

    fn deliver(&mut self, report: &wire::ShardReport) -> Result<wire::ReportAck, Rejected> {
        match self.reports.begin(&self.state, report, self.now)? {
            Begun::Answer(ack) => return Ok(*ack),
            Begun::Commit(command) => self.commit(&command),
            Begun::Known => {}
        }
        let mut taken = self.reports.take(&self.state, report.clone(), self.now)?;
        for command in batches(std::mem::take(&mut taken.commands)) {
            self.commit(&command);
        }
        Ok(self.reports.answer(&self.state, &taken, self.now))
    }

    /// A shard reports; `arrives` and `returns` are the network's.
    fn report(&mut self, shard: usize, arrives: bool, returns: bool) {
        let report = self.shards[shard].report();
        self.network.push(report.clone());
        if arrives
            && let Ok(ack) = self.deliver(&report)
            && returns
        {
            self.shards[shard].hear(&ack);
        }
    }

    fn check(&self, context: &str) {
        let mut holders: Vec<&Key> = Vec::new();
        for shard in &self.shards {
            holders.extend(shard.held.union(&shard.releasing));
        }
        let keys: BTreeSet<&Key> = holders.iter().copied().collect();
        assert_eq!(keys.len(), holders.len(), "{context}: two hold one of {holders:?}");
    }
}

fn order(random: &mut Random, state: &State) -> Command {
    let domain = Domain::new("zone", &random.below(3).to_string());
    let cluster: bigfleet_coordinator::state::ClusterId = format!("k-{}", random.below(2)).into();
    let mut shard = || ShardId::from(SHARDS[random.below(3) as usize]);
    let (one, to) = (shard(), shard());
    let owner =
        |key: &Key| state.row(key).and_then(|row| row.owner.clone()).unwrap_or_else(|| one.clone());
    match random.below(6) {
        0 => Command::AssignDomain { domain, shard: one },
        1 => Command::UnassignDomain { domain },
        2 | 3 => {
            let from = owner(&Key::Domain(domain.clone()));
            Command::MoveDomain { domain, from, to }
        }
        4 => Command::BindCluster { cluster, shard: one },
        _ => {
            let from = owner(&Key::Cluster(cluster.clone()));
            Command::MoveCluster { cluster, from, to }
        }
    }
}

#[test]
fn coordinator_inv_i1_i9_never_two_holders_and_in_peace_all_settles() {
    let mut handed_over = 0;
    for seed in seeds(150) {
        println!("seed {seed}");
        let mut random = Random::new(seed ^ 0x0111);
        let mut world = World::new();
        for shard in 0..SHARDS.len() {
            world.report(shard, true, true);
        }
        for step in 0..150 {
            let shard = random.below(3) as usize;
            let before: usize = world.shards.iter().map(|shard| shard.held.len()).sum();
            match random.below(12) {
                0..2 => {
                    let order = order(&mut random, &world.state);
                    world.commit(&order);
                }
                2..7 => {
                    let (arrives, returns) = (random.chance(80), random.chance(80));
                    if random.chance(20) {
                        world.elect();
                    }
                    world.report(shard, arrives, returns);
                }
                // Late, again, of a dead process: nobody hears the answer.
                7..9 => {
                    let late = random.below(world.network.len() as u64) as usize;
                    let late = world.network[late].clone();
                    let _ = world.deliver(&late);
                }
                9 => world.shards[shard].restart(),
                _ => {
                    let quiet = world.shards[shard].releasing.iter().next().cloned();
                    if let Some(quiet) = quiet.filter(|_| random.chance(50)) {
                        world.shards[shard].releasing.remove(&quiet);
                    }
                }
            }
            let after: usize = world.shards.iter().map(|shard| shard.held.len()).sum();
            handed_over += usize::from(after > before);
            world.check(&format!("seed {seed} step {step}"));
        }
        for round in 0..6 {
            for shard in 0..SHARDS.len() {
                world.shards[shard].releasing.clear();
                world.report(shard, true, true);
                world.check(&format!("seed {seed} round {round}"));
            }
        }
        assert_eq!(world.state.counts().rows_releasing, 0, "seed {seed}");
        for shard in &world.shards {
            let theirs = world.state.assignment_of(&shard.id.into(), "");
            let clusters = theirs.clusters.into_iter().map(Key::Cluster);
            let theirs: BTreeSet<Key> =
                clusters.chain(theirs.domains.into_iter().map(Key::Domain)).collect();
            assert_eq!(shard.held, theirs, "seed {seed}");
            assert!(shard.releasing.is_empty(), "seed {seed}");
        }
    }
    assert!(handed_over > 100, "{handed_over}");
}
