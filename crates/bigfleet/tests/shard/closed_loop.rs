//! Fifty clusters, a shard and a provider that die again and again: in the end
//! everybody has what it asked for, nothing moves any more, and everything goes
//! back when nobody asks. `BIGFLEET_CYCLES` says for how many cycles things go
//! wrong, `BIGFLEET_SEED` replays the choices.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use bigfleet_net::tls::Security;
use bigfleet_scripted::{
    cluster::{Churn, Cluster, Shape},
    member::{Member, Standing},
    operator::{Bootstrap, Operator, OperatorOptions, Reclaim},
    random::Random,
};
use bigfleet_wire::v1alpha1::{Machine, MachineState};
use tokio::time::{Instant, sleep};

use crate::{
    judge::{Witness, by_cluster, inv_22, nothing_refused, outcomes, records, watch_pictures},
    process::{Process, until_or},
    site::{Site, Truth},
    traces::{Asked, traced},
};

const CLUSTERS: u64 = 50;
const GI: i64 = 1 << 30;
/// Of cycles.
const INTERVAL: Duration = Duration::from_millis(100);
/// Of roll-ups.
const STEP: Duration = Duration::from_millis(200);
const SHARD: &[&str] = &["--cycle-interval=100ms", "--log-level=warn"];
/// From this many cycles on, the hold of spot machines is waited for, too.
const LONG: u64 = 1_000;
const SETTLED: Duration = Duration::from_secs(180);

const FLEET: &[&str] = &[
    "--tier={name: metal, type: epyc, capacity: BARE_METAL, count: 60, state: IDLE, \
     resources: {cpu: 8, memory: 32Gi}}",
    "--tier={name: spot, type: m8, capacity: SPOT, price: 0.12, probability: 0.1, count: 500, \
     resources: {cpu: 8, memory: 32Gi}}",
    "--latency={create: {uniform: [50ms, 400ms]}, configure: {uniform: [50ms, 400ms]}, \
     drain: {uniform: [20ms, 100ms]}, delete: {uniform: [20ms, 100ms]}}",
    "--interruption-factor=0",
    "--sweep-interval=1s",
    "--failed-hold=1s",
    "--require-token",
];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

fn member(site: &Site, at: u64, random: &mut Random, asked: &mut Asked) -> Member {
    let name = format!("c{at}");
    let mut cluster = Cluster::new(&name, random.next());
    for _ in 0..=random.below(2) {
        let cpus = [1, 2, 4][random.below(3) as usize];
        let shape = Shape::new(cpus * 1_000, cpus * 4 * GI)
            .priority([0, 100, 1_000, 1_000_000][random.below(4) as usize]);
        asked.insert((name.clone(), shape.profile().fingerprint().to_string()));
        cluster.deploy(&shape, 1 + random.below(8) as usize);
    }
    cluster.set_churn(Churn { replaced: 10, scaled: 30 });
    let options = OperatorOptions::new(&name).without_record();
    let operator = Operator::new(&site.shard, &Security::Plaintext, options);
    // Long enough to be killed in the middle.
    let [blob, drain] = [200, 300].map(|ms| Duration::from_millis(random.below(ms)));
    operator.on_bootstrap(move |_| Bootstrap::Late(blob));
    operator.on_reclaim(move |_| Reclaim::Drain(drain));
    Member::start(operator, cluster, STEP)
}

#[derive(Debug, Default)]
struct Figures {
    cycles: u64,
    shard_kills: u64,
    provider_kills: u64,
    cuts: u64,
}

struct World {
    site: Site,
    shard: Process,
    provider: Process,
    members: Arc<Vec<Member>>,
    asked: Asked,
    truth: Truth,
    random: Random,
    figures: Figures,
    /// Of the shard processes before this one.
    cycles_before: u64,
    epoch: i64,
}

