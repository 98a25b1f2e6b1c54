//! Evidence: what was called, in order, and what came back.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

/// Calls kept from the beginning and from the end of a long test.
const KEPT: usize = 200;

/// One call, or several equal ones in a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Call {
    /// The call with what identifies it.
    pub call: String,
    /// The status code.
    pub code: String,
    /// What came back, shortly.
    pub answer: String,
    /// How often in a row; a poll that sees nothing new is one line.
    pub times: u32,
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} -> {}", self.call, self.code)?;
        if !self.answer.is_empty() {
            write!(f, " {}", self.answer)?;
        }
        if self.times > 1 {
            write!(f, " (x{})", self.times)?;
        }
        Ok(())
    }
}

/// The calls of one test; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Trace(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    first: Vec<Call>,
    last: std::collections::VecDeque<Call>,
    dropped: usize,
}

impl Trace {
    /// Adds a call.
    pub fn add(&self, call: String, code: String, answer: String) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let newest =
            if kept.last.is_empty() { kept.first.last_mut() } else { kept.last.back_mut() };
        if let Some(newest) = newest
            && newest.call == call
            && newest.code == code
            && newest.answer == answer
        {
            newest.times += 1;
            return;
        }
        let call = Call { call, code, answer, times: 1 };
        if kept.first.len() < KEPT {
            kept.first.push(call);
            return;
        }
        kept.last.push_back(call);
        if kept.last.len() > KEPT {
            kept.last.pop_front();
            kept.dropped += 1;
        }
    }

    /// A line that is not a call: the target was killed, booted.
    pub fn note(&self, text: impl Into<String>) {
        self.add(text.into(), "-".to_owned(), String::new());
    }

    /// All that was kept, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut calls = kept.first.clone();
        if kept.dropped > 0 {
            calls.push(Call {
                call: format!("… {} calls left out …", kept.dropped),
                code: "-".to_owned(),
                answer: String::new(),
                times: 1,
            });
        }
        calls.extend(kept.last.iter().cloned());
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(trace: &Trace, call: &str) {
        trace.add(call.to_owned(), "OK".to_owned(), String::new());
    }

    #[test]
    fn equal_calls_in_a_row_are_one_line() {
        let trace = Trace::default();
        for call in ["Get a", "Get a", "Get b", "Get a"] {
            add(&trace, call);
        }
        let lines: Vec<_> = trace.calls().iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["Get a -> OK (x2)", "Get b -> OK", "Get a -> OK"]);
    }

    #[test]
    fn the_middle_of_a_long_test_is_left_out() {
        let trace = Trace::default();
        for number in 0..2 * KEPT + 5 {
            add(&trace, &format!("Get {number}"));
        }
        let calls = trace.calls();
        assert_eq!(calls.len(), 2 * KEPT + 1);
        assert_eq!(calls[KEPT].call, "… 5 calls left out …");
        assert_eq!(calls[2 * KEPT].call, format!("Get {}", 2 * KEPT + 4));
    }
}
