//! What was told lately: the newest of everything that has a state, and the last decisions.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use super::event::{Event, Kind, Topic};

/// Decisions kept for those who come back.
const KEPT: usize = 4_096;

/// Position of a viewer who comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    /// One who was not here before.
    New,
    /// One who has seen everything up to this number.
    Seen(u64),
    /// One who comes back to another process.
    Elsewhere,
}

/// What was told lately. Pure.
#[derive(Debug, Default)]
pub(super) struct Board {
    last: u64,
    /// The newest by topic, shard and kind.
    states: BTreeMap<(Topic, Option<String>, bool), Arc<Event>>,
    decisions: VecDeque<Arc<Event>>,
    /// Decisions up to this number are not all here.
    forgotten: u64,
}

impl Board {
    /// Gives an event its number and keeps what must be kept.
    pub(super) fn put(&mut self, mut event: Event) -> Arc<Event> {
        self.last += 1;
        event.number = self.last;
        let event = Arc::new(event);
        if event.topic == Topic::Decisions && event.kind == Kind::News {
            if self.decisions.len() == KEPT
                && let Some(oldest) = self.decisions.pop_front()
            {
                self.forgotten = oldest.number;
            }
            self.decisions.push_back(event.clone());
        } else {
            let key = (event.topic.clone(), event.shard.clone(), event.kind == Kind::News);
            self.states.insert(key, event.clone());
        }
        event
    }

    /// Nobody watched for a while: what was here is old, and decisions went by unseen.
    pub(super) fn forget(&mut self) {
        self.last += 1;
        self.forgotten = self.last;
        self.states.clear();
        self.decisions.clear();
    }

    /// A shard that is no more has no state.
    pub(super) fn forget_shard(&mut self, shard: &str) {
        self.states.retain(|(_, of, _), _| of.as_deref() != Some(shard));
    }

    /// What a viewer of these topics must be told first, and whether they missed something.
    pub(super) fn backlog(&self, topics: &[Topic], since: Since) -> (Vec<Arc<Event>>, bool) {
        let seen = match since {
            Since::Seen(number) if number <= self.last => number,
            // A number that was never given is another process's.
            Since::Seen(_) | Since::New | Since::Elsewhere => 0,
        };
        let decisions = topics.contains(&Topic::Decisions);
        let missed = match since {
            Since::New => false,
            Since::Elsewhere => true,
            Since::Seen(number) => number > self.last || (decisions && number < self.forgotten),
        };
        let wanted = |event: &&Arc<Event>| topics.contains(&event.topic) && event.number > seen;
        let mut events: Vec<Arc<Event>> = self.states.values().filter(wanted).cloned().collect();
        if let Since::Seen(_) = since
            && !missed
        {
            events.extend(self.decisions.iter().filter(wanted).cloned());
        }
        events.sort_by_key(|event| event.number);
        (events, missed)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn event(topic: Topic, shard: &str) -> Event {
        let shard = Some(shard.to_owned());
        let data = Bytes::new();
        let cluster = String::new();
        Event { number: 0, topic, shard, cluster, kind: Kind::News, data, scoped: None }
    }

    fn numbers(events: &[Arc<Event>]) -> Vec<u64> {
        events.iter().map(|event| event.number).collect()
    }

    const ALL: [Topic; 2] = [Topic::Summary, Topic::Decisions];

    #[test]
    fn a_newcomer_gets_the_newest_state_and_no_old_decisions() {
        let mut board = Board::default();
        for topic in [Topic::Summary, Topic::Summary, Topic::Decisions] {
            board.put(event(topic, "a"));
        }
        board.put(event(Topic::Summary, "b"));
        let (events, missed) = board.backlog(&ALL, Since::New);
        assert_eq!((numbers(&events), missed), (vec![2, 4], false));
        assert!(board.backlog(&[Topic::Topology], Since::New).0.is_empty());
        board.forget_shard("b");
        assert_eq!(numbers(&board.backlog(&ALL, Since::New).0), [2]);
    }

    #[test]
    fn one_who_comes_back_gets_every_decision_since() {
        let mut board = Board::default();
        for _ in 0..5 {
            board.put(event(Topic::Decisions, "a"));
        }
        assert!(!board.backlog(&ALL, Since::Seen(3)).1);
        assert_eq!(numbers(&board.backlog(&ALL, Since::Seen(3)).0), [4, 5]);
        assert!(board.backlog(&ALL, Since::Seen(5)).0.is_empty());
        assert!(board.backlog(&ALL, Since::Elsewhere).1);
        assert!(board.backlog(&ALL, Since::Seen(6)).1, "a number that was never given");
    }

    #[test]
    fn what_was_forgotten_is_said() {
        let mut board = Board::default();
        for _ in 0..KEPT + 2 {
            board.put(event(Topic::Decisions, "a"));
        }
        assert!(board.backlog(&ALL, Since::Seen(1)).1);
        assert!(!board.backlog(&ALL, Since::Seen(2)).1);
        assert_eq!(board.backlog(&ALL, Since::Seen(2)).0.len(), KEPT);
        assert!(!board.backlog(&[Topic::Summary], Since::Seen(1)).1, "states need no history");
        board.forget();
        assert!(board.backlog(&ALL, Since::Seen(KEPT as u64 + 2)).1);
    }
}
