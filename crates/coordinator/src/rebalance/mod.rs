//! Rebalancing (coordinator chapter §9): machines go, for a while, to shards that lack
//! them, from shards of the same provider that have too many. Pure: what the leader knows
//! comes in, transfers to begin come out; a clock that does not jump is an argument.
//!
//! A pass costs what there is to decide, not shortfalls times rows: rows are of few
//! classes, shortfalls of few shapes, and which serves which is asked once (`classes`).

mod bits;
mod classes;
mod cooling;
mod donors;
mod figures;
mod fleet;
mod lacking;
mod outcome;
mod pass;
mod picture;
mod settings;
mod shelf;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use cooling::Cooling;
pub use figures::{Figures, Pool, Shortfall};
pub use outcome::{Move, Pass, Skip, tier};
pub use picture::{Heard, Picture};
pub use settings::{REPORT_INTERVAL, Settings};

use crate::{
    dice::Dice,
    state::{Command, State, TransferId, TransferKind, TransferPhase},
};

/// Seeded at random: names come from shards. Nothing that is decided follows their order.
type Map<K, V> = hashbrown::HashMap<K, V, foldhash::fast::RandomState>;
type Set<K> = hashbrown::HashSet<K, foldhash::fast::RandomState>;

/// Report intervals after which a new leader no longer waits for silent shards.
const WAITS_FOR: u32 = 3;

/// The memory of one leadership.
#[derive(Clone, Debug)]
pub struct Rebalancer {
    settings: Settings,
    /// When the leadership began.
    elected: Duration,
    last_pass: Option<Duration>,
    waiting: bool,
    cooling: Cooling,
    /// Transfers as they were seen last.
    seen: BTreeMap<TransferId, (TransferKind, TransferPhase)>,
    /// Those of them whose donor refused.
    refused: BTreeSet<TransferId>,
    dice: Dice,
}

impl Rebalancer {
    /// Of a leader elected now. `seed` must be random: transfer ids are drawn from it, and
    /// none is ever used again.
    #[must_use]
    pub fn new(settings: Settings, elected: Duration, seed: u64) -> Self {
        Self {
            cooling: Cooling::new(settings.cooldown),
            settings,
            elected,
            last_pass: None,
            waiting: false,
            seen: BTreeMap::new(),
            refused: BTreeSet::new(),
            dice: Dice::seeded(seed),
        }
    }

    /// Looks at the transfers as they are, for every second: tells what became of them
    /// since the last look. A pair of shards rests while a donor is asked, and from the
    /// moment that machines change hands, not only from when that was decided; a new
    /// leader lets every pair rest that has a transfer.
    pub fn observe(&mut self, state: &State, now: Duration) -> Vec<(TransferKind, Move)> {
        let mut moves = Vec::new();
        for (id, transfer) in state.transfers() {
            let seen = self.seen.get(id).map(|(_, phase)| *phase);
            let changed = seen != Some(transfer.phase);
            if changed || transfer.phase == TransferPhase::Releasing {
                self.cooling.start((&transfer.from, &transfer.to), &transfer.request, now);
            }
            if !changed {
                continue;
            }
            if seen.is_some() {
                moves.push((transfer.kind, Move::Moved));
            }
            self.seen.insert(id.clone(), (transfer.kind, transfer.phase));
        }
        self.seen.retain(|id, (kind, phase)| {
            let open = state.transfers().contains_key(id);
            if !open {
                let end = match phase {
                    TransferPhase::Releasing if self.refused.remove(id) => Move::Refused,
                    TransferPhase::Releasing => Move::GivenUp,
                    TransferPhase::Moved => Move::Settled,
                };
                moves.push((*kind, end));
            }
            open
        });
        self.refused.retain(|id| self.seen.contains_key(id));
        moves
    }

    /// The donors of these said no; they have ended, or are about to.
    pub fn refused(&mut self, transfers: BTreeSet<TransferId>) {
        self.refused.extend(transfers);
    }

    /// A transfer that a pass proposed has been committed: what becomes of it is told,
    /// however soon.
    pub fn begun(&mut self, command: &Command) {
        if let Command::BeginTransfer { id, kind, .. } = command {
            self.seen.insert(id.clone(), (*kind, TransferPhase::Releasing));
        }
    }

    /// Whether a pass is due, and why it is skipped if so.
    pub fn due(&mut self, heard: Heard, recovering: bool, now: Duration) -> Due {
        let since = |last| now.saturating_sub(last);
        if self.last_pass.is_some_and(|last| since(last) < self.settings.interval) {
            return Due::No;
        }
        if recovering {
            self.last_pass = Some(now);
            return Due::Skipped(Skip::Recovering);
        }
        let waited = since(self.elected) >= REPORT_INTERVAL * WAITS_FOR;
        if !waited && !heard.nearly_all() {
            // Told once; it begins as soon as they have reported.
            let told = std::mem::replace(&mut self.waiting, true);
            return if told { Due::No } else { Due::Skipped(Skip::Waiting) };
        }
        Due::Yes
    }

    /// One pass. What it proposes rests from now on, committed or not.
    pub fn pass(&mut self, picture: &Picture, now: Duration) -> Pass {
        self.last_pass = Some(now);
        let pass = pass::pass(&self.settings, self.cooling.at(now), picture, &mut self.dice);
        for command in &pass.begin {
            if let Command::BeginTransfer { from, to, request, .. } = command {
                self.cooling.start((from, to), request, now);
            }
        }
        pass
    }
}

/// Whether a pass is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// The last one was a moment ago.
    No,
    /// It is, and must not be.
    Skipped(Skip),
    /// It is.
    Yes,
}
