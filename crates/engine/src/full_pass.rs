//! When everything is decided anew (§11): in the first cycle, every so many
//! cycles, when most needs changed, and when what is remembered has drifted.

use std::time::Duration;

use crate::{engine::Engine, input::Time, world::Unit};

/// Every so many cycles everything is decided anew.
const FULL_EVERY: u64 = 100;
/// But not sooner: a shard that is woken all the time cycles ten times a second.
const FULL_APART: Duration = Duration::from_secs(60);

/// The last full pass: which cycle, and when.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FullPass {
    pub(crate) cycle: u64,
    pub(crate) at: Time,
}

/// How much a cycle decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// What changed, and what is never sure.
    Changes,
    /// Every need. Each starts from the machines it held where it would come to
    /// them first anyway.
    EveryNeed,
    /// Every need, from nothing.
    Afresh,
}

impl Engine {
    /// How much the present cycle decides. To be asked once the changes since the
    /// last cycle are queued, and nothing else is.
    pub(crate) fn scope(&mut self) -> Scope {
        let asked = std::mem::take(&mut self.full_next);
        if asked || self.full_pass_is_due() {
            return Scope::Afresh;
        }
        // Half of them changed: carrying the rest forward saves little.
        let most_changed = self.changed() * 2 > self.needs();
        if most_changed { Scope::EveryNeed } else { Scope::Changes }
    }

    /// Whether the present cycle is the first, or one in a hundred. Its own time is not
    /// known while it prepares; that of the last one is near enough.
    fn full_pass_is_due(&self) -> bool {
        self.last_full.is_none_or(|last| {
            self.cycles() - last.cycle >= FULL_EVERY
                && self.decided_at().since(last.at) >= FULL_APART
        })
    }

    /// Needs that changes since the last cycle touch.
    fn changed(&self) -> usize {
        let needs = |unit: &Unit| match unit {
            Unit::Need(_) => 1,
            Unit::Gangs(gangs) => self.world.gangs[*gangs].members.len(),
        };
        self.world.queue.iter().map(needs).sum()
    }

    /// Compares the claims on a part of the machines with those that were made.
    pub(crate) fn look_for_drift(&mut self) {
        self.drifted = self.world.has_drifted();
        self.drifts += u64::from(self.drifted);
    }

    /// After drift no claim is trusted. True if there was any.
    pub(crate) fn forget_drift(&mut self) -> bool {
        let mut drifted = std::mem::take(&mut self.drifted);
        if !drifted && self.full_pass_is_due() {
            drifted = self.world.has_drifted_anywhere();
            self.drifts += u64::from(drifted);
        }
        if drifted {
            self.world.forget_claims();
        }
        drifted
    }

    /// How often claims were found to be other than those that were made. The cycle
    /// after that forgets all claims and decides everything anew; anything but zero
    /// is a defect. Every cycle looks at a part of the machines and every hundredth at
    /// all of them, so it may be some cycles before drift is found.
    pub fn drifts(&self) -> u64 {
        self.drifts
    }
}

#[cfg(test)]
mod tests {
    use super::{FULL_APART, FULL_EVERY};
    use crate::{Engine, Time, handle::MachineIx, testing};

    /// An engine at rest, with machines that two different needs claim.
    fn at_rest() -> (Engine, [MachineIx; 2]) {
        for seed in 0..10_000 {
            let mut engine = testing::settled(seed);
            let needs = engine.world.needs.iter();
            let claims: Vec<MachineIx> =
                needs.filter_map(|(_, row)| row.claims().next()).take(2).collect();
            let rest = engine.world.needs.iter().all(|(_, row)| row.removed || row.settled);
            if let (true, [one, other]) = (rest, &claims[..]) {
                engine.world.start_checks_over();
                return (engine, [*one, *other]);
            }
        }
        panic!("no world comes to rest");
    }

    fn decided(engine: &Engine) -> usize {
        engine.decided.touched.len()
    }

    #[test]
    fn an_engine_at_rest_decides_nothing_until_most_needs_change() {
        let (mut engine, _) = at_rest();
        let input = engine.input();
        engine.cycle(Time(0));
        assert_eq!(decided(&engine), 0);
        let all = engine.needs();
        let clusters: std::collections::BTreeSet<_> =
            input.demand.iter().map(|need| need.cluster.clone()).collect();
        let mut changed = 0;
        for cluster in clusters {
            let mut needs: Vec<_> =
                input.demand.iter().filter(|need| need.cluster == cluster).cloned().collect();
            for need in &mut needs {
                if changed * 2 <= all {
                    let aggregate = need.aggregate.clone();
                    need.aggregate.add_assign(&aggregate);
                    changed += 1;
                }
            }
            engine.replace(&cluster, &needs);
        }
        engine.cycle_both(Time(0)).unwrap();
        let sent = engine.all_as_sent().map(|(need, row)| row.folded_into.unwrap_or(need));
        assert!(sent.into_iter().all(|need| engine.decided.touched.contains(&need)));
    }

