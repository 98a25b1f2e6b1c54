//! I8: whatever becomes of its coordinators, a shard does what it would have done
//! without any. Two runs of one seed, one alone and one with coordinators that are
//! attached, killed, lost and replaced at random, leave the same record, byte by byte.
//! `BIGFLEET_SEED` replays one seed, `BIGFLEET_SEEDS` says how many there are.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc, time::Duration};

use bigfleet_model::MachineState;
use bigfleet_net::tls::Security;
use bigfleet_provider::fake::{FakeOptions, Method, PerKind, Seed};
use bigfleet_scripted::{
    cluster::{Churn, Cluster, Shape},
    coordinator::{Answer, Coordinator},
    operator::Operator,
    random::Random,
};
use bigfleet_shard::audit::{Filter, Record, Start};
use bigfleet_wire::v1alpha1::{
    CrossShardDrain, TransferOwnership, UnassignDomain, coordinator_instruction::Payload,
};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tonic::Code;

use crate::rig::{FLEET, Reporting, Rig, answer, assign, instruct, options};

const GI: i64 = 1 << 30;
const CLUSTERS: u64 = 3;
/// Between two roll-ups of a cluster.
const STEP: Duration = Duration::from_secs(10);
/// Of roll-ups, away from cycles: what comes at the same time comes in any order.
const OFFSET: Duration = Duration::from_millis(370);
const STEPS: u32 = 40;

/// Latencies that end well between two cycles, where nothing else happens.
fn provider(seed: u64, random: &mut Random) -> FakeOptions {
    let mut some = || Duration::from_millis(7_300 + 10_000 * random.below(4));
    let latency = PerKind { create: some(), configure: some(), drain: some(), delete: some() };
    FakeOptions { latency, seed, ..FakeOptions::default() }
}

/// A cluster with its operator.
struct Member {
    cluster: Cluster,
    operator: Operator,
}

impl Member {
    async fn join(rig: &Rig, at: u64, random: &mut Random) -> Self {
        let name = format!("c{at}");
        let mut cluster = Cluster::new(&name, random.next());
        for _ in 0..=random.below(3) {
            let shape = Shape::new(500 * (1 + random.below(6) as i64), GI)
                .priority([0, 100, 1000, 1_000_000][random.below(4) as usize]);
            cluster.deploy(&shape, 1 + random.below(40) as usize);
        }
        cluster.set_churn(Churn { replaced: 40, scaled: 300 });
        Self { cluster, operator: rig.operator(&name).await }
    }

    async fn step(&mut self) {
        if self.operator.ended().is_some() {
            self.operator.reconnect().await.expect("the shard is there");
        }
        let picture = self.operator.read(|state| state.picture.clone());
        let now = self.operator.next_timestamp();
        let roll_up = self.cluster.step(now, &picture);
        self.operator.send_roll_up(roll_up).expect("a session");
        self.operator.answer_to(now).await.expect("an answer");
    }
}

/// What a shard of this seed did: each decision with what became of it, and each
/// mutation that its provider was asked for.
async fn trace(seed: u64, plot: Option<u64>) -> String {
    let mut random = Random::new(seed);
    let options = provider(seed, &mut random);
    let machines = Seed { idle: 6, speculative: 60, spot: 30, ..Seed::default() };
    let rig = Arc::new(Rig::over(options, &machines).await);
    let coordinators = plot.map(|plot| tokio::spawn(play(rig.clone(), Random::new(plot))));
    let mut members = Vec::new();
    for at in 0..CLUSTERS {
        members.push(Member::join(&rig, at, &mut random).await);
    }
    let began = Instant::now();
    for step in 1..=STEPS {
        sleep_until(began + STEP * step + OFFSET).await;
        for member in &mut members {
            member.step().await;
        }
        match random.below(20) {
            0 => members[random.below(CLUSTERS) as usize].operator.abort().await,
            1 => {
                if let Some(machine) = rig.fake.random(MachineState::Configured) {
                    rig.fake.fail_machine(&machine, "lost");
                }
            }
            _ => {}
        }
    }
    if let Some(playing) = coordinators {
        assert!(!playing.is_finished(), "coordinators came and went all the time");
        playing.abort();
        drop(playing.await);
    }
    let told = told(&rig).await;
    drop(members);
    Arc::into_inner(rig).expect("nobody else has it").stop().await;
    told
}

/// The audit without what no two runs share: the wall's time, and numbers that count
/// outcomes together with decisions.
async fn told(rig: &Rig) -> String {
    let mut cursor = rig.audit.subscribe(Start::Oldest, Filter::default());
    let mut decisions: BTreeMap<i64, Vec<Arc<Record>>> = BTreeMap::new();
    while let Ok(item) = timeout(Duration::from_millis(1), cursor.next()).await {
        let item = item.expect("read in time");
        assert!(!item.gap, "all records are kept");
        decisions.entry(item.record.of.unwrap_or(item.record.seq)).or_default().push(item.record);
    }
    let mut text = String::new();
    for record in decisions.into_values().flatten() {
        let mut record = Record::clone(&record);
        (record.time, record.seq, record.of) = (Default::default(), 0, record.of.map(|_| 0));
        writeln!(text, "{record:?}").expect("memory");
    }
    for call in rig.fake.calls() {
        if matches!(call.method, Method::Mutate(_)) {
            writeln!(text, "{:?} {} {:?}", call.method, call.machine, call.outcome)
                .expect("memory");
        }
    }
    text
}

