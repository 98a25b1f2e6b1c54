//! Shards that have a provider of their own beside the others: they are told of domains by
//! instructions, and an instruction takes effect once (I3), whoever sends it how often.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bigfleet_coordinator::{
    rebalance::Settings,
    reports::Rejected,
    state::{Command, Domain, Refused, TransferKind, TransferRequest},
};
use bigfleet_shard_report::{Order, memory::Memory};
use bigfleet_wire::v1alpha1::{
    self as wire, CoordinatorInstruction, coordinator_instruction::Payload, instruct_ack::Outcome,
};

use crate::{
    Dice, Tier,
    tier::{Progress, Unanswered},
    world::{Place, Rpc},
};

const ZONES: [&str; 4] = ["a", "b", "c", "d"];
const KEY: &str = "zone";

/// One of them.
#[derive(Debug)]
struct Alone {
    id: String,
    epoch: i64,
    memory: Memory,
    /// What it believes to have.
    domains: BTreeSet<String>,
    waits_for: Option<i64>,
    /// Instructions that took effect on this process.
    done: BTreeSet<String>,
    latched: bool,
}

impl Alone {
    fn new(number: usize) -> Self {
        let mut alone = Self {
            id: format!("s{number}"),
            epoch: 0,
            memory: Memory::new(0),
            domains: BTreeSet::new(),
            waits_for: None,
            done: BTreeSet::new(),
            latched: false,
        };
        alone.start();
        alone
    }

    /// Another process: it remembers nothing, so that everything is told it anew.
    fn start(&mut self) {
        self.epoch += 1;
        self.memory = Memory::new(u64::try_from(self.epoch).unwrap_or_default());
        self.domains.clear();
        self.done.clear();
        (self.waits_for, self.latched) = (None, false);
    }

    fn report(&mut self) -> wire::ShardReport {
        let carried = self.memory.begin();
        self.waits_for = Some(carried.cycle);
        wire::ShardReport {
            shard_id: self.id.clone(),
            shard_address: format!("{}:1", self.id),
            cycle: carried.cycle,
            shard_epoch: self.epoch,
            instruction_acks: carried.acks,
            observed_term: carried.observed_term,
            fleet_id: carried.fleet_id,
            instance: carried.instance,
            ..wire::ShardReport::default()
        }
    }

    /// An answer: each of its instructions that is new takes effect, and no other.
    fn answered(&mut self, ack: wire::ReportAck) -> Result<(), String> {
        if ack.assignment.is_some() {
            return Err(format!("{} has a provider of its own and was assigned", self.id));
        }
        let ids = ack.instructions.iter().map(|one| one.instruction_id.clone());
        let new: BTreeSet<String> = ids.filter(|id| !self.done.contains(id)).collect();
        let (mut effects, domains) = (0, &mut self.domains);
        let obeyed = self.memory.receive(ack, |order| {
            effects += 1;
            match order {
                Order::Assign(domain) => domains.insert(domain.value),
                Order::Unassign(domain) => domains.remove(&domain.value),
            };
        });
        let most = if obeyed.is_ok() { new.len() } else { 0 };
        if effects > most {
            return Err(format!(
                "I3: {effects} effects on {} of new instructions {new:?}",
                self.id
            ));
        }
        if obeyed.is_ok() {
            self.done.extend(new);
        }
        Ok(())
    }
}

/// A walk by a seed.
#[derive(Debug)]
pub struct Own {
    dice: Dice,
    now: Duration,
    tier: Tier,
    old: Option<Tier>,
    shards: Vec<Alone>,
    rpcs: Vec<Rpc>,
    /// Instructions that were told: what there was to see.
    pub told: u64,
}

