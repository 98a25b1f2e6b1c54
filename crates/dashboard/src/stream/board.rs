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
    /// Whether decisions are told at all.
    followed: bool,
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

    /// This is watched no more: its state will be old, and its decisions go by unseen.
    pub(super) fn forget(&mut self, topic: &Topic, shard: Option<&str>) {
        // Notices of needs come from summaries.
        let needs = shard.filter(|_| *topic == Topic::Summary);
        let needs = needs.map(|shard| Topic::Needs(shard.to_owned()));
        let its = |of: &Topic| of == topic || needs.as_ref() == Some(of);
        self.states.retain(|(of, at, _), _| !(its(of) && at.as_deref() == shard));
        if *topic == Topic::Decisions {
            self.followed = false;
            self.decisions.retain(|event| event.shard.as_deref() != shard);
        }
    }

    /// Decisions are wanted. If they were not told until now, then those before are not here, not
    /// even for somebody who was told of other topics meanwhile.
    fn follow(&mut self) {
        if !std::mem::replace(&mut self.followed, true) {
            self.last += 1;
            self.forgotten = self.last;
        }
    }

    /// What a viewer of these topics must be told first, and whether they missed something.
    pub(super) fn backlog(&mut self, topics: &[Topic], since: Since) -> (Vec<Arc<Event>>, bool) {
        let decisions = topics.contains(&Topic::Decisions);
        if decisions {
            self.follow();
        }
        let seen = match since {
            Since::Seen(number) if number <= self.last => number,
            // A number that was never given is another process's.
            Since::Seen(_) | Since::New | Since::Elsewhere => 0,
        };
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

    /// One that somebody wants decisions of, who got the first number.
    fn followed() -> Board {
        let mut board = Board::default();
        board.follow();
        board
    }

    const ALL: [Topic; 2] = [Topic::Summary, Topic::Decisions];

    #[test]
    fn a_newcomer_gets_the_newest_state_and_no_old_decisions() {
        let mut board = followed();
        for topic in [Topic::Summary, Topic::Summary, Topic::Decisions] {
            board.put(event(topic, "a"));
        }
        board.put(event(Topic::Summary, "b"));
        let (events, missed) = board.backlog(&ALL, Since::New);
        assert_eq!((numbers(&events), missed), (vec![3, 5], false));
        assert!(board.backlog(&[Topic::Topology], Since::New).0.is_empty());
    }

    #[test]
    fn what_is_watched_no_more_takes_nothing_else_along() {
        let mut board = followed();
        let needs = Topic::Needs("a".to_owned());
        let failed = Event { kind: Kind::Source, ..event(Topic::Decisions, "a") };
        let events = [
            event(Topic::Summary, "a"),
            event(needs.clone(), "a"),
            failed,
            event(Topic::Summary, "b"),
        ];
        for event in events {
            board.put(event);
        }
        let all = [Topic::Summary, Topic::Decisions, needs];
        let told = |board: &mut Board| numbers(&board.backlog(&all, Since::New).0);
        assert_eq!(told(&mut board), [2, 3, 4, 5]);
        board.forget(&Topic::Decisions, Some("a"));
        assert_eq!(told(&mut board), [2, 3, 5]);
        board.forget(&Topic::Summary, Some("a"));
        assert_eq!(told(&mut board), [5]);
    }

    #[test]
    fn one_who_comes_back_gets_every_decision_since() {
        let mut board = followed();
        for _ in 0..5 {
            board.put(event(Topic::Decisions, "a"));
        }
        assert!(!board.backlog(&ALL, Since::Seen(4)).1);
        assert_eq!(numbers(&board.backlog(&ALL, Since::Seen(4)).0), [5, 6]);
        assert!(board.backlog(&ALL, Since::Seen(6)).0.is_empty());
        assert!(board.backlog(&ALL, Since::Elsewhere).1);
        assert!(board.backlog(&ALL, Since::Seen(7)).1, "a number that was never given");
    }

    #[test]
    fn who_comes_back_to_decisions_that_nobody_followed_meanwhile_is_told() {
        let mut board = Board::default();
        let before = board.put(event(Topic::Summary, "a")).number;
        assert!(!board.backlog(&[Topic::Summary], Since::Seen(before)).1);
        assert!(board.backlog(&ALL, Since::Seen(before)).1, "the first who wants them");
        for shard in ["a", "b"] {
            board.put(event(Topic::Decisions, shard));
        }
        board.forget(&Topic::Decisions, Some("a"));
        // Another topic goes on, and a number of it says nothing about decisions.
        let meanwhile = board.put(event(Topic::Summary, "a")).number;
        assert!(!board.backlog(&[Topic::Summary], Since::Seen(before)).1);
        for seen in [before, meanwhile] {
            let (events, missed) = board.backlog(&ALL, Since::Seen(seen));
            assert!(missed, "{seen}");
            assert!(events.iter().all(|event| event.topic == Topic::Summary), "{events:?}");
        }
        let after = board.put(event(Topic::Decisions, "a")).number;
        assert!(!board.backlog(&ALL, Since::Seen(after)).1);
    }

    #[test]
    fn what_was_forgotten_is_said() {
        let mut board = followed();
        for _ in 0..KEPT + 2 {
            board.put(event(Topic::Decisions, "a"));
        }
        assert!(board.backlog(&ALL, Since::Seen(2)).1);
        assert!(!board.backlog(&ALL, Since::Seen(3)).1);
        assert_eq!(board.backlog(&ALL, Since::Seen(3)).0.len(), KEPT);
        assert!(!board.backlog(&[Topic::Summary], Since::Seen(2)).1, "states need no history");
    }
}
