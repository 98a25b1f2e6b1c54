//! A walk through a world by a seed.

use std::{sync::Arc, time::Duration};

use bigfleet_coordinator::{
    rebalance::Settings,
    state::{Command, Domain, Key, ShardId, TransferKind, TransferRequest},
};
use bigfleet_model::{MachineId, MachineState, Stamp, machine::ZONE_LABEL};
use bigfleet_wire::v1alpha1::{self as wire, node_selector_requirement::Operator};

use crate::{Act, Step, World};

const ZONES: [&str; 3] = ["a", "b", "c"];
const CLUSTERS: [&str; 3] = ["x", "y", "z"];

/// SplitMix64: small, seeded, the same everywhere.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Always the same numbers.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.draw() as usize % bound.max(1)
    }

    /// So often out of a hundred.
    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// One of them.
    pub fn one<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }
}

/// What may go wrong on this walk: each walk leaves something out, so that the rest comes
/// in combinations that are not drowned.
#[derive(Clone, Copy, Debug)]
struct Faults {
    crashes: bool,
    disks: bool,
    losses: bool,
    doubles: bool,
    leaders: bool,
    unaware: bool,
    restores: bool,
    removals: bool,
    failures: bool,
    /// Calls, and first words, are on their way for long.
    lingering: bool,
}

/// A walk.
#[derive(Debug)]
pub struct Random {
    dice: Dice,
    faults: Faults,
    /// Where it has come to.
    pub world: World,
    /// Every step of it, if asked for.
    pub trace: Option<Vec<String>>,
    transfers: u64,
}

impl Random {
    /// The beginning of a walk: everybody runs, everything has an owner.
    pub fn new(seed: u64, trace: bool) -> Result<Self, String> {
        let mut dice = Dice::seeded(seed);
        let shards = 2 + dice.below(3);
        let settings = Settings {
            interval: Duration::from_secs(5),
            cooldown: Duration::from_secs(10),
            ..Settings::default()
        };
        let mut world = World::new(shards, settings);
        let zones = 1 + dice.below(3);
        for zone in &ZONES[..zones] {
            for number in 0..1 + dice.below(3) {
                let state = match dice.below(3) {
                    0 => MachineState::Speculative,
                    _ => MachineState::Idle,
                };
                world.provider.add(&format!("{zone}{number}"), zone, state)?;
            }
        }
        let mut often = || dice.percent(60);
        let faults = Faults {
            crashes: often(),
            disks: often(),
            losses: often(),
            doubles: often(),
            leaders: often(),
            unaware: often(),
            restores: often(),
            removals: often(),
            failures: often(),
            lingering: often(),
        };
        let trace = trace.then(Vec::new);
        let mut walk = Self { dice, faults, world, trace, transfers: 0 };
        walk.begin(zones)?;
        Ok(walk)
    }

    fn begin(&mut self, zones: usize) -> Result<(), String> {
        let shards = self.world.shards.len();
        for cluster in CLUSTERS {
            let shard = self.dice.below(shards);
            self.world.shards[shard].operators.insert(cluster.into());
        }
        for shard in 0..shards {
            self.step(Step::Start(shard))?;
            self.world.exchange(shard)?;
        }
        for zone in &ZONES[..zones] {
            let shard = self.shard_id();
            let domain = Domain::new(ZONE_LABEL, zone);
            self.step(commit(Command::AssignDomain { domain, shard }))?;
        }
        self.quota()?;
        self.world.round()?;
        self.world.round()
    }

