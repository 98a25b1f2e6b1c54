//! Rebalancing over a fleet that does what coordinator chapter §9 asks of it: reports go
//! through the leader's own steps, transfers through the state machine.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bigfleet_coordinator::{
    rebalance::{Due, Rebalancer, Settings},
    reports::{Begun, LivenessLimits, Now, Rejected, Reports, batches},
    state::{
        Command, Domain, Effect, MAX_BATCH, MachineId, QuotaKey, ShardId, State, TransferKind,
        TransferPhase,
    },
};
use bigfleet_model::{Operator, machine::ZONE_LABEL};
use bigfleet_wire::v1alpha1::{self as wire, coordinator_instruction::Payload};

use crate::{draw::Random, seeds};

const FLEET: &str = "u.00000000";
const CORES: i32 = 4;

/// A shard that owns a rack of machines, all alike and idle but for what it lent.
struct Shard {
    id: String,
    cycle: i64,
    term: i64,
    assignment: wire::Assignment,
    /// By transfer: what it let go of.
    out: BTreeMap<String, Vec<String>>,
    acks: Vec<wire::InstructAck>,
    /// What it received and is done with.
    settled: Vec<wire::TransferMachine>,
    lacks: Vec<wire::Shortfall>,
    /// Of its own rack.
    machines: BTreeSet<String>,
}

impl Shard {
    fn new(number: u64, machines: u64) -> Self {
        let id = format!("shard-{number:02}");
        Self {
            cycle: 0,
            term: 0,
            assignment: wire::Assignment { digest: 1, ..wire::Assignment::default() },
            out: BTreeMap::new(),
            acks: Vec::new(),
            settled: Vec::new(),
            lacks: Vec::new(),
            machines: (0..machines).map(|machine| format!("{id}-{machine:03}")).collect(),
            id,
        }
    }

    /// Idle machines of its own that are here.
    fn idle(&self) -> BTreeSet<String> {
        let away = self.assignment.machines_out.iter().map(|one| &one.machine_id);
        let away: BTreeSet<&String> = away.chain(self.out.values().flatten()).collect();
        self.machines.iter().filter(|machine| !away.contains(machine)).cloned().collect()
    }

    /// Unbound machines that it may act on.
    fn owns(&self) -> BTreeSet<String> {
        let settled = |one: &&wire::TransferMachine| !self.settled.contains(one);
        let received = self.assignment.machines_in.iter().filter(settled);
        self.idle().into_iter().chain(received.map(|one| one.machine_id.clone())).collect()
    }

    fn report(&mut self, settles: bool) -> wire::ShardReport {
        self.cycle += 1;
        if settles {
            self.settled.clone_from(&self.assignment.machines_in);
        }
        let pool = wire::PoolRow {
            instance_type: "m".into(),
            zone: "a".into(),
            capacity_type: 1,
            idle: i32::try_from(self.idle().len()).expect("few"),
            allocatable: Some(wire::Resources {
                resources: [("cpu".to_owned(), CORES.to_string())].into(),
            }),
            ..wire::PoolRow::default()
        };
        wire::ShardReport {
            shard_id: self.id.clone(),
            shard_epoch: 1,
            instance: 1,
            cycle: self.cycle,
            fleet_id: FLEET.into(),
            observed_term: self.term,
            assignment_version: self.assignment.version,
            assignment_digest: self.assignment.digest,
            summary: Some(wire::ShardSummary {
                provider_address: "p:9000".into(),
                pools: vec![pool],
                ..wire::ShardSummary::default()
            }),
            shortfalls: self.lacks.clone(),
            instruction_acks: std::mem::take(&mut self.acks),
            settled: self.settled.clone(),
            ..wire::ShardReport::default()
        }
    }

    /// Assignment first, then instructions.
    fn hear(&mut self, ack: &wire::ReportAck) {
        self.term = ack.coordinator_term;
        if let Some(assignment) = &ack.assignment {
            self.settled.retain(|one| assignment.machines_in.contains(one));
            self.assignment = assignment.clone();
            self.out.retain(|id, _| assignment.open_transfers.contains(id));
        }
        for instruction in &ack.instructions {
            let Some(Payload::TransferOwnership(order)) = &instruction.payload else {
                panic!("idle machines alone move here: {instruction:?}");
            };
            let count = order.selector.as_ref().map_or(0, |selector| selector.count);
            let count = usize::try_from(count).expect("a count");
            let idle = self.idle();
            let given = self.out.entry(order.transfer_id.clone());
            let given = given.or_insert_with(|| idle.into_iter().take(count).collect());
            self.acks.push(wire::InstructAck {
                instruction_id: instruction.instruction_id.clone(),
                outcome: wire::instruct_ack::Outcome::Accepted.into(),
                machine_ids: given.clone(),
                home_domain: self.assignment.domains.first().cloned(),
                ..wire::InstructAck::default()
            });
        }
    }
}

