//! What the screen shows.

use std::collections::{BTreeMap, VecDeque};

use bigfleet_wire::v1alpha1::{CycleSummary, DecisionRecord};

/// Decisions that are kept.
const DECISIONS: usize = 200;

/// What happens to the model.
#[derive(Debug, Clone)]
pub enum Event {
    /// A shard and where it is.
    Known(String, String),
    /// A shard's cycle.
    Summary(String, Box<CycleSummary>),
    /// A shard's decision.
    Decision(String, Box<DecisionRecord>),
    /// A shard's stream ended.
    Lost(String, String),
    /// The time.
    Now(i64),
    /// The next shard.
    Down,
    /// The one before.
    Up,
    /// The end.
    Quit,
}

/// One shard.
#[derive(Debug, Clone, Default)]
pub struct Pane {
    /// Where it is.
    pub address: String,
    /// Its last cycle.
    pub summary: Option<CycleSummary>,
    /// Why nothing comes.
    pub lost: Option<String>,
}

/// Everything the screen shows.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// Whether identities are not checked.
    pub plaintext: bool,
    /// Shards that there are, of which some may not be watched.
    pub known: usize,
    /// The time, in unix nanoseconds.
    pub now: i64,
    /// Shards by id.
    pub shards: BTreeMap<String, Pane>,
    /// Which of them is shown in full.
    pub selected: usize,
    /// Newest first, with the shard that made them.
    pub decisions: VecDeque<(String, DecisionRecord)>,
    over: bool,
}

impl Model {
    /// Nothing yet.
    #[must_use]
    pub fn new(plaintext: bool) -> Self {
        Self { plaintext, ..Self::default() }
    }

    /// Takes in what happened.
    pub fn apply(&mut self, event: Event) {
        match event {
            Event::Known(id, address) => {
                self.shards.entry(id).or_default().address = address;
                self.known = self.known.max(self.shards.len());
            }
            Event::Summary(id, summary) => {
                let pane = self.shards.entry(id).or_default();
                pane.summary = Some(*summary);
                pane.lost = None;
            }
            Event::Lost(id, why) => self.shards.entry(id).or_default().lost = Some(why),
            Event::Decision(id, record) => {
                self.decisions.push_front((id, *record));
                self.decisions.truncate(DECISIONS);
            }
            Event::Now(now) => self.now = now,
            Event::Down => {
                self.selected = (self.selected + 1).min(self.shards.len().saturating_sub(1));
            }
            Event::Up => self.selected = self.selected.saturating_sub(1),
            Event::Quit => self.over = true,
        }
    }

    /// Whether every shard has shown a cycle, or that it will not.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.shards.values().all(|pane| pane.summary.is_some() || pane.lost.is_some())
    }

    /// The last cycles of shards that still tell them. What a lost one told is no part of
    /// what the fleet comes to now.
    pub fn told(&self) -> impl Iterator<Item = &CycleSummary> {
        let living = self.shards.values().filter(|pane| pane.lost.is_none());
        living.filter_map(|pane| pane.summary.as_ref())
    }

    /// Whether somebody has seen enough.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// The shard shown in full.
    #[must_use]
    pub fn selection(&self) -> Option<(&String, &Pane)> {
        self.shards.iter().nth(self.selected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selection_stays_among_the_shards() {
        let mut model = Model::new(false);
        assert!(model.selection().is_none());
        for id in ["a", "b"] {
            model.apply(Event::Known(id.to_owned(), String::new()));
        }
        for (event, id) in
            [(Event::Up, "a"), (Event::Down, "b"), (Event::Down, "b"), (Event::Up, "a")]
        {
            model.apply(event);
            assert_eq!(model.selection().unwrap().0, id);
        }
    }

    #[test]
    fn a_shard_that_comes_back_is_lost_no_more() {
        let mut model = Model::new(false);
        model.apply(Event::Known("a".to_owned(), "h:1".to_owned()));
        assert!(!model.is_complete());
        model.apply(Event::Lost("a".to_owned(), "refused".to_owned()));
        assert!(model.is_complete() && model.shards["a"].lost.is_some());
        model.apply(Event::Summary("a".to_owned(), Box::default()));
        assert!(model.shards["a"].lost.is_none());
        model.apply(Event::Quit);
        assert!(model.is_over());
    }

    #[test]
    fn old_decisions_fall_away() {
        let mut model = Model::new(false);
        for sequence in 1..=300 {
            let record = DecisionRecord { sequence, ..DecisionRecord::default() };
            model.apply(Event::Decision("a".to_owned(), Box::new(record)));
        }
        assert_eq!((model.decisions.len(), model.decisions[0].1.sequence), (DECISIONS, 300));
    }
}