impl World {
    async fn begin(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let site = Site::new();
        let provider = site.boot_provider(FLEET).await;
        let shard = site.boot_shard(SHARD).await;
        let mut asked = Asked::new();
        let members: Vec<Member> =
            (0..CLUSTERS).map(|at| member(&site, at, &mut random, &mut asked)).collect();
        let truth = site.provider_client(&Security::Plaintext);
        let epoch = site.epoch();
        Self {
            site,
            shard,
            provider,
            members: members.into(),
            asked,
            truth,
            random,
            figures: Figures::default(),
            cycles_before: 0,
            epoch,
        }
    }

    /// Cycles of this shard process, by its own count.
    async fn cycles_now(&self) -> u64 {
        let counted = self.site.metric("bigfleet_shard_cycle_duration_seconds_count").await;
        counted.expect("a shard that is ready counts its cycles") as u64
    }

    async fn cycles(&self) -> u64 {
        self.cycles_before + self.cycles_now().await
    }

    /// SIGKILL, some time of nobody, and a successor with a higher epoch.
    async fn kill_shard(&mut self) {
        self.cycles_before += self.cycles_now().await;
        self.shard.kill().await;
        self.pause(400).await;
        self.shard = self.site.spawn_shard(SHARD);
        self.site.until_ready(&mut self.shard).await;
        let epoch = self.site.epoch();
        assert!(epoch > self.epoch, "epoch {epoch} after {}", self.epoch);
        self.epoch = epoch;
        self.figures.shard_kills += 1;
    }

    async fn kill_provider(&mut self) {
        self.provider.kill().await;
        self.pause(600).await;
        self.provider = self.site.boot_provider(FLEET).await;
        self.figures.provider_kills += 1;
    }

    async fn cut_operators(&mut self) {
        for _ in 0..=self.random.below(8) {
            let at = self.random.below(CLUSTERS) as usize;
            self.members[at].operator().await.abort().await;
            self.figures.cuts += 1;
        }
    }

    /// When things go wrong is part of the play.
    async fn pause(&mut self, up_to_ms: u64) {
        sleep(Duration::from_millis(self.random.below(up_to_ms))).await;
    }

    async fn chaos(&mut self, cycles: u64) {
        while self.cycles().await < cycles {
            self.pause(1_500).await;
            match self.random.below(6) {
                0 => self.kill_shard().await,
                1 => self.kill_provider().await,
                2 => {
                    self.cut_operators().await;
                    self.kill_provider().await;
                    self.kill_shard().await;
                }
                _ => self.cut_operators().await,
            }
        }
        // A call that nobody answered holds its machine for a minute, in the memory
        // of the process that sent it.
        self.kill_shard().await;
        self.figures.cycles = self.cycles().await;
    }

    /// Machines, if all of them rest.
    async fn at_rest(&mut self) -> Option<Vec<Machine>> {
        let machines = self.truth.list().await?;
        let rests = |machine: &Machine| {
            matches!(
                machine.state(),
                MachineState::Speculative | MachineState::Idle | MachineState::Configured
            )
        };
        machines.iter().all(rests).then_some(machines)
    }

    fn wanting(&self) -> Vec<String> {
        let wants = |member: &&Member| {
            let standing = member.standing();
            !standing.connected || !standing.demand_met
        };
        let wanting = self.members.iter().filter(wants);
        wanting.map(|one| format!("{}: {:?}", one.cluster().id(), one.standing())).collect()
    }

    fn actions(&self) -> usize {
        records(&self.site.audit_log()).len()
    }

