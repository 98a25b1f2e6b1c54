//! An hour of two shards on one provider, from an empty start, under churn: the real
//! engine decides, and the provider keeps account of who calls.

use std::{collections::BTreeMap, time::Duration};

use bigfleet_across::{Dice, Mind, Step, World};
use bigfleet_coordinator::{
    rebalance::Settings,
    state::{Command, Domain},
};
use bigfleet_model::{ClusterId, MachineState, machine::ZONE_LABEL};

const ZONES: [&str; 2] = ["a", "b"];
const SLOTS: usize = 8;
const HOUR: u64 = 3_600;

struct Hour {
    dice: Dice,
    world: World,
    minds: Vec<Mind>,
    wanted: BTreeMap<ClusterId, usize>,
    down_until: [u64; 2],
    /// Machines and keys change hands, too.
    moving: bool,
}

impl Hour {
    fn new(seed: u64, moving: bool) -> Self {
        let mut world = World::new(2, Settings::default());
        for zone in ZONES {
            for number in 0..SLOTS {
                let id = format!("{zone}{number}");
                world.provider.add(&id, zone, MachineState::Speculative).unwrap();
            }
        }
        world.shards[0].operators.insert("x".into());
        world.shards[1].operators.insert("y".into());
        let minds = vec![Mind::default(), Mind::default()];
        let (dice, wanted) = (Dice::seeded(seed), BTreeMap::new());
        Self { dice, world, minds, wanted, down_until: [1, 1], moving }
    }

    fn step(&mut self, step: Step) {
        let now = self.world.now;
        let told = format!("{step:?}");
        if let Err(broken) = self.world.step(step) {
            panic!("at {now:?}, {told}: {broken}");
        }
    }

    fn run(&mut self) {
        for second in 1..=HOUR {
            self.step(Step::Pass(Duration::from_secs(1)));
            self.fleet(second);
            for shard in 0..2 {
                self.shard(second, shard);
            }
            self.network();
            for machine in self.world.machines() {
                if self.dice.percent(20) && self.world.is_moving(&machine) {
                    self.step(Step::Finish(machine));
                }
            }
        }
    }

    fn fleet(&mut self, second: u64) {
        if second == 5 {
            for (zone, shard) in ZONES.into_iter().zip(["s0", "s1"]) {
                let domain = Domain::new(ZONE_LABEL, zone);
                self.commit(Command::AssignDomain { domain, shard: shard.into() });
            }
        }
        if second.is_multiple_of(30) {
            let most = if self.moving { SLOTS + 5 } else { SLOTS + 1 };
            for cluster in ["x", "y"] {
                let machines = self.dice.below(most);
                self.wanted.insert(cluster.into(), machines);
            }
        }
        if self.dice.below(400) == 0 {
            self.step(Step::NewLeader(false));
        }
        if !self.moving {
            return;
        }
        self.step(Step::Upkeep);
        if self.dice.below(600) == 0 {
            let domain = Domain::new(ZONE_LABEL, ZONES[self.dice.below(2)]);
            let (from, to) = [("s0", "s1"), ("s1", "s0")][self.dice.below(2)];
            self.commit(Command::MoveDomain { domain, from: from.into(), to: to.into() });
        }
    }

    fn commit(&mut self, command: Command) {
        self.step(Step::Commit(Box::new(command)));
    }

    fn shard(&mut self, second: u64, shard: usize) {
        if self.world.shards[shard].process.is_none() {
            if second >= self.down_until[shard] {
                self.minds[shard] = Mind::default();
                self.step(Step::Start(shard));
            }
            return;
        }
        if self.dice.below(500) == 0 {
            self.down_until[shard] = second + 5 + self.dice.below(40) as u64;
            self.step(Step::Crash(shard));
            return;
        }
        let process = self.world.shards[shard].process.as_ref().unwrap();
        assert!(!process.latched, "a provider refused s{shard}, which is the newest");
        let (announced, reported) = (process.announced, process.opening.is_open());
        if !announced {
            self.step(Step::Announce(shard));
        }
        if second % 10 == 3 * shard as u64 || !reported {
            self.step(Step::Report(shard));
        }
        if second.is_multiple_of(5) {
            self.world.list(shard).unwrap();
        }
        self.step(Step::Tend(shard, false));
        if self.dice.percent(70) {
            self.step(Step::Write(shard));
        }
        for machine in self.world.shards[shard].drains_to_begin() {
            self.step(Step::Act(shard, machine.clone(), bigfleet_across::Act::Drain));
            self.step(Step::Send(shard, machine));
        }
        if second % 5 == 2 {
            let acts = self.minds[shard].cycle(&mut self.world, shard, &self.wanted).unwrap();
            for (machine, act) in acts {
                self.step(Step::Act(shard, machine.clone(), act));
                self.step(Step::Send(shard, machine));
            }
        }
    }

    /// Most of what is on its way arrives, some is late, a little is lost.
    fn network(&mut self) {
        for at in (0..self.world.calls_on_the_way()).rev() {
            match self.dice.below(100) {
                0 => self.step(Step::Drop(at)),
                1..=60 => self.step(Step::Arrive(at)),
                _ => {}
            }
        }
        for at in (0..self.world.reports_on_the_way()).rev() {
            match self.dice.below(100) {
                0..=2 => self.step(Step::Lose(at)),
                3..=4 => self.step(Step::Double(at)),
                5..=40 => self.step(Step::Deliver(at, false)),
                41..=90 => self.step(Step::Forward(at, false)),
                _ => {}
            }
        }
    }
}

/// Nothing changes hands: whatever happens to a machine in an hour is one shard's doing.
#[test]
fn every_machine_is_acted_on_by_one_shard_in_an_hour_of_churn() {
    let mut hour = Hour::new(1, false);
    hour.run();
    let mut mutations = 0;
    for (machine, callers) in hour.world.taken() {
        assert_eq!(callers.len(), 1, "{machine} was acted on by {callers:?}");
        mutations += callers.values().sum::<u64>();
    }
    let acted = hour.world.taken().len();
    eprintln!("{mutations} mutations of {acted} machines, each by one shard");
    assert!(mutations > 500 && acted == ZONES.len() * SLOTS, "there was little churn");
}

/// Machines are lent and domains move; at any instant one shard may act on each.
#[test]
fn an_hour_of_churn_in_which_everything_changes_hands() {
    let mut hour = Hour::new(2, true);
    hour.run();
    let lent = hour.world.begun();
    let both = hour.world.taken().values().filter(|callers| callers.len() == 2).count();
    eprintln!("{lent} transfers; {both} machines were acted on by both, one after the other");
    assert!(lent > 5 && both > 0, "nothing changed hands");
    hour.world.settle().unwrap();
}
