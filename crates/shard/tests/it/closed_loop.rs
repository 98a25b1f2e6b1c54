//! Clusters that live, a shard that dies, a provider that takes its time: in the
//! end everybody has what it asked for, and nothing moves any more.

use std::{env, time::Duration};

use bigfleet_model::MachineState;
use bigfleet_provider::fake::{Fake, FakeOptions, Method, Seed};
use bigfleet_scripted::{
    cluster::{Churn, Cluster, Shape},
    operator::Operator,
    random::Random,
};
use bigfleet_shard::Options;
use tonic::Code;

use crate::rig::{Rig, slow};

const GI: i64 = 1 << 30;

/// A cluster with its operator.
struct Member {
    cluster: Cluster,
    operator: Operator,
}

impl Member {
    async fn join(rig: &Rig, at: usize, random: &mut Random) -> Self {
        let name = format!("c{at}");
        let mut cluster = Cluster::new(&name, random.below(u64::MAX));
        for _ in 0..=random.below(3) {
            let shape = Shape::new(500 * (1 + random.below(6) as i64), GI)
                .priority([0, 100, 1000, 1_000_000][random.below(4) as usize]);
            cluster.deploy(&shape, 1 + random.below(12) as usize);
        }
        Self { cluster, operator: rig.operator(&name).await }
    }

    /// One interval of a cluster's life. Without a session it goes on all the same.
    async fn step(&mut self) {
        let picture = self.operator.read(|state| state.picture.clone());
        let roll_up = self.cluster.step(self.operator.next_timestamp(), &picture);
        if self.operator.ended().is_none() {
            drop(self.operator.send_roll_up(roll_up));
        } else {
            drop(self.operator.reconnect().await);
        }
    }

    fn met(&self) -> bool {
        self.operator.read(|state| self.cluster.demand_met(&state.picture))
    }
}

fn mutations(fake: &Fake) -> usize {
    let mutates =
        |call: &&bigfleet_provider::fake::LoggedCall| matches!(call.method, Method::Mutate(_));
    fake.calls().iter().filter(mutates).count()
}

async fn run(seed: u64, provider: FakeOptions) {
    println!("seed {seed}: replay with BIGFLEET_SEED={seed}");
    let mut random = Random::new(seed);
    let provider = FakeOptions { seed, ..provider };
    let machines = Seed { idle: 6, speculative: 60, spot: 30, ..Seed::default() };
    let mut rig = Rig::start(Options::default(), provider, &machines).await;
    let mut members = Vec::new();
    for at in 0..4 {
        members.push(Member::join(&rig, at, &mut random).await);
    }
    let mut epoch = 1;
    for _ in 0..150 {
        for member in &mut members {
            member.cluster.set_churn(Churn { replaced: 20, scaled: 60 });
            member.step().await;
        }
        rig.pass(5 + random.below(10)).await;
        match random.below(25) {
            0 => {
                epoch += 1;
                let fake = rig.kill().await;
                rig = Rig::over(Options::default(), fake, epoch).await;
                for member in &mut members {
                    member.operator.set_addr(&rig.addr);
                }
            }
            1 => {
                let at = random.below(4) as usize;
                members[at].operator.abort().await;
            }
            2 => {
                if let Some(machine) = rig.fake.random(MachineState::Configured) {
                    rig.fake.fail_machine(&machine, "lost");
                }
            }
            _ => {}
        }
    }
    settle(&rig, &mut members).await;
    empty(&rig, &mut members).await;
    rig.stop().await;
}

/// Constant demand: met within the hour, and then not one call for another.
async fn settle(rig: &Rig, members: &mut [Member]) {
    for step in 0..720 {
        for member in &mut *members {
            member.cluster.set_churn(Churn::default());
            member.step().await;
        }
        rig.pass(10).await;
        if step == 360 {
            rig.fake.clear_calls();
        }
    }
    for member in &*members {
        assert!(member.met(), "{} waits for {}", member.cluster.id(), member.cluster.waiting());
    }
    assert_eq!(mutations(&rig.fake), 0, "constant demand: {:#?}", rig.fake.calls());
}

/// No demand: every machine goes back.
async fn empty(rig: &Rig, members: &mut [Member]) {
    for _ in 0..400 {
        for member in &mut *members {
            for workload in 0..4 {
                member.cluster.scale(workload, 0);
            }
            member.step().await;
        }
        rig.pass(10).await;
    }
    let bound = rig.count(MachineState::Configured) + rig.count(MachineState::Draining);
    assert_eq!(bound, 0, "machines leak");
    let refused = rig.fake.calls().into_iter().filter(|call| call.outcome != Code::Ok);
    let refused: Vec<_> = refused.collect();
    assert!(refused.is_empty(), "the provider refused {refused:#?}");
}

fn seeds() -> Vec<u64> {
    let parse = |text: String| text.parse().expect("BIGFLEET_SEED is a number");
    env::var("BIGFLEET_SEED").map_or_else(|_| (1..=2).collect(), |text| vec![parse(text)])
}

#[tokio::test(start_paused = true)]
async fn shard_inv_18_the_asynchronous_provider() {
    for seed in seeds() {
        run(seed, slow()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn shard_inv_18_the_synchronous_provider() {
    for seed in seeds() {
        run(seed, FakeOptions::instant()).await;
    }
}

/// Latencies that are no multiple of anything.
#[tokio::test(start_paused = true)]
async fn shard_inv_18_a_quick_provider() {
    let mut provider = slow();
    provider.latency.create = Duration::from_millis(700);
    provider.latency.configure = Duration::from_millis(1300);
    provider.latency.drain = Duration::from_millis(300);
    provider.latency.delete = Duration::from_millis(2100);
    for seed in seeds() {
        run(seed, provider).await;
    }
}