/// A leader over them.
struct World {
    state: State,
    index: u64,
    reports: Reports,
    rebalancer: Rebalancer,
    now: Now,
    shards: Vec<Shard>,
    settings: Settings,
    /// What passes proposed, and when.
    begun: Vec<(Duration, Command)>,
    /// When a machine went to another shard.
    crossed: BTreeMap<MachineId, Vec<Duration>>,
}

impl World {
    fn new(settings: Settings, seed: u64, shards: Vec<Shard>) -> Self {
        let now = Now { monotonic: Duration::from_secs(1_000), unix_nanos: 1 };
        let mut world = Self {
            state: State::default(),
            index: 0,
            reports: Reports::new(1, LivenessLimits::default(), seed),
            rebalancer: Rebalancer::new(settings.clone(), now.monotonic, seed),
            now,
            shards,
            settings,
            begun: Vec::new(),
            crossed: BTreeMap::new(),
        };
        world.commit(&Command::InitFleet { fleet_id: FLEET.into() });
        for at in 0..world.shards.len() {
            world.report(at, false);
            let id = world.shards[at].id.clone();
            let (domain, shard) = (Domain::new("rack", &id), id.as_str().into());
            world.commit(&Command::AssignDomain { domain, shard });
            let per_shard = world.shards.iter().take(at + 1);
            let per_shard = per_shard.map(|shard| (ShardId::from(shard.id.as_str()), 7)).collect();
            let (provider, region) = ("p".into(), "eu".into());
            world.commit(&Command::SetQuota { provider, region, per_shard });
        }
        world
    }

    fn commit(&mut self, command: &Command) {
        let before: BTreeSet<_> = self.moved().into_iter().collect();
        self.index += 1;
        let outcome = self.state.apply(self.index, command);
        let each = match outcome.as_ref().expect("valid") {
            Effect::Batch(outcomes) => outcomes.clone(),
            _ => Vec::new(),
        };
        assert!(each.iter().all(Result::is_ok), "{each:?}");
        self.reports.committed(&self.state, &outcome, self.now);
        for (_, machine) in self.moved().into_iter().filter(|one| !before.contains(one)) {
            self.crossed.entry(machine).or_default().push(self.now.monotonic);
        }
    }

    fn moved(&self) -> Vec<(String, MachineId)> {
        let moved = self
            .state
            .transfers()
            .iter()
            .filter(|(_, transfer)| transfer.phase == TransferPhase::Moved);
        moved
            .flat_map(|(id, transfer)| {
                transfer.machine_ids.iter().map(|machine| (id.to_string(), machine.clone()))
            })
            .collect()
    }

    fn report(&mut self, at: usize, settles: bool) {
        let report = self.shards[at].report(settles);
        let ack = self.deliver(report).expect("in order");
        self.shards[at].hear(&ack);
    }

    /// What a leader makes of a report; its answer may be lost.
    fn deliver(&mut self, report: wire::ShardReport) -> Result<wire::ReportAck, Rejected> {
        match self.reports.begin(&self.state, &report, self.now)? {
            Begun::Commit(command) => self.commit(&command),
            Begun::Known => {}
            Begun::Answer(_) => panic!("of this generation"),
        }
        let mut taken = self.reports.take(&self.state, report, self.now)?;
        for command in batches(std::mem::take(&mut taken.commands)) {
            self.commit(&command);
        }
        Ok(self.reports.answer(&self.state, &taken, self.now))
    }

    /// Another replica leads.
    fn elect(&mut self, seed: u64) {
        let term = self.reports.term() + 1;
        self.reports = Reports::new(term, LivenessLimits::default(), seed);
        let elected = self.now.monotonic;
        self.rebalancer = Rebalancer::new(self.settings.clone(), elected, seed);
    }

    /// I1: nobody acts on what another shard acts on.
    fn check_owners(&self) {
        let mut owners: BTreeMap<String, &str> = BTreeMap::new();
        for shard in &self.shards {
            for machine in shard.owns() {
                let other = owners.insert(machine.clone(), &shard.id);
                assert_eq!(other, None, "{machine} is also of {}", shard.id);
            }
        }
    }

