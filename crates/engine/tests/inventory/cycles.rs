//! What cycles made of machines.

use std::collections::BTreeMap;

use bigfleet_engine::{NeedKey, Row};
use bigfleet_model::{Fingerprint, Group, MachineId};

use crate::{History, STEPS, WORLDS, common, everywhere};

#[test]
fn claimants_are_needs_as_sent() {
    let mut shared = 0;
    everywhere(|history| {
        history.engine.cycle(history.now);
        let output = history.engine.output();
        let sent = history.engine.input().demand;
        for id in history.told.keys() {
            let claimant = history.engine.claimant(id);
            let Some(need) = output.claims.get(id).or_else(|| output.outgrown.get(id)) else {
                assert_eq!(claimant, None);
                continue;
            };
            let (verdict, claimant) = (&output.verdicts[need.0 as usize], claimant.unwrap());
            assert!(sent.iter().any(|need| NeedKey::of(need) == claimant));
            assert_eq!(claimant.cluster, verdict.cluster);
            if verdict.folded == 0 {
                assert_eq!(claimant.fingerprint, verdict.fingerprint);
                assert_eq!(claimant.group, verdict.group);
            }
            shared += u32::from(verdict.folded > 1);
        }
    });
    assert!(shared > 100, "{shared} machines of folds");
}

#[test]
fn claimed_machines_carry_the_stamp_of_their_claimant() {
    let mut pending = 0;
    everywhere(|history| {
        history.engine.cycle(history.now);
        history.engine.actions().into_iter().for_each(|action| history.engine.pend(action));
        // Histories leave out what a shard does after every cycle.
        history.engine.question_everything();
        history.engine.cycle(history.now);
        history.engine.restamp();
        let output = history.engine.output();
        let claims: BTreeMap<&MachineId, (&Fingerprint, &Group)> = output
            .claims
            .iter()
            .map(|(id, need)| (id, &output.verdicts[need.0 as usize]))
            .map(|(id, verdict)| (id, (&verdict.fingerprint, &verdict.group)))
            .collect();
        let acquired: Vec<MachineId> =
            history.engine.actions().into_iter().map(|action| action.machine).collect();
        for (id, (fingerprint, group)) in claims {
            if acquired.contains(id) {
                continue;
            }
            let stamp = history.engine.stamp_on(id).unwrap();
            assert_eq!((&stamp.fingerprint, &stamp.group), (fingerprint, group), "{id}");
            pending += usize::from(!history.engine.view(id).unwrap().pending().is_empty());
        }
    });
    assert!(pending > 100, "{pending} claimed machines had something pending");
}

/// What is told of a need.
fn told(mut row: Row) -> Row {
    // Of one that is met it is not asked.
    row.verdict.matching_supply_exists &= !row.verdict.satisfied;
    row
}

/// Rows that are read again only where the last cycle says so.
#[derive(Default)]
struct Rows {
    known: BTreeMap<NeedKey, Row>,
    /// How many there are, and how many were read, over all cycles.
    all: usize,
    read: usize,
}

impl Rows {
    fn refresh(&mut self, history: &mut History) {
        let engine = &history.engine;
        let replaced = std::mem::take(&mut history.replaced);
        self.known.retain(|key, _| !replaced.contains(&key.cluster));
        let of_replaced = replaced.iter().flat_map(|cluster| engine.rows(cluster));
        self.known.extend(of_replaced.map(|row| (NeedKey::of(&row.need), told(row))));
        for key in engine.decided_needs() {
            let row = told(engine.row(&key).unwrap());
            self.known.insert(key, row);
            self.read += 1;
        }
        let all = ["a", "b", "c"].map(|cluster| engine.rows(&cluster.into()));
        let all = all.into_iter().flatten().map(|row| (NeedKey::of(&row.need), told(row)));
        let all: BTreeMap<NeedKey, Row> = all.collect();
        assert_eq!(self.known, all);
        self.all += all.len();
    }
}

#[test]
fn rows_of_needs_that_were_not_decided_are_what_they_were() {
    let (mut all, mut read) = (0, 0);
    for seed in common::seeds(WORLDS, 10) {
        println!("seed {seed}");
        let mut history = History::of(seed);
        let mut rows = Rows::default();
        for _ in 0..2 * STEPS {
            let cycles = history.engine.cycles();
            history.step();
            if history.engine.cycles() == cycles {
                history.engine.cycle(history.now);
            }
            rows.refresh(&mut history);
        }
        all += rows.all;
        read += rows.read;
    }
    assert!(read + 10_000 < all, "{read} of {all} rows were read");
}
