use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Eviction calls in flight, of all nodes together.
pub const IN_FLIGHT: usize = 64;

/// Calls of many nodes, taken round-robin so that no node waits for another's.
#[derive(Debug)]
pub struct Rotation<T> {
    lines: HashMap<Arc<str>, VecDeque<T>>,
    turns: VecDeque<Arc<str>>,
    in_flight: usize,
    limit: usize,
}

impl<T> Rotation<T> {
    /// At most so many calls in flight.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { lines: HashMap::new(), turns: VecDeque::new(), in_flight: 0, limit }
    }

    /// A call of this node waits.
    pub fn push(&mut self, node: &Arc<str>, call: T) {
        let line = self.lines.entry(node.clone()).or_default();
        if line.is_empty() {
            self.turns.push_back(node.clone());
        }
        line.push_back(call);
    }

    /// The next call to make; say [`done`](Self::done) when it was answered.
    pub fn next(&mut self) -> Option<T> {
        if self.in_flight >= self.limit {
            return None;
        }
        let node = self.turns.pop_front()?;
        let line = self.lines.get_mut(&node)?;
        let call = line.pop_front()?;
        if line.is_empty() {
            self.lines.remove(&node);
        } else {
            self.turns.push_back(node);
        }
        self.in_flight += 1;
        Some(call)
    }

    /// A call was answered.
    pub fn done(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_with_many_calls_takes_one_turn_at_a_time() {
        let mut rotation = Rotation::new(8);
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        for call in ["a1", "a2", "a3"] {
            rotation.push(&a, call);
        }
        rotation.push(&b, "b1");
        let order: Vec<_> = std::iter::from_fn(|| rotation.next()).collect();
        assert_eq!(order, ["a1", "b1", "a2", "a3"]);
    }

    #[test]
    fn no_more_than_the_limit_are_in_flight() {
        let mut rotation = Rotation::new(2);
        let node: Arc<str> = "a".into();
        (0..5).for_each(|call| rotation.push(&node, call));
        assert_eq!(std::iter::from_fn(|| rotation.next()).count(), 2);
        rotation.done();
        assert_eq!(rotation.next(), Some(2));
        assert_eq!(rotation.next(), None);
    }
}