    /// Constant demand: met, and then not one action for so many cycles.
    async fn settle(&mut self, quiet: u64) -> Vec<Machine> {
        for member in self.members.iter() {
            member.cluster().set_churn(Churn::default());
        }
        let deadline = Instant::now() + SETTLED;
        loop {
            let (actions, machines) = loop {
                let wanting = self.wanting();
                // Actions first: whoever acts while the machines are read is noticed.
                if wanting.is_empty()
                    && let (actions, Some(machines)) = (self.actions(), self.at_rest().await)
                {
                    break (actions, machines);
                }
                let moving = self.truth.list().await.unwrap_or_default();
                assert!(Instant::now() < deadline, "{}", self.story(&wanting, &moving));
                sleep(Duration::from_millis(50)).await;
            };
            let from = self.cycles().await;
            while self.cycles().await < from + quiet && self.actions() == actions {
                sleep(INTERVAL).await;
            }
            if self.actions() == actions {
                let after = self.truth.list().await.expect("the provider lives");
                assert_eq!(after, machines, "nobody acted, but machines moved");
                return machines;
            }
            let all = records(&self.site.audit_log());
            assert!(Instant::now() < deadline, "never quiet: {:#?}", &all[actions..]);
        }
    }

    fn story(&self, wanting: &[String], machines: &[Machine]) -> String {
        let mut states: BTreeMap<&str, usize> = BTreeMap::new();
        for machine in machines {
            *states.entry(machine.state().as_str_name()).or_default() += 1;
        }
        format!(
            "unmet {wanting:#?}\nmachines {states:?}\noutcomes {:#?}\n{}",
            outcomes(&self.site.audit_log()),
            self.shard.tail()
        )
    }

    /// Every bound machine is one that its cluster knows, and no other does; nobody
    /// waits for a machine that never comes.
    async fn nothing_leaks(&self, machines: &[Machine]) {
        let bound = by_cluster(machines);
        let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for member in self.members.iter() {
            let operator = member.operator().await;
            let own: BTreeSet<String> =
                operator.read(|state| state.picture.machines.keys().cloned().collect());
            if !own.is_empty() {
                known.insert(member.cluster().id().to_string(), own);
            }
        }
        assert_eq!(known, bound, "what clusters know, and what the provider has bound");
    }

    /// Demand withdrawn: nothing stays bound, and in the end nothing is rented.
    async fn empty(&mut self, wait_for_holds: bool) {
        for member in self.members.iter() {
            for workload in 0..2 {
                member.cluster().scale(workload, 0);
            }
        }
        let site = &self.site;
        let mut truth = self.truth.clone();
        let told = || format!("all machines back: {:#?}", outcomes(&site.audit_log()));
        until_or(&told, SETTLED, &mut async || {
            let machines = truth.list().await?;
            let back = |machine: &Machine| match machine.state() {
                MachineState::Speculative => true,
                MachineState::Idle => !wait_for_holds || machine.id.contains("metal"),
                _ => false,
            };
            machines.iter().all(back).then_some(())
        })
        .await;
        for member in self.members.iter() {
            let none = |now: &Standing| now.connected && now.machines == 0;
            member.wait_for("an empty picture", none, SETTLED).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_loop_survives_kills_of_all_three_sides() {
    let cycles = number("BIGFLEET_CYCLES", 450);
    let seed = number("BIGFLEET_SEED", 1);
    println!("{cycles} cycles, replay with BIGFLEET_SEED={seed}");
    let mut world = World::begin(seed).await;
    let witness = Witness::start(world.site.provider_client(&Security::Plaintext));
    let pictures = watch_pictures(world.members.clone());
    world.chaos(cycles).await;
    println!("survived {:?}", world.figures);
    let quiet = (cycles / 10).clamp(25, 1_000);
    let machines = world.settle(quiet).await;
    println!(
        "{quiet} quiet cycles, {} bound",
        by_cluster(&machines).values().map(BTreeSet::len).sum::<usize>()
    );
    world.nothing_leaks(&machines).await;
    world.empty(cycles >= LONG).await;
    let audit = world.site.audit_log();
    println!("{:?}, {:#?}", inv_22(&audit), outcomes(&audit));
    assert!(!pictures.is_finished(), "two clusters share a machine; see above");
    pictures.abort();
    witness.no_double_bind(&audit);
    traced(seed, &records(&audit), &world.asked, &witness.history().await);
    nothing_refused(&audit);
}