impl Own {
    /// Two or three of them, and a fleet that has just opened.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut dice = Dice::seeded(seed);
        let shards = (0..2 + dice.below(2)).map(Alone::new).collect();
        Self {
            dice,
            now: Duration::ZERO,
            tier: Tier::open(Settings::default()),
            old: None,
            shards,
            rpcs: Vec::new(),
            told: 0,
        }
    }

    /// So many steps, then everything arrives: each shard knows what it has.
    pub fn walk(&mut self, steps: usize) -> Result<(), String> {
        for _ in 0..steps {
            self.step()?;
        }
        self.old = None;
        self.rpcs.clear();
        for number in 0..self.shards.len() {
            if self.shards[number].latched {
                self.shards[number].start();
            }
            self.shards[number].waits_for = None;
            // The fleet, the instructions, their acks.
            for _ in 0..4 {
                self.report(number);
                while !self.rpcs.is_empty() {
                    self.forward(0, false)?;
                }
            }
        }
        for shard in &self.shards {
            let has = self.tier.state.domains_of(&shard.id);
            let missing: Vec<&Domain> =
                has.filter(|domain| !shard.domains.contains(&*domain.value)).collect();
            if !missing.is_empty() {
                return Err(format!("{} was never told of {missing:?}", shard.id));
            }
        }
        let waiting: BTreeMap<_, _> = self.tier.pending().collect();
        match waiting.values().all(|count| *count == 0) {
            true => Ok(()),
            false => Err(format!("instructions are left: {waiting:?}")),
        }
    }

    fn step(&mut self) -> Result<(), String> {
        let number = self.dice.below(self.shards.len());
        match self.dice.below(100) {
            0..=29 => self.report(number),
            30..=74 if !self.rpcs.is_empty() => {
                let at = self.dice.below(self.rpcs.len());
                match self.dice.below(12) {
                    0 => {
                        let copy = self.rpcs[at].clone();
                        if matches!(copy.at, Place::Asking(_)) {
                            self.rpcs.push(copy);
                        }
                    }
                    1 => self.lose(at),
                    _ => {
                        let to_old = self.dice.percent(40);
                        self.forward(at, to_old)?;
                    }
                }
            }
            75..=89 => self.command(number)?,
            90..=92 => {
                if self.dice.percent(50) && self.old.is_none() {
                    self.old = Some(self.tier.unaware());
                }
                self.tier.new_leader(self.now);
            }
            93 => self.old = None,
            94 => self.shards[number].start(),
            95 => {
                self.now += Duration::from_secs(400);
                self.tier.upkeep(self.now);
            }
            96 => self.forged(number)?,
            _ => self.now += Duration::from_secs(10),
        }
        Ok(())
    }

    fn command(&mut self, number: usize) -> Result<(), String> {
        let domain = Domain::new(KEY, ZONES[self.dice.below(ZONES.len())]);
        let to = self.shards[number].id.as_str().into();
        let other = self.dice.below(self.shards.len());
        let from = self.shards[other].id.as_str().into();
        let lends = |command: &Command| matches!(command, Command::BeginTransfer { .. });
        let command = match self.dice.below(8) {
            0..=2 => Command::AssignDomain { domain, shard: to },
            3 => Command::UnassignDomain { domain },
            4..=6 => Command::MoveDomain { domain, from, to },
            _ => Command::BeginTransfer {
                id: "t".into(),
                kind: TransferKind::Idle,
                from,
                to,
                request: TransferRequest::default(),
            },
        };
        let outcome = self.tier.commit(&command, self.now);
        let refused = matches!(
            outcome,
            Some(Err(Refused::NotShared(_) | Refused::ShardNotFound(_) | Refused::SameShard(_)))
        );
        match lends(&command) && !refused {
            true => Err(format!("{command:?} came to {outcome:?}")),
            false => Ok(()),
        }
    }

    /// Somebody asks it for machines all the same.
    fn forged(&mut self, number: usize) -> Result<(), String> {
        let shard = &self.shards[number];
        let id = format!("forged{}", self.dice.draw());
        let ack = wire::ReportAck {
            coordinator_term: i64::MAX,
            instructions: vec![CoordinatorInstruction {
                coordinator_term: i64::MAX,
                sequence_number: 1,
                instruction_id: id.clone(),
                payload: Some(Payload::TransferOwnership(wire::TransferOwnership::default())),
            }],
            ..wire::ReportAck::default()
        };
        // On a copy: its term would end the walk.
        let mut memory = shard.memory.clone();
        let mut effects = 0;
        let obeyed = memory.receive(ack, |_| effects += 1);
        let acks = memory.begin().acks;
        let outcome = acks.iter().find(|ack| ack.instruction_id == id).map(|ack| ack.outcome);
        match obeyed.is_ok_and(|obeyed| obeyed.releases.is_empty())
            && effects == 0
            && outcome == Some(Outcome::RejectedInvalid.into())
        {
            true => Ok(()),
            false => Err(format!("{} let go of machines of its own: {outcome:?}", shard.id)),
        }
    }

    fn report(&mut self, number: usize) {
        let shard = &mut self.shards[number];
        if shard.waits_for.is_some() || shard.latched {
            return;
        }
        let report = shard.report();
        let (epoch, cycle) = (report.shard_epoch, report.cycle);
        let at = Place::Asking(Box::new(report));
        self.rpcs.push(Rpc { shard: number, epoch, cycle, at });
    }

    fn lose(&mut self, at: usize) {
        let rpc = self.rpcs.remove(at);
        let name = |rpc: &Rpc| (rpc.shard, rpc.epoch, rpc.cycle);
        if !self.rpcs.iter().any(|other| name(other) == name(&rpc)) {
            self.waits_no_more(&rpc);
        }
    }

    /// Whether it waited for this one.
    fn waits_no_more(&mut self, rpc: &Rpc) -> bool {
        let shard = &mut self.shards[rpc.shard];
        let waits = shard.epoch == rpc.epoch && shard.waits_for == Some(rpc.cycle);
        if waits {
            shard.waits_for = None;
        }
        waits
    }

    fn forward(&mut self, at: usize, to_old: bool) -> Result<(), String> {
        let now = self.now;
        let mut rpc = self.rpcs.remove(at);
        let (old, working) = match rpc.at {
            Place::Asking(report) => {
                let old = to_old && self.old.is_some();
                let tier = self.old.as_ref().filter(|_| old).unwrap_or(&self.tier);
                (old, tier.accept(*report))
            }
            Place::Working(old, working) => (old, *working),
            Place::Answering(ref answer) => {
                let answer = answer.clone();
                if self.waits_no_more(&rpc) {
                    let shard = &mut self.shards[rpc.shard];
                    match answer {
                        Ok(ack) => {
                            self.told += ack.instructions.len() as u64;
                            shard.answered(*ack)?;
                        }
                        Err(Unanswered::Rejected(Rejected::StaleEpoch { .. })) => {
                            shard.latched = true;
                        }
                        Err(_) => {}
                    }
                }
                return Ok(());
            }
        };
        let tier = self.old.as_mut().filter(|_| old).unwrap_or(&mut self.tier);
        rpc.at = match tier.work(working, now) {
            Progress::Working(working) => Place::Working(old, working),
            Progress::Answered(ack) => Place::Answering(Ok(ack)),
            Progress::Unanswered(why) => Place::Answering(Err(why)),
        };
        self.rpcs.insert(at, rpc);
        Ok(())
    }
}
