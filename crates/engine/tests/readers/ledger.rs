//! The shortfall ledger.

use std::{collections::BTreeMap, time::Duration};

use bigfleet_engine::{CycleInput, Engine, Ledger, NeedKey, Shortage, Time};
use bigfleet_model::{Fingerprint, Totals};
use bigfleet_oracle::worlds::{self, SplitMix64};

use crate::{plain::Plain, seeds};

/// Age, time of the first cycle, deficit.
type Known = BTreeMap<NeedKey, (u32, Time, Totals)>;

/// Something happens that makes needs short, or whole.
fn disturb(engine: &mut Engine, input: &CycleInput, random: &mut SplitMix64) {
    if random.chance(50) && !input.snapshot.is_empty() {
        engine.remove(&random.one(&input.snapshot).machine.id);
    }
    if random.chance(30) && !input.demand.is_empty() {
        let cluster = &random.one(&input.demand).cluster;
        let mut needs = input.demand.clone();
        needs.retain(|need| need.cluster == *cluster);
        needs.remove(random.below(needs.len() as u64) as usize);
        engine.replace(cluster, &needs);
    }
    if random.chance(50) {
        let world = worlds::world(random.below(10_000));
        world.snapshot.iter().take(2).for_each(|tracked| engine.upsert(tracked));
    }
    engine.restamp();
}

/// The rows that the chapter asks for.
fn reported(known: &Known, input: &CycleInput) -> Vec<(i32, u32, Fingerprint, Totals)> {
    let mut rows: BTreeMap<Fingerprint, (i32, u32, Totals)> = BTreeMap::new();
    for (key, (age, _, deficit)) in known {
        if input.no_acquire.contains_key(key) {
            continue;
        }
        let need = input.demand.iter().find(|need| NeedKey::of(need) == *key).unwrap();
        let row = rows.entry(key.fingerprint.clone()).or_default();
        row.0 = need.profile.priority();
        row.1 = row.1.max(*age);
        row.2.add_assign(deficit);
    }
    let mut rows: Vec<_> = rows.into_iter().map(|(f, (p, age, d))| (p, age, f, d)).collect();
    rows.sort_by(|a, b| (b.0, b.1, &a.2).cmp(&(a.0, a.1, &b.2)));
    rows
}

#[test]
fn the_ledger_is_what_stays_unresolved_dealt_out() {
    let mut oldest = 0;
    for seed in seeds().step_by(3) {
        let mut random = SplitMix64::new(seed);
        let world = worlds::world(seed);
        let mut engine = Engine::load(&world);
        let (mut ledger, mut known, mut now) = (Ledger::default(), Known::new(), world.now);
        for cycle in 0..8 {
            now = now.after(Duration::from_secs(1));
            let input = CycleInput { now, ..engine.input() };
            engine.cycle(now);
            ledger.update(&engine);
            ledger.update(&engine);
            let output = engine.output();
            let missing = Plain { input: &input, output: &output }.missing();
            let before = std::mem::take(&mut known);
            for (key, deficit) in missing {
                let (age, since, _) =
                    before.get(&key).cloned().unwrap_or_else(|| (0, now, Totals::zero()));
                known.insert(key, (age + 1, since, deficit));
            }
            let what = format!("seed {seed}, cycle {cycle}");
            let told: Known = ledger
                .entries()
                .map(|entry| (entry.need.clone(), (entry.age, entry.since, entry.deficit.clone())))
                .collect();
            assert_eq!(told, known, "{what}");
            assert_eq!(ledger.len(), known.len(), "{what}");
            for (key, (age, ..)) in &known {
                assert_eq!(ledger.entry(&engine, key).unwrap().age, *age, "{what}");
                oldest = oldest.max(*age);
            }
            let row = |row: Shortage| {
                assert_eq!(row.escalates(), row.age > 5);
                let fingerprint = row.profile.fingerprint().clone();
                (row.profile.priority(), row.age, fingerprint, row.deficit)
            };
            let rows: Vec<_> = ledger.reported().into_iter().map(row).collect();
            assert_eq!(rows, reported(&known, &input), "{what}");
            disturb(&mut engine, &input, &mut random);
        }
    }
    assert!(oldest > 5, "nothing ever escalated");
}