    fn step(&mut self, step: Step) -> Result<(), String> {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:?} {step:?}", self.world.now));
        }
        self.world.step(step)
    }

    /// So many steps, then the end of all faults.
    pub fn walk(&mut self, steps: usize) -> Result<(), String> {
        for _ in 0..steps {
            if self.dice.percent(4) {
                self.brisk()?;
            } else {
                let step = self.next();
                self.step(step)?;
            }
        }
        if let Some(trace) = &mut self.trace {
            trace.push("faults stop".to_owned());
        }
        self.world.settle()
    }

    fn shard(&mut self) -> usize {
        self.dice.below(self.world.shards.len())
    }

    fn shard_id(&mut self) -> ShardId {
        let shard = self.shard();
        self.world.shards[shard].id.as_str().into()
    }

    fn machine(&mut self) -> MachineId {
        let machines = self.world.machines();
        let at = self.dice.below(machines.len());
        machines[at].clone()
    }

    fn next(&mut self) -> Step {
        let shard = self.shard();
        match self.dice.below(100) {
            0..=45 => self.go_on(shard),
            46..=57 => self.act(shard),
            58..=67 => Step::Report(shard),
            68..=72 => Step::BeginList(shard),
            73..=79 => Step::Tend(shard, false),
            80..=84 => self.life(shard),
            85..=90 => self.command(),
            91 => Step::Upkeep,
            92..=94 => self.lead(),
            95 => self.lack(shard),
            96 => {
                let machine = self.machine();
                self.fail(machine)
            }
            _ => self.pass(),
        }
    }

    /// A shard hears all that there is to hear, and does what is due.
    fn brisk(&mut self) -> Result<(), String> {
        let shard = self.shard();
        for _ in 0..2 {
            let at = self.world.rpcs.len();
            let steps = [
                Step::Report(shard),
                Step::Deliver(at, false),
                Step::Forward(at, false),
                Step::Write(shard),
                Step::Write(shard),
                Step::Tend(shard, false),
                Step::Write(shard),
            ];
            steps.into_iter().try_for_each(|step| self.step(step))?;
        }
        Ok(())
    }

    /// Something that has begun gets one step further.
    fn go_on(&mut self, other: usize) -> Step {
        let slow = if self.faults.lingering { 3 } else { 30 };
        let mut begun = Vec::new();
        for (number, shard) in self.world.shards.iter().enumerate() {
            let Some(process) = &shard.process else { continue };
            if process.writing.is_some() {
                begun.push(Step::Write(number));
            }
            match process.listing.as_ref().map(|listing| listing.records.is_some()) {
                Some(true) => begun.push(Step::Merge(number)),
                Some(false) => begun.push(Step::Read(number)),
                None => {}
            }
            begun.extend(shard.queued().into_iter().map(|machine| Step::Send(number, machine)));
            // What the provider was not told yet takes its time.
            if !process.announced && self.dice.percent(slow) {
                begun.push(Step::Announce(number));
            }
        }
        for _ in 0..self.world.rpcs.len() {
            begun.push(self.message());
        }
        for _ in 0..self.world.calls.len() {
            // So do calls.
            if self.dice.percent(slow) {
                begun.push(self.call());
            }
        }
        for machine in self.world.machines() {
            if self.dice.percent(30) && self.world.is_moving(&machine) {
                begun.push(Step::Finish(machine));
            }
        }
        match begun.is_empty() {
            true => Step::Report(other),
            false => begun.swap_remove(self.dice.below(begun.len())),
        }
    }

    fn message(&mut self) -> Step {
        let at = self.dice.below(self.world.rpcs.len());
        match self.dice.below(20) {
            0 if self.faults.doubles => Step::Double(at),
            1 if self.faults.losses => Step::Lose(at),
            2..=8 => Step::Deliver(at, self.dice.percent(40)),
            _ => Step::Forward(at, self.dice.percent(40)),
        }
    }

    fn act(&mut self, shard: usize) -> Step {
        if let Some(machine) = self.world.shards[shard].drains_to_begin().pop()
            && self.dice.percent(50)
        {
            return Step::Act(shard, machine, Act::Drain);
        }
        let desk: Vec<(MachineId, MachineState)> = self.world.shards[shard]
            .process
            .iter()
            .flat_map(|process| &process.desk)
            .map(|(id, entry)| (id.clone(), entry.record.state))
            .collect();
        let Some((machine, state)) = self.dice.one(&desk).cloned() else {
            return Step::BeginList(shard);
        };
        if self.world.shards[shard].queued().contains(&machine) {
            return Step::Send(shard, machine);
        }
        let cluster = CLUSTERS[self.dice.below(CLUSTERS.len())].into();
        let priority = Some(self.dice.below(3) as i32);
        let stamp = Arc::new(Stamp { priority, ..Stamp::default() });
        let act = match state {
            MachineState::Speculative => Act::Create(None),
            MachineState::Configured => Act::Drain,
            _ if self.dice.percent(20) => Act::Delete,
            _ => Act::Configure(cluster, stamp),
        };
        Step::Act(shard, machine, act)
    }

    fn call(&mut self) -> Step {
        let at = self.dice.below(self.world.calls.len());
        match self.dice.below(12) {
            0 if self.faults.losses => Step::Drop(at),
            1 if self.faults.losses => Step::Abandon(at),
            _ => Step::Arrive(at),
        }
    }

    /// Not while a call is on its way: one that is sent for a machine which then fails, is
    /// repaired and bound anew would find another machine than it was sent for.
    fn fail(&mut self, machine: MachineId) -> Step {
        let called = self.world.calls.iter().any(|flying| flying.call.machine == machine);
        let failed = self.world.provider.machine(&machine).map(|machine| machine.state)
            == Some(MachineState::Failed);
        match (failed, called) {
            (true, _) => Step::Repair(machine),
            (false, false) if self.faults.failures && self.dice.percent(10) => Step::Fail(machine),
            (false, _) => Step::Finish(machine),
        }
    }

    fn life(&mut self, shard: usize) -> Step {
        let alone = self.world.old.is_none();
        if self.world.shards[shard].process.is_none() {
            return Step::Start(shard);
        }
        match self.dice.below(20) {
            0..=7 if self.faults.crashes => Step::Crash(shard),
            // A fresh disk has no fleet: it would follow whoever answers first.
            8..=10 if self.faults.disks && alone => Step::LoseDisk(shard),
            11 if self.faults.removals && alone => Step::Remove(shard),
            12..=13 => {
                let latched = |process: &crate::shard::Process| process.latched;
                match self.world.shards[shard].process.as_ref().is_some_and(latched) {
                    true => Step::Crash(shard),
                    false => Step::Announce(shard),
                }
            }
            _ => Step::Report(shard),
        }
    }

    fn lead(&mut self) -> Step {
        match self.dice.below(10) {
            0..=3 if self.faults.leaders => {
                Step::NewLeader(self.faults.unaware && self.dice.percent(50))
            }
            4..=5 => Step::EndOld,
            6 => Step::Backup,
            7 if self.faults.restores && self.world.old.is_none() => {
                Step::Restore(self.faults.unaware && self.dice.percent(50))
            }
            _ if self.world.tier.state.recovering() && self.world.may_confirm() => {
                commit(Command::ConfirmRestore {})
            }
            _ => Step::Upkeep,
        }
    }

    fn pass(&mut self) -> Step {
        let seconds = match self.dice.below(40) {
            0 => 16 * 60,
            1 => 31 * 60,
            2..=4 => 125,
            5..=8 => 61,
            9..=20 => 10,
            _ => 2,
        };
        Step::Pass(Duration::from_secs(seconds))
    }

    /// Demand that appears and disappears.
    fn lack(&mut self, shard: usize) -> Step {
        let requirement =
            |key: &str, operator: Operator, value: &str| wire::NodeSelectorRequirement {
                key: key.to_owned(),
                operator: operator.into(),
                values: vec![value.to_owned()],
            };
        let mut lacks = Vec::new();
        for _ in 0..self.dice.below(3) {
            let zone = ZONES[self.dice.below(ZONES.len())];
            let requirements = match self.dice.below(4) {
                0 => vec![requirement(ZONE_LABEL, Operator::In, zone)],
                // Nothing else asks for this zone so: if it crosses, it is seen.
                1 => vec![
                    requirement(ZONE_LABEL, Operator::Same, zone),
                    requirement(ZONE_LABEL, Operator::NotIn, "nowhere"),
                ],
                _ => Vec::new(),
            };
            let cpu = |amount: usize| wire::Resources {
                resources: [("cpu".to_owned(), amount.to_string())].into(),
            };
            lacks.push(wire::Shortfall {
                requirements,
                deficit: Some(cpu(4 * (1 + self.dice.below(3)))),
                priority: 5,
                age_cycles: 6 + self.dice.below(12) as i32,
                interruption_penalty_bucket: wire::PenaltyBucket::PenaltyBucket8.into(),
                min_unit: Some(cpu(1)),
            });
        }
        self.world.shards[shard].lacks = lacks;
        Step::Report(shard)
    }

    fn quota(&mut self) -> Result<(), String> {
        let per_shard = self.world.tier.state.shards().keys();
        let per_shard = per_shard.map(|shard| (shard.clone(), 3)).collect();
        let (provider, region) = ("p".to_owned(), "r".to_owned());
        // By the address that shards report: no share reaches them without it.
        let (name, address) = (provider.clone(), "p:1".to_owned());
        self.step(commit(Command::UpsertProvider { name, address, region: region.clone() }))?;
        self.step(commit(Command::SetQuota { provider, region, per_shard }))
    }

    /// What an operator of the fleet does.
    fn command(&mut self) -> Step {
        let to = self.shard_id();
        let state = &self.world.tier.state;
        let rows: Vec<(Key, Option<ShardId>)> =
            state.rows().map(|(key, row)| (key.clone(), row.owner.clone())).collect();
        let zone = ZONES[self.dice.below(ZONES.len())];
        let domain = Domain::new(ZONE_LABEL, zone);
        let command = match self.dice.below(13) {
            0 => Command::UnassignDomain { domain },
            1..=2 => Command::AssignDomain { domain, shard: to },
            3..=7 => match self.dice.one(&rows).cloned() {
                Some((Key::Domain(domain), Some(from))) => Command::MoveDomain { domain, from, to },
                Some((Key::Cluster(cluster), Some(from))) => {
                    // Its operator is pointed at the other shard, sooner or later.
                    let name = bigfleet_model::ClusterId::from(cluster.as_str());
                    for shard in &mut self.world.shards {
                        shard.operators.remove(&name);
                        if *shard.id == *to {
                            shard.operators.insert(name.clone());
                        }
                    }
                    Command::MoveCluster { cluster, from, to }
                }
                _ => Command::AssignDomain { domain, shard: to },
            },
            12 => {
                let share = |shard: &ShardId| (shard.clone(), self.dice.below(5) as i32);
                let per_shard = state.shards().keys().map(share).collect();
                let (provider, region) = ("p".to_owned(), "r".to_owned());
                Command::SetQuota { provider, region, per_shard }
            }
            _ => {
                self.transfers += 1;
                let kind = [TransferKind::Idle, TransferKind::Speculative, TransferKind::Drain]
                    [self.dice.below(3)];
                let request = TransferRequest {
                    count: 1 + self.dice.below(2) as i32,
                    instance_type: "t".into(),
                    preemptor_priority: 2,
                    preemptor_penalty_bucket: wire::PenaltyBucket::PenaltyBucket8.into(),
                    ..TransferRequest::default()
                };
                let (id, from) = (format!("o{}", self.transfers).as_str().into(), self.shard_id());
                Command::BeginTransfer { id, kind, from, to, request }
            }
        };
        commit(command)
    }
}

fn commit(command: Command) -> Step {
    Step::Commit(Box::new(command))
}