    /// One second of a leader; true if it made a pass.
    fn tick(&mut self) -> bool {
        self.now.monotonic += Duration::from_secs(1);
        for command in self.reports.give_up(&self.state, self.now) {
            self.commit(&command);
        }
        self.rebalancer.observe(&self.state, self.now.monotonic);
        let heard = self.reports.heard(&self.state);
        if self.rebalancer.due(heard, false, self.now.monotonic) != Due::Yes {
            return false;
        }
        let picture = self.reports.picture(&self.state, self.now);
        let again = self.rebalancer.clone().pass(&picture, self.now.monotonic);
        let pass = self.rebalancer.pass(&picture, self.now.monotonic);
        assert_eq!(pass, again, "the same picture, the same pass");
        self.check_limits(&pass.begin);
        self.begun.extend(pass.begin.iter().map(|one| (self.now.monotonic, one.clone())));
        for entry in batches(pass.begin) {
            self.commit(&entry);
        }
        true
    }

    fn check_limits(&self, begin: &[Command]) {
        let mut machines = 0;
        for one in begin {
            let Command::BeginTransfer { kind, from, to, request, .. } = one else {
                panic!("{one:?} is none of its commands");
            };
            assert_ne!(from, to);
            assert!((1..=100).contains(&request.count), "{request:?}");
            assert_eq!(*kind, TransferKind::Idle);
            let same = |one: &bigfleet_coordinator::state::TransferRequirement| {
                one.operator == Operator::Same.to_wire()
            };
            assert!(!request.requirements.iter().any(same), "I6: {request:?}");
            machines += u32::try_from(request.count).expect("positive");
        }
        assert!(machines <= self.settings.max_machines, "{machines} in one pass");
        assert!(self.state.transfers().len() + begin.len() <= 1_000);
    }

    fn quota_sums(&self) -> BTreeMap<QuotaKey, i64> {
        let sum = |row: &BTreeMap<ShardId, i32>| row.values().map(|slice| i64::from(*slice)).sum();
        self.state.quotas().iter().map(|(key, row)| (key.clone(), sum(row))).collect()
    }
}

fn lacks(cores: u64, age_cycles: i32) -> wire::Shortfall {
    wire::Shortfall {
        deficit: Some(wire::Resources { resources: [("cpu".into(), cores.to_string())].into() }),
        age_cycles,
        interruption_penalty_bucket: 5,
        ..wire::Shortfall::default()
    }
}

/// §9: two shards, an oscillating deficit, 1,000 passes; no machine crosses twice within a
/// cooldown.
#[test]
fn an_oscillating_deficit_moves_no_machine_twice_within_a_cooldown() {
    for seed in seeds(2) {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let settings = Settings { interval: Duration::from_secs(20), ..Settings::default() };
        let cooldown = settings.cooldown;
        let mut world = World::new(settings, seed, vec![Shard::new(0, 30), Shard::new(1, 30)]);
        let (mut passes, mut lacking) = (0, 0);
        while passes < 1_000 {
            if random.chance(10) {
                lacking = usize::try_from(random.below(2)).expect("few");
            }
            for at in 0..2 {
                let wants = lacking == at && !random.chance(20);
                let cores = 4 * (1 + random.below(20));
                world.shards[at].lacks = wants.then(|| lacks(cores, 6)).into_iter().collect();
                // Some reports are late: what was asked takes its time.
                if random.chance(15) {
                    world.report(at, !wants);
                }
            }
            passes += u32::from(world.tick());
        }
        let mut crossings = 0;
        for (machine, times) in &world.crossed {
            crossings += times.len();
            for pair in times.windows(2) {
                let apart = pair[1] - pair[0];
                assert!(apart >= cooldown, "{machine} crossed twice within {apart:?}");
            }
        }
        assert!(crossings > 500, "only {crossings} crossings: nothing was tested");
    }
}

/// I5, I6 and the limits of a pass, over fleets of any kind.
#[test]
fn coordinator_inv_i5_i6_passes_stay_within_their_bounds() {
    let mut begun = 0;
    for seed in seeds(16) {
        println!("seed {seed}");
        let mut random = Random::new(seed ^ 0x1eba);
        let settings = Settings {
            max_machines: u32::try_from(1 + random.below(40)).expect("few"),
            donor_margin: random.below(30) as f64 / 100.0,
            max_tier: 1,
            ..Settings::default()
        };
        let shards = (0..2 + random.below(6)).map(|n| Shard::new(n, random.below(60))).collect();
        let mut world = World::new(settings, seed, shards);
        let sums = world.quota_sums();
        for _ in 0..600 {
            let at = usize::try_from(random.below(world.shards.len() as u64)).expect("few");
            let several = random.below(4);
            let shortfalls = (0..several).map(|_| {
                let mut one =
                    lacks(random.below(300), i32::try_from(random.below(12)).expect("few"));
                let operator =
                    [Operator::Same, Operator::In, Operator::NotIn][random.below(3) as usize];
                if random.chance(50) {
                    one.requirements.push(wire::NodeSelectorRequirement {
                        key: ZONE_LABEL.into(),
                        operator: operator.to_wire(),
                        values: vec!["a".into()],
                    });
                }
                one
            });
            world.shards[at].lacks = shortfalls.collect();
            world.report(at, random.chance(30));
            world.tick();
        }
        assert_eq!(world.quota_sums(), sums, "I5");
        begun += world.begun.len();
    }
    assert!(begun > 100, "only {begun} transfers: nothing was tested");
}

