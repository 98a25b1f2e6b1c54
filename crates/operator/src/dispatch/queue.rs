use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::Hash;

use super::Moment;

/// What is due, one entry per key, and what is being worked on.
///
/// A key is worked on by one worker at a time: marked again meanwhile, it comes back when that
/// worker is done. Urgent keys go before the others.
#[derive(Debug)]
pub struct Queue<K> {
    urgent: VecDeque<K>,
    due: VecDeque<K>,
    state: HashMap<K, State>,
    later: BTreeSet<(Moment, K)>,
    times: HashMap<K, Moment>,
    running: HashSet<K>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Due,
    Urgent,
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Self {
            urgent: VecDeque::new(),
            due: VecDeque::new(),
            state: HashMap::new(),
            later: BTreeSet::new(),
            times: HashMap::new(),
            running: HashSet::new(),
        }
    }
}

impl<K: Clone + Eq + Hash + Ord> Queue<K> {
    /// Marks a key as due; what waited for a later time is due now.
    pub fn mark(&mut self, key: K, urgent: bool) {
        if let Some(at) = self.times.remove(&key) {
            self.later.remove(&(at, key.clone()));
        }
        match (self.state.get(&key), urgent) {
            (Some(State::Urgent), _) | (Some(State::Due), false) => {}
            (Some(State::Due), true) => {
                // Its old place is skipped when it is reached.
                self.state.insert(key.clone(), State::Urgent);
                self.urgent.push_back(key);
            }
            (None, true) => {
                self.state.insert(key.clone(), State::Urgent);
                self.urgent.push_back(key);
            }
            (None, false) => {
                self.state.insert(key.clone(), State::Due);
                self.due.push_back(key);
            }
        }
    }

    /// Marks a key as due at a later time, unless it is due or has an earlier time already.
    pub fn mark_at(&mut self, key: K, at: Moment) {
        if self.state.contains_key(&key) {
            return;
        }
        match self.times.get(&key).copied() {
            Some(earlier) if earlier <= at => return,
            Some(later) => {
                self.later.remove(&(later, key.clone()));
            }
            None => {}
        }
        self.times.insert(key.clone(), at);
        self.later.insert((at, key));
    }

    /// The next key to work on; the caller says [`done`](Self::done) afterwards.
    pub fn next(&mut self, now: Moment) -> Option<K> {
        self.ripen(now);
        let Self { urgent, due, state, running, .. } = self;
        let key = take(urgent, State::Urgent, state, running)
            .or_else(|| take(due, State::Due, state, running))?;
        self.state.remove(&key);
        self.running.insert(key.clone());
        Some(key)
    }

    /// The worker of this key is done.
    pub fn done(&mut self, key: &K) {
        self.running.remove(key);
    }

    /// When something that waits for its time becomes due.
    #[must_use]
    pub fn wakes_at(&self) -> Option<Moment> {
        self.later.first().map(|(at, _)| *at)
    }

    /// Keys that wait, for now or for later.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.len() + self.times.len()
    }

    /// Whether nothing waits and nobody works.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.len() == 0 && self.running.is_empty()
    }

    /// Forgets what waits. Running workers finish.
    pub fn clear(&mut self) {
        let running = std::mem::take(&mut self.running);
        *self = Self { running, ..Self::default() };
    }

    fn ripen(&mut self, now: Moment) {
        while self.later.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, key)) = self.later.pop_first() else { return };
            self.times.remove(&key);
            self.mark(key, false);
        }
    }
}

/// The first key of the line that nobody works on. Places whose key stands elsewhere by now are
/// dropped on the way; keys that are being worked on go to the end of the line.
fn take<K: Clone + Eq + Hash>(
    line: &mut VecDeque<K>,
    place: State,
    state: &HashMap<K, State>,
    running: &HashSet<K>,
) -> Option<K> {
    for _ in 0..line.len() {
        let key = line.pop_front()?;
        if state.get(&key) != Some(&place) {
            continue;
        }
        if running.contains(&key) {
            line.push_back(key);
            continue;
        }
        return Some(key);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment::ZERO;

    #[test]
    fn a_key_stands_in_line_once() {
        let mut queue = Queue::default();
        for _ in 0..3 {
            queue.mark("a", false);
            queue.mark("b", false);
        }
        assert_eq!(queue.len(), 2);
        assert_eq!(queue.next(NOW), Some("a"));
        assert_eq!(queue.next(NOW), Some("b"));
        assert_eq!(queue.next(NOW), None);
    }

    #[test]
    fn a_key_has_one_worker_and_comes_back_when_marked_meanwhile() {
        let mut queue = Queue::default();
        queue.mark("a", false);
        assert_eq!(queue.next(NOW), Some("a"));
        queue.mark("a", true);
        queue.mark("b", false);
        assert_eq!(queue.next(NOW), Some("b"));
        assert_eq!(queue.next(NOW), None);
        queue.done(&"a");
        assert_eq!(queue.next(NOW), Some("a"));
        queue.done(&"a");
        queue.done(&"b");
        assert!(queue.is_idle());
    }

    #[test]
    fn the_urgent_go_first_and_leave_no_second_place_behind() {
        let mut queue = Queue::default();
        queue.mark("a", false);
        queue.mark("b", false);
        queue.mark("b", true);
        assert_eq!(queue.next(NOW), Some("b"));
        queue.done(&"b");
        assert_eq!(queue.next(NOW), Some("a"));
        assert_eq!(queue.next(NOW), None);
    }

    #[test]
    fn what_waits_for_its_time_comes_then_or_when_marked() {
        let mut queue = Queue::default();
        let at = Moment::from_secs;
        queue.mark_at("a", at(5));
        queue.mark_at("b", at(9));
        queue.mark_at("a", at(7));
        assert_eq!(queue.wakes_at(), Some(at(5)));
        assert_eq!(queue.next(at(4)), None);
        queue.mark("b", false);
        assert_eq!(queue.next(at(4)), Some("b"));
        assert_eq!(queue.next(at(5)), Some("a"));
        assert_eq!(queue.len(), 0);
    }
}