    #[test]
    fn a_lost_claim_is_found_and_mended() {
        let (mut engine, [one, _]) = at_rest();
        engine.world.machines.rows[one].claimant = None;
        engine.cycle(Time(0));
        assert_eq!(engine.drifts(), 1);
        for _ in 0..70 {
            engine.cycle_both(Time(0)).unwrap();
        }
        assert_eq!(engine.drifts(), 1);
    }

    #[test]
    fn claims_that_changed_hands_are_found_and_mended() {
        let (mut engine, [one, other]) = at_rest();
        let rows = &mut engine.world.machines.rows;
        (rows[one].claimant, rows[other].claimant) = (rows[other].claimant, rows[one].claimant);
        engine.cycle(Time(0));
        assert_eq!(engine.drifts(), 1);
        engine.cycle_both(Time(0)).unwrap();
        assert_eq!(engine.drifts(), 1);
    }

    #[test]
    fn everything_is_decided_anew_once_when_somebody_asks_for_it() {
        let (mut engine, _) = at_rest();
        engine.question_everything();
        engine.cycle_both(Time(0)).unwrap();
        assert!(decided(&engine) > 0);
        engine.cycle(Time(0));
        assert_eq!(decided(&engine), 0);
    }

    /// An engine whose next cycle is the hundredth since the last full pass; `now`
    /// tells when each of them is, by their number.
    fn a_hundred_later(engine: &mut Engine, now: impl Fn(u64) -> Time) {
        engine.question_everything();
        engine.cycle(now(0));
        assert!(engine.was_full_pass());
        for number in 1..FULL_EVERY {
            engine.cycle(now(number));
            assert!(!engine.was_full_pass(), "{number}");
        }
    }

    #[test]
    fn full_passes_are_a_hundred_cycles_and_a_minute_apart() {
        let (mut engine, _) = at_rest();
        let seconds = |count: u64| Time(i64::try_from(count).unwrap() * 1_000_000_000);
        a_hundred_later(&mut engine, seconds);
        engine.cycle(seconds(100));
        assert!(engine.was_full_pass());

        a_hundred_later(&mut engine, |number| Time(seconds(200).0 + number as i64));
        engine.cycle(Time(seconds(200).after(FULL_APART).0 - 1));
        assert!(!engine.was_full_pass(), "too soon");
        engine.cycle(seconds(200).after(FULL_APART));
        assert!(!engine.was_full_pass(), "its own time is not known yet");
        engine.cycle(seconds(200).after(FULL_APART));
        assert!(engine.was_full_pass());
    }

    #[test]
    fn every_hundredth_cycle_looks_at_all_machines_first() {
        let (mut engine, [one, _]) = at_rest();
        a_hundred_later(&mut engine, |number| Time(number as i64 * 1_000_000_000));
        assert_eq!(engine.drifts(), 0);
        engine.world.machines.rows[one].claimant = None;
        engine.prepare();
        assert_eq!(engine.drifts(), 1);
        engine.cycle_both(Time(0)).unwrap();
        assert_eq!(engine.drifts(), 1);
    }

    #[test]
    fn claims_are_mended_whatever_is_under_way() {
        let mut mended = 0;
        for seed in 0..300 {
            let mut engine = testing::engine(seed);
            let go_on = |engine: &mut Engine| {
                engine.restamp();
                engine.actions().into_iter().step_by(2).for_each(|action| engine.pend(action));
            };
            engine.cycle(Time(0));
            go_on(&mut engine);
            engine.cycle(Time(0));
            engine.world.spoil_digests();
            engine.world.start_checks_over();
            engine.look_for_drift();
            let found = engine.drifts();
            for _ in 0..5 {
                engine.cycle_both(Time(0)).unwrap_or_else(|other| panic!("seed {seed}: {other}"));
                go_on(&mut engine);
            }
            assert_eq!(engine.drifts(), found, "seed {seed}");
            mended += found;
        }
        assert!(mended > 100, "hardly any engine had claims");
    }
}