/// I1, I9 for transfers: reports are late and doubled, answers are lost, leaders change;
/// never two owners, and in peace all settles and every machine is home.
#[test]
fn coordinator_inv_i1_i9_transfers_over_a_bad_network() {
    let mut begun = 0;
    for seed in seeds(8) {
        println!("seed {seed}");
        let mut random = Random::new(seed ^ 0x9ace);
        let shards = (0..4).map(|n| Shard::new(n, 20)).collect();
        let mut world = World::new(Settings::default(), seed, shards);
        let mut late: Vec<wire::ShardReport> = Vec::new();
        for _ in 0..1_500 {
            let at = usize::try_from(random.below(4)).expect("few");
            let wants = random.chance(60);
            world.shards[at].lacks = wants.then(|| lacks(40, 9)).into_iter().collect();
            let report = world.shards[at].report(!wants && random.chance(50));
            if random.chance(20) {
                late.push(report.clone());
            }
            if !random.chance(10) {
                let ack = world.deliver(report).expect("in order");
                world.check_owners();
                if !random.chance(20) {
                    world.shards[at].hear(&ack);
                }
            }
            if !late.is_empty() && random.chance(20) {
                let which = usize::try_from(random.below(late.len() as u64)).expect("few");
                // Its answer reaches nobody.
                drop(world.deliver(late.swap_remove(which)));
            }
            if random.chance(1) {
                world.elect(random.below(u64::MAX));
            }
            world.tick();
            world.check_owners();
        }
        begun += world.begun.len();
        for _ in 0..200 {
            for at in 0..4 {
                world.shards[at].lacks.clear();
                world.report(at, true);
            }
            world.tick();
        }
        assert!(world.state.transfers().is_empty(), "{:?}", world.state.transfers());
        for shard in &world.shards {
            assert_eq!(shard.owns(), shard.machines, "{}", shard.id);
        }
    }
    assert!(begun > 100, "only {begun} transfers: nothing was tested");
}

/// §15: a zone is lost, and a third of 100,000 domains goes elsewhere: 34 entries to move
/// them, as many at least to let go, and each gainer learns it in one message.
#[test]
fn a_lost_zone_is_a_few_entries() {
    let mut state = State::default();
    let mut index = 0;
    let mut apply = |state: &mut State, command: &Command| {
        index += 1;
        state.apply(index, command).expect("valid")
    };
    for number in 0..3 {
        let (address, registered_at, epoch, instance) = (String::new(), 1, 1, 1);
        let id = format!("shard-{number}").into();
        let add = Command::AddShard { id, address, registered_at, epoch, instance, shared: true };
        apply(&mut state, &add);
    }
    let domain = |number: usize| Domain::new("rack", &format!("rack-{number:05}"));
    let assign = (0..33_000)
        .map(|number| Command::AssignDomain { domain: domain(number), shard: "shard-0".into() });
    batches(assign.collect()).iter().for_each(|entry| drop(apply(&mut state, entry)));
    let moves: Vec<Command> = (0..33_000)
        .map(|number| Command::MoveDomain {
            domain: domain(number),
            from: "shard-0".into(),
            to: format!("shard-{}", 1 + number % 2).into(),
        })
        .collect();
    let entries = batches(moves);
    assert_eq!(entries.len(), 33);
    entries.iter().for_each(|entry| drop(apply(&mut state, entry)));
    assert_eq!(state.counts().rows_releasing, 33_000);
    let version = state.applied_index();
    let keys: Vec<_> = state.releasing_from("shard-0").map(|(key, _)| key.clone()).collect();
    let released: Vec<Command> = keys
        .chunks(MAX_BATCH)
        .map(|keys| Command::Released { shard: "shard-0".into(), keys: keys.to_vec(), version })
        .collect();
    assert_eq!(released.len(), 33);
    batches(released).iter().for_each(|entry| drop(apply(&mut state, entry)));
    assert_eq!(state.counts().rows_releasing, 0);
    assert_eq!(state.oldest_releasing(), None);
    assert_eq!(state.assignment_of(&"shard-1".into(), "").domains.len(), 16_500);
}
