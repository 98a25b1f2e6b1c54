//! Time and text that one rendering may use.

use std::time::Duration;

use super::{super::Limits, Result, fault};

/// Looks at the clock cost more than most steps, so one covers many.
const STEPS_PER_LOOK: usize = 128;
/// Bytes that count as one step.
const BYTES_PER_STEP: usize = 256;
/// Strings made on the way may add up to this many times the output.
const TEXT_PER_OUTPUT: usize = 16;

pub(super) struct Budget {
    limits: Limits,
    started: Duration,
    /// Until the next look at the clock.
    steps: usize,
    text: usize,
}

impl Budget {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            started: (limits.clock)(),
            steps: 0,
            text: limits.output.saturating_mul(TEXT_PER_OUTPUT),
        }
    }

    /// Pays for steps of a bounded size.
    pub(super) fn spend(&mut self, steps: usize) -> Result<()> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps < STEPS_PER_LOOK {
            return Ok(());
        }
        self.steps = 0;
        let used = (self.limits.clock)().saturating_sub(self.started);
        if used > self.limits.time {
            return fault(format!("rendering takes longer than {:?}", self.limits.time));
        }
        Ok(())
    }

    /// Pays for bytes that were looked at or copied.
    pub(super) fn spend_bytes(&mut self, bytes: usize) -> Result<()> {
        self.spend(1 + bytes / BYTES_PER_STEP)
    }

    /// Pays for a string that was made and may be kept.
    pub(super) fn keep(&mut self, bytes: usize) -> Result<()> {
        match self.text.checked_sub(bytes) {
            Some(left) => self.text = left,
            None => {
                return fault(format!(
                    "strings made on the way add up to more than {} MiB",
                    (self.limits.output * TEXT_PER_OUTPUT) >> 20
                ));
            }
        }
        self.spend_bytes(bytes)
    }
}
