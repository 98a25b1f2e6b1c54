//! Whether a log keeps its promise: every decision is followed by exactly one
//! closing outcome, or by the end of its process. For tests.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, BufRead},
};

use super::record::{Record, SET_ACTUATION};
use crate::{
    data_dir::SEQUENCE_BITS,
    outcome::{Disposition, Outcome},
};

/// What a good log holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Decisions that were queued.
    pub decided: usize,
    /// Decisions that were withheld by pause or shadow mode.
    pub withheld: usize,
    /// Closing outcomes.
    pub closed: usize,
    /// Decisions of the last process without one.
    pub open: usize,
}

/// Reads a log and says what is in it, or which line breaks the promise.
pub fn check(log: impl BufRead) -> Result<Summary, String> {
    let mut summary = Summary::default();
    let mut open: BTreeMap<i64, Record> = BTreeMap::new();
    let mut closed = BTreeSet::new();
    let mut last = 0;
    for (number, line) in log.lines().enumerate() {
        let broken = |what: String| Err(format!("line {}: {what}", number + 1));
        let line = line.map_err(|error: io::Error| error.to_string())?;
        let record: Record = match serde_json::from_str(&line) {
            Ok(record) => record,
            Err(error) => return broken(format!("no record: {error}: {line}")),
        };
        if record.seq <= last {
            return broken(format!("seq {} after {last}", record.seq));
        }
        let epoch = |seq: i64| seq >> SEQUENCE_BITS;
        if epoch(record.seq) != epoch(last) {
            // The process before ended; what it left open is over.
            open.clear();
        } else if record.seq != last + 1 {
            return broken(format!("records between {last} and {} are lost", record.seq));
        }
        last = record.seq;
        let Some(of) = record.of else {
            match &*record.outcome {
                _ if record.kind == SET_ACTUATION => {}
                outcome if outcome == Disposition::Decided.label() => {
                    summary.decided += 1;
                    open.insert(record.seq, record);
                }
                outcome if Disposition::ALL.iter().any(|one| one.label() == outcome) => {
                    summary.withheld += 1;
                }
                outcome => return broken(format!("{outcome} without a decision")),
            }
            continue;
        };
        let Some(outcome) = Outcome::ALL.iter().find(|one| one.label() == record.outcome) else {
            return broken(format!("unknown outcome {}", record.outcome));
        };
        if closed.contains(&of) {
            return broken(format!("{outcome} of {of}, which is closed"));
        }
        let Some(decision) = open.get(&of) else {
            return broken(format!("{outcome} of {of}, which was not decided"));
        };
        let same = |one: &Record| (one.kind.clone(), one.machine.clone(), one.cycle);
        if same(decision) != same(&record) {
            return broken(format!("not the kind, machine and cycle of decision {of}"));
        }
        if outcome.closes() {
            open.remove(&of);
            closed.insert(of);
            summary.closed += 1;
        }
    }
    summary.open = open.len();
    Ok(summary)
}
