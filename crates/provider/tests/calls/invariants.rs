//! Invariants of provider chapter §12, on random calls to the fake.
//! `BIGFLEET_PROVIDER_SEED=<n>` replays one run.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use bigfleet_model::{Machine, MachineId, MachineState, gate::inventory};
use bigfleet_provider::{
    FencedProvider, ListFilter,
    fake::{Fake, FakeOptions, LoggedCall, PerKind},
    protocol::Kind,
};
use tonic::Code;

use crate::rig::{attempt, fake, mutate};

const IDS: [&str; 7] =
    ["spec-0", "spec-1", "idle-0", "idle-1", "conf-s0-c0-i0", "conf-s0-c0-i1", "nobody"];

/// Small and seeded, so that a run replays.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % sides
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len() as u64) as usize]
    }
}

fn seeds() -> Vec<u64> {
    match std::env::var("BIGFLEET_PROVIDER_SEED") {
        Ok(seed) => vec![seed.parse().expect("BIGFLEET_PROVIDER_SEED is a number")],
        Err(_) => (1..=30).collect(),
    }
}

async fn act(fake: &Fake, dice: &mut Dice) {
    let id = dice.pick(&IDS);
    match dice.roll(12) {
        0 => drop(fake.complete_staged(id)),
        1 => drop(fake.complete_all_staged()),
        2 => drop(fake.fail_machine(id, "broke")),
        3 => drop(fake.repair_machine(id)),
        4 => fake.advance(fake.now() + Duration::from_millis(dice.roll(900))),
        5 => {
            let price = dice.roll(5) as f64;
            fake.refresh(id, |class| class.price_per_hour = price);
        }
        _ => {
            let at = attempt(dice.pick(&["s", "t"]), dice.roll(3) as i64, dice.roll(40) as i64);
            let kind = dice.pick(&Kind::ALL);
            drop(mutate(fake, &at, kind, id).await);
        }
    }
}

fn random_fake(seed: u64) -> Fake {
    let latency = PerKind { create: Duration::from_secs(1), ..PerKind::default() };
    let options = FakeOptions {
        seed,
        instant_transitions: seed.is_multiple_of(3),
        latency: if seed.is_multiple_of(2) { latency } else { PerKind::default() },
        failure_rate: 0.01,
        ..FakeOptions::default()
    };
    fake(options)
}

/// FP exactly for tokens that are not newer, in the order of decision.
fn check_fence(calls: &[LoggedCall]) -> usize {
    let mut marks = HashMap::new();
    let mut fenced = 0;
    for call in calls {
        let Some(token) = &call.token else { continue };
        let key = (token.shard_id.clone(), call.machine.clone());
        let new = (token.epoch, token.sequence);
        let stale = marks.get(&key).is_some_and(|mark| *mark >= new);
        assert_eq!(call.outcome == Code::FailedPrecondition, stale, "{call:?}");
        if stale {
            fenced += 1;
        } else {
            marks.insert(key, new);
        }
    }
    fenced
}

#[tokio::test]
async fn provider_inv_01_failed_precondition_means_fencing_and_nothing_else() {
    for seed in seeds() {
        println!("BIGFLEET_PROVIDER_SEED={seed}");
        let (fake, mut dice) = (random_fake(seed), Dice(seed));
        for _ in 0..500 {
            act(&fake, &mut dice).await;
        }
        assert!(check_fence(&fake.calls()) > 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn provider_inv_01_also_where_calls_meet() {
    for seed in seeds().into_iter().take(5) {
        println!("BIGFLEET_PROVIDER_SEED={seed}");
        let fake = random_fake(seed);
        let tasks: Vec<_> = (0..8)
            .map(|number| {
                let (fake, mut dice) = (fake.clone(), Dice(seed * 100 + number));
                tokio::spawn(async move {
                    for _ in 0..200 {
                        act(&fake, &mut dice).await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert!(check_fence(&fake.calls()) > 0);
    }
}

fn check_shape(machine: &Machine) {
    let accepted =
        inventory::machine(machine.into()).unwrap_or_else(|why| panic!("{machine:?}: {why}"));
    assert!(!accepted.stray_binding, "{machine:?}");
    let failed = machine.state == MachineState::Failed;
    assert_eq!(!machine.last_error.is_empty(), failed, "{machine:?}");
    let class = &machine.class;
    assert!(!class.instance_type.is_empty() && (machine.host.is_none() || !class.zone.is_empty()));
    // Every binding here has metadata, so the two are seen apart or together.
    assert_eq!(machine.cluster.is_some(), !machine.shard_metadata.is_empty(), "{machine:?}");
}

#[tokio::test]
async fn provider_inv_04_and_06_every_snapshot_is_whole() {
    for seed in seeds() {
        println!("BIGFLEET_PROVIDER_SEED={seed}");
        let (fake, mut dice) = (random_fake(seed), Dice(seed));
        for _ in 0..300 {
            act(&fake, &mut dice).await;
            let list = fake.list(&ListFilter::default(), None).await.unwrap();
            assert_eq!(list.machines.len(), 22);
            list.machines.iter().for_each(check_shape);
        }
    }
}

type View = BTreeMap<MachineId, Machine>;

/// Reads on from a cursor, in pages of any size, until a page is not cut.
async fn read(fake: &Fake, since: &[u8], page: u32, view: &mut View) -> Vec<u8> {
    let mut cursor = since.to_vec();
    loop {
        let filter =
            ListFilter { since_revision: cursor.clone(), max_results: page, ..Default::default() };
        let list = fake.list(&filter, None).await.unwrap();
        let last = page == 0 || list.machines.len() < page as usize;
        view.extend(list.machines.into_iter().map(|machine| (machine.id.clone(), machine)));
        let ended = last || cursor == list.revision;
        cursor = list.revision;
        if ended {
            return cursor;
        }
    }
}

#[tokio::test]
async fn provider_inv_07_deltas_on_an_old_view_give_the_new_list() {
    for seed in seeds() {
        println!("BIGFLEET_PROVIDER_SEED={seed}");
        let (fake, mut dice) = (random_fake(seed), Dice(seed));
        let mut old: Vec<(Vec<u8>, View)> = vec![(Vec::new(), View::new())];
        for _ in 0..120 {
            for _ in 0..dice.roll(4) {
                act(&fake, &mut dice).await;
            }
            if dice.roll(40) == 0 {
                fake.remove_machine(dice.pick(&["spec-7", "spec-8", "idle-7"]));
            }
            let (cursor, mut view) = old[dice.roll(old.len() as u64) as usize].clone();
            let page = dice.pick(&[0, 1, 3, 7]);
            let next = read(&fake, &cursor, page, &mut view).await;
            let mut now = View::new();
            read(&fake, b"", 0, &mut now).await;
            view.retain(|id, _| now.contains_key(id));
            assert_eq!(view, now, "from {:?} in pages of {page}", String::from_utf8_lossy(&cursor));
            old.push((next, view));
        }
    }
}
