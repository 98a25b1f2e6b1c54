//! Which roll-up an answer of the shard means (§4).

use std::{collections::VecDeque, sync::Arc};

use bigfleet_wire::v1alpha1::Acknowledgement;

use crate::rollup::Candidate;

/// Unanswered roll-ups whose requests are remembered. Later ones carry the same
/// requests, so a shard that is further behind only acknowledges later.
const REMEMBERED: usize = 16;

/// Unanswered roll-ups of one session. A shard that leaves more open does not answer.
pub const UNANSWERED: usize = 4_096;

/// What an answer to a roll-up says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Accepted: these requests are to be acknowledged.
    Accepted(Arc<[Candidate]>),
    /// Quarantined: the shard keeps its old demand.
    Held,
    /// Refused whole, for this reason.
    Refused(String),
}

/// The roll-ups of one session that wait for an answer, oldest first.
#[derive(Debug, Default)]
pub struct Settle {
    sent: VecDeque<Sent>,
}

#[derive(Debug)]
struct Sent {
    timestamp: i64,
    candidates: Arc<[Candidate]>,
}

/// More roll-ups are unanswered than a shard that answers can leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the shard has answered none of the last {UNANSWERED} roll-ups")]
pub struct Unanswered;

impl Settle {
    /// A roll-up goes out.
    pub fn sent(&mut self, timestamp: i64, candidates: Arc<[Candidate]>) -> Result<(), Unanswered> {
        if self.sent.len() >= UNANSWERED {
            return Err(Unanswered);
        }
        self.sent.push_back(Sent { timestamp, candidates });
        // Not forgotten altogether: an answer without a timestamp means the oldest, and
        // must not be taken for a younger one.
        if let Some(at) = self.sent.len().checked_sub(REMEMBERED + 1) {
            self.sent[at].candidates = Arc::new([]);
        }
        Ok(())
    }

    /// An answer came; none if it answers no roll-up.
    pub fn answer(&mut self, answer: &Acknowledgement) -> Option<Verdict> {
        let refused = answer.echo.strip_prefix("rollup_rejected");
        if answer.echo != "rollup" && refused.is_none() {
            return None;
        }
        let named = match answer.rollup_timestamp_unix_nanos {
            0 => self.sent.pop_front(),
            timestamp => self.settle(timestamp),
        };
        if let Some(reason) = refused {
            return Some(Verdict::Refused(reason.trim_start_matches([':', ' ']).to_owned()));
        }
        if answer.held {
            return Some(Verdict::Held);
        }
        Some(Verdict::Accepted(named.map_or_else(|| Arc::new([]) as _, |sent| sent.candidates)))
    }

    /// The roll-up of this time; older ones were replaced in the shard's queue, so a
    /// request that was only in those was never seen.
    fn settle(&mut self, timestamp: i64) -> Option<Sent> {
        let mut newest = None;
        while self.sent.front().is_some_and(|sent| sent.timestamp <= timestamp) {
            newest = self.sent.pop_front();
        }
        newest.filter(|sent| sent.timestamp == timestamp)
    }

    /// How many wait.
    #[must_use]
    pub fn unanswered(&self) -> usize {
        self.sent.len()
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_in_cluster::ObjectKey;

    use super::*;
    use crate::rollup::Uid;

    fn candidates(names: &[&str]) -> Arc<[Candidate]> {
        let candidate =
            |name: &&str| Candidate { key: ObjectKey::namespaced("n", name), uid: Uid::of(name) };
        names.iter().map(candidate).collect()
    }

    fn sent(roll_ups: &[(i64, &[&str])]) -> Settle {
        let mut settle = Settle::default();
        for (timestamp, names) in roll_ups {
            settle.sent(*timestamp, candidates(names)).unwrap();
        }
        settle
    }

    fn ack(echo: &str, timestamp: i64, held: bool) -> Acknowledgement {
        Acknowledgement {
            echo: echo.to_owned(),
            rollup_timestamp_unix_nanos: timestamp,
            held,
            ..Default::default()
        }
    }

    #[test]
    fn operator_inv_18_an_answer_confirms_the_roll_up_it_names_and_no_other() {
        let mut settle = sent(&[(1, &["a"]), (2, &["a", "b"]), (3, &["a", "b", "c"])]);
        // The first was replaced in the shard's queue: what was only in it stays Pending.
        let accepted = settle.answer(&ack("rollup", 2, false)).unwrap();
        assert_eq!(accepted, Verdict::Accepted(candidates(&["a", "b"])));
        assert_eq!(settle.unanswered(), 1);
        // An answer to what is settled already, or was never sent, confirms nothing.
        for strange in [1, 2] {
            let verdict = settle.answer(&ack("rollup", strange, false)).unwrap();
            assert_eq!(verdict, Verdict::Accepted(candidates(&[])), "{strange}");
        }
        assert_eq!(settle.unanswered(), 1);
        let accepted = settle.answer(&ack("rollup", 3, false)).unwrap();
        assert_eq!(accepted, Verdict::Accepted(candidates(&["a", "b", "c"])));
    }

    #[test]
    fn operator_inv_18_without_a_timestamp_the_oldest_is_meant() {
        let mut settle = sent(&[(1, &["a"]), (2, &["a", "b"])]);
        let accepted = settle.answer(&ack("rollup", 0, false)).unwrap();
        assert_eq!(accepted, Verdict::Accepted(candidates(&["a"])));
        let refused = settle.answer(&ack("rollup_rejected: no", 0, false)).unwrap();
        assert_eq!(refused, Verdict::Refused("no".to_owned()));
        let nothing = settle.answer(&ack("rollup", 0, false)).unwrap();
        assert_eq!(nothing, Verdict::Accepted(candidates(&[])));
    }

    #[test]
    fn held_and_refused_confirm_nothing_and_settle() {
        let mut settle = sent(&[(1, &["a"]), (2, &["a"]), (3, &["a"])]);
        assert_eq!(settle.answer(&ack("rollup", 1, true)), Some(Verdict::Held));
        let refused = settle.answer(&ack("rollup_rejected: needs[0]: no", 2, false));
        assert_eq!(refused, Some(Verdict::Refused("needs[0]: no".to_owned())));
        assert_eq!(settle.unanswered(), 1);
        assert_eq!(settle.answer(&ack("hello", 0, false)), None);
        assert_eq!(settle.answer(&ack("resync", 0, false)), None);
        assert_eq!(settle.answer(&ack("rollup_of_another_kind", 3, false)), None);
        assert_eq!(settle.unanswered(), 1);
    }

    #[test]
    fn a_shard_that_never_answers_costs_no_memory_and_no_truth() {
        let mut settle = Settle::default();
        for timestamp in 1..=UNANSWERED as i64 {
            settle.sent(timestamp, candidates(&["a"])).unwrap();
        }
        assert_eq!(settle.sent(i64::MAX, candidates(&["b"])), Err(Unanswered));
        let kept = settle.sent.iter().filter(|sent| !sent.candidates.is_empty()).count();
        assert_eq!(kept, REMEMBERED);
        // The answer to the first does not confirm a later one.
        let verdict = settle.answer(&ack("rollup", 0, false)).unwrap();
        assert_eq!(verdict, Verdict::Accepted(candidates(&[])));
    }
}