/// Coordinators of one fleet, at addresses that they come back to.
struct Fleet {
    places: Vec<String>,
    running: Vec<Option<Coordinator>>,
    random: Random,
    term: i64,
    generation: u64,
    instructions: u64,
}

impl Fleet {
    async fn new(random: Random) -> Self {
        let mut fleet = Self {
            places: Vec::new(),
            running: Vec::new(),
            random,
            term: 1,
            generation: 0,
            instructions: 0,
        };
        for _ in 0..3 {
            let one = Coordinator::start(&Security::Plaintext).await.expect("loopback");
            fleet.places.push(one.addr().to_owned());
            fleet.running.push(Some(one));
        }
        fleet
    }

    fn fleet_id(&self) -> String {
        let (uuid, _) = FLEET.split_once('.').expect("a generation");
        format!("{uuid}.{:08x}", self.generation)
    }

    /// One turn of fate.
    async fn turn(&mut self) {
        let at = self.random.below(3) as usize;
        match self.random.below(12) {
            0 => self.running.iter_mut().for_each(|one| drop(one.take())),
            1 | 2 => drop(self.running[at].take()),
            3 | 4 => self.revive(at).await,
            5 => {
                for at in 0..3 {
                    self.revive(at).await;
                }
            }
            6 => self.generation += 1,
            _ => self.term += 1,
        }
        let said = self.said(at);
        if let Some(one) = &self.running[at] {
            one.always(said);
        }
    }

    async fn revive(&mut self, at: usize) {
        if self.running[at].is_none() {
            // The port may still be held by what was cut off.
            let Ok(listener) = tokio::net::TcpListener::bind(&self.places[at]).await else {
                return;
            };
            let one = Coordinator::start_on(listener, &Security::Plaintext).expect("bound");
            self.running[at] = Some(one);
        }
    }

    /// Whatever a coordinator may say, sound or mad.
    fn said(&mut self, at: usize) -> Answer {
        self.instructions += 1;
        let (id, term) = (format!("i-{}", self.instructions), self.term);
        let zone = format!("z{}", self.random.below(4));
        let orders = vec![
            assign(&id, term, &zone),
            instruct(
                &format!("{id}-u"),
                term,
                Some(Payload::UnassignDomain(UnassignDomain {
                    topology_key: "zone".to_owned(),
                    topology_value: zone,
                })),
            ),
            instruct(
                &format!("{id}-d"),
                term,
                Some(Payload::CrossShardDrain(CrossShardDrain::default())),
            ),
            instruct(
                &format!("{id}-t"),
                term,
                Some(Payload::TransferOwnership(TransferOwnership::default())),
            ),
            instruct(&format!("{id}-n"), term, None),
        ];
        let ack = |term, fleet_id: String| {
            let mut ack = answer(term, orders.clone());
            (ack.fleet_id, ack.want_cluster_ids) = (fleet_id, true);
            ack.next_report_after_ms = 1_000;
            Answer::Ack(Box::new(ack))
        };
        let sound = ack(term, self.fleet_id());
        match self.random.below(9) {
            0 => Answer::Never,
            1 => Answer::NotLeader {
                leader: Some(("c".to_owned(), self.places[(at + 1) % 3].clone())),
            },
            2 => Answer::Refuse(Code::Aborted, "stale shard epoch".to_owned()),
            3 => Answer::Refuse(Code::Unavailable, "forming".to_owned()),
            4 => ack(term, "another.00000000".to_owned()),
            5 => ack(term - 1, self.fleet_id()),
            6 => Answer::Late(Duration::from_secs(4), Box::new(sound)),
            _ => sound,
        }
    }
}

/// Attaches a client, lets fate play with its coordinators, and now and then kills it.
async fn play(rig: Arc<Rig>, random: Random) {
    let mut fleet = Fleet::new(random).await;
    let mut client: Option<Reporting> = None;
    loop {
        match (fleet.random.below(10), client.take()) {
            (0, Some(one)) => one.stop().await,
            (1, Some(one)) => one.kill(),
            (_, None) => {
                let places: Vec<&str> = fleet.places.iter().map(String::as_str).collect();
                client = Some(rig.report_as(options(&places)));
            }
            (_, Some(one)) => client = Some(one),
        }
        fleet.turn().await;
        sleep(Duration::from_millis(500 + fleet.random.below(15_000))).await;
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[tokio::test(start_paused = true)]
async fn coordinator_inv_i8_the_trace_of_a_shard_is_the_same_with_and_without_coordinators() {
    let seeds = match number("BIGFLEET_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("BIGFLEET_SEEDS").unwrap_or(8),
    };
    for seed in seeds {
        let alone = trace(seed, None).await;
        let lines = alone.lines().count();
        assert!(lines > 50, "seed {seed}: an idle shard, {lines} lines");
        let with = trace(seed, Some(seed + 1_000)).await;
        if alone != with {
            let differ = alone.lines().zip(with.lines()).find(|(one, other)| one != other);
            panic!("seed {seed}: replay with BIGFLEET_SEED={seed}; first difference {differ:#?}");
        }
    }
}

/// The comparison can fail: another seed is another trace.
#[tokio::test(start_paused = true)]
async fn traces_of_two_seeds_differ() {
    assert_ne!(trace(1, None).await, trace(2, None).await);
}
