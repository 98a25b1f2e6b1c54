//! What a shard does about purchases that are refused, as it tells any reader: when it called,
//! when it was refused, and how long it means to leave the machine alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    eyes::{Decision, ShardSeen},
    front::TURNED_AWAY,
    scenario::view::is_decided,
};

/// Shard chapter §5: after the first refusal, doubled by each further one, give or take a fifth.
const FIRST: Duration = Duration::from_secs(10);
const SPREAD: f64 = 0.2;
/// What may lie between two moments that are one.
const MOMENT: Duration = Duration::from_millis(500);
/// Fewer refusals of one machine show no growth.
pub(super) const REFUSALS: usize = 2;

/// What is known of one machine; all in nanoseconds of the shard's clock.
#[derive(Clone, Debug, Default)]
struct Calls {
    decided: Vec<i64>,
    refused: Vec<i64>,
    /// Until when it is not to be bought, as told after each refusal.
    until: Vec<i64>,
}

/// What is known of all machines whose purchase is refused.
#[derive(Clone, Debug)]
pub(super) struct Refused(BTreeMap<String, Calls>);

impl Refused {
    pub(super) fn new(machines: &BTreeSet<String>) -> Self {
        Self(machines.iter().map(|id| (id.clone(), Calls::default())).collect())
    }

    /// One look: the holds of now, and all decisions so far.
    pub(super) fn look(&mut self, seen: &ShardSeen, decisions: &[Decision]) {
        for view in &seen.machines {
            let Some(machine) = &view.machine else { continue };
            let Some(calls) = self.0.get_mut(&machine.id) else { continue };
            let until = view.not_acquirable_until_unix_nanos;
            // Told anew at each look, and not to the nanosecond.
            let known = calls.until.last().map_or(0, |last| last + nanos(MOMENT));
            if until > known {
                calls.until.push(until);
            }
        }
        for (id, calls) in &mut self.0 {
            let mine = || decisions.iter().filter(|it| it.record.machine_id == *id);
            let bought = mine().filter(|it| is_decided(it, "Provision"));
            calls.decided = bought.map(|it| it.record.time_unix_nanos).collect();
            let refused = mine().map(|it| &it.record).filter(|it| {
                it.of_sequence != 0
                    && it.outcome == "provider_error"
                    && it.error.contains(TURNED_AWAY)
            });
            calls.refused = refused.map(|it| it.time_unix_nanos).collect();
        }
    }

    /// The fewest refusals that any of the machines has had.
    pub(super) fn refusals(&self) -> usize {
        self.0.values().map(|calls| calls.refused.len().min(calls.until.len())).min().unwrap_or(0)
    }

    /// Whether each was left alone for longer after each refusal, and not called before that was
    /// over. Says how long.
    pub(super) fn judge(&self) -> (bool, String) {
        if self.refusals() < REFUSALS {
            return (false, format!("{} refusals of one machine", self.refusals()));
        }
        let problem =
            self.0.iter().find_map(|(id, calls)| Some(format!("{id} {}", calls.wrong()?)));
        match problem {
            Some(problem) => (false, problem),
            None => {
                let texts: Vec<String> = self.0.values().map(Calls::told).collect();
                (true, format!("left alone for {}", texts.join("; for ")))
            }
        }
    }
}

impl Calls {
    fn pauses(&self) -> Vec<Duration> {
        let pairs = self.refused.iter().zip(&self.until);
        pairs.map(|(at, until)| Duration::from_nanos((until - at).max(0) as u64)).collect()
    }

    fn wrong(&self) -> Option<String> {
        let (refused, told) = (self.refused.len(), self.until.len());
        if refused != told {
            return Some(format!("was refused {refused} times and left alone {told} times"));
        }
        for (number, pause) in self.pauses().into_iter().enumerate() {
            let due = FIRST * (1 << number);
            let least = due.mul_f64(1.0 - SPREAD).saturating_sub(MOMENT);
            if pause < least || pause > due.mul_f64(1.0 + SPREAD) + MOMENT {
                let (pause, number) = (pause.as_secs_f64(), number + 1);
                return Some(format!("is left alone for {pause:.1} s after refusal {number}"));
            }
        }
        let next = |after: &i64| self.decided.iter().find(|call| *call > after);
        for (at, until) in self.refused.iter().zip(&self.until) {
            match next(at) {
                None => return Some("was not called again".to_owned()),
                Some(call) if call + nanos(MOMENT) < *until => {
                    return Some("was called before its pause was over".to_owned());
                }
                Some(_) => {}
            }
        }
        None
    }

    fn told(&self) -> String {
        let texts = self.pauses().into_iter().map(|it| format!("{:.0} s", it.as_secs_f64()));
        texts.collect::<Vec<_>>().join(", then ")
    }
}

const fn nanos(span: Duration) -> i64 {
    span.as_nanos() as i64
}

#[cfg(test)]
mod tests {
    use bigfleet_wire::v1alpha1::{DecisionRecord, Machine, MachineView};

    use super::*;

    const ID: &str = "beta-1";

    /// Judges refusals, each at a second and with a hold until another one, and a call at each
    /// refusal and at the end.
    fn judged(refusals: &[(i64, i64)], last: Option<i64>) -> (bool, String) {
        let second = |it: i64| it * 1_000_000_000;
        let mut refused = Refused::new(&[ID.to_owned()].into());
        let mut decisions = Vec::new();
        let mut record = |at: i64, of_sequence: i64| {
            let (outcome, error) = match of_sequence {
                0 => ("decided", String::new()),
                _ => ("provider_error", format!("RESOURCE_EXHAUSTED: {TURNED_AWAY}")),
            };
            let record = DecisionRecord {
                machine_id: ID.to_owned(),
                kind: "Provision".to_owned(),
                time_unix_nanos: second(at),
                outcome: outcome.to_owned(),
                error,
                of_sequence,
                ..DecisionRecord::default()
            };
            decisions.push(Decision { shard: 0, record });
            decisions.clone()
        };
        for (at, until) in refusals {
            record(*at, 0);
            let decisions = record(*at, 1);
            let machine = Some(Machine { id: ID.to_owned(), ..Machine::default() });
            let not_acquirable_until_unix_nanos = second(*until);
            let view =
                MachineView { machine, not_acquirable_until_unix_nanos, ..Default::default() };
            let seen = ShardSeen { machines: vec![view], ..Default::default() };
            refused.look(&seen, &decisions);
            refused.look(&seen, &decisions);
        }
        if let Some(at) = last {
            refused.look(&ShardSeen::default(), &record(at, 0));
        }
        refused.judge()
    }

    #[test]
    fn pauses_must_grow_by_the_rule_and_be_kept() {
        let (holds, detail) = judged(&[(100, 111), (111, 130)], Some(131));
        assert!(holds, "{detail}");
        assert_eq!(detail, "left alone for 11 s, then 19 s");
        assert!(!judged(&[(100, 111), (111, 130)], None).0, "it was never called again");
        for (refusals, last, why) in [
            (&[(100, 111)][..], Some(112), "one refusal shows no growth"),
            (&[(100, 111), (111, 121)], Some(122), "a constant pause"),
            (&[(100, 102), (102, 104)], Some(105), "the provider's hold is no backoff"),
            (&[(100, 111), (111, 130)], Some(120), "called before the second was over"),
            (&[(100, 110), (104, 124)], Some(125), "called before the first was over"),
            (&[(100, 0), (101, 0)], Some(102), "no backoff at all"),
        ] {
            let (holds, detail) = judged(refusals, last);
            assert!(!holds, "{why}: {detail}");
        }
    }
}
