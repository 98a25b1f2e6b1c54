//! Machines that the cloud does not move.

use std::{collections::HashMap, time::Duration};

use serde::Deserialize;
use tokio::time::Instant;

/// What a call about a frozen machine gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// None, until it thaws or its time is over.
    #[default]
    Hang,
    /// An error that says to try again.
    Refuse,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Frost {
    pub(crate) answer: Answer,
    pub(crate) until: Option<Instant>,
}

/// By slot.
#[derive(Debug, Default)]
pub(crate) struct Frozen {
    slots: HashMap<String, Frost>,
}

impl Frozen {
    pub(crate) fn freeze(
        &mut self,
        slot: &str,
        answer: Answer,
        length: Option<Duration>,
        now: Instant,
    ) {
        let until = length.map(|length| now + length);
        self.slots.insert(slot.to_owned(), Frost { answer, until });
    }

    pub(crate) fn thaw(&mut self, slot: &str) -> bool {
        self.slots.remove(slot).is_some()
    }

    /// Forgets what is over.
    pub(crate) fn of(&mut self, slot: &str, now: Instant) -> Option<Frost> {
        let frost = *self.slots.get(slot)?;
        if frost.until.is_some_and(|until| until <= now) {
            self.slots.remove(slot);
            return None;
        }
        Some(frost)
    }
}
