//! The variables of one template call, the newest on top.

use super::super::{node::Name, value::Value};

pub(super) struct Variables {
    stack: Vec<(Name, Value)>,
}

impl Variables {
    pub(super) fn new(root: Value) -> Self {
        Self { stack: vec![("$".into(), root)] }
    }

    pub(super) fn declare(&mut self, name: &Name, value: Value) {
        self.stack.push((Name::clone(name), value));
    }

    /// The newest of the name.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.stack.iter().rev().find(|(known, _)| **known == *name).map(|(_, value)| value)
    }

    /// Sets the newest of the name; whether there is one.
    pub(super) fn assign(&mut self, name: &str, value: Value) -> bool {
        let found = self.stack.iter_mut().rev().find(|(known, _)| **known == *name);
        found.map(|(_, slot)| *slot = value).is_some()
    }

    pub(super) fn set_from_top(&mut self, place: usize, value: Value) {
        if let Some((_, slot)) = self.stack.iter_mut().nth_back(place - 1) {
            *slot = value;
        }
    }

    pub(super) fn mark(&self) -> usize {
        self.stack.len()
    }

    pub(super) fn forget_since(&mut self, mark: usize) {
        self.stack.truncate(mark);
    }

    /// What looking a name up may cost.
    pub(super) fn len_walked(&self) -> usize {
        1 + self.stack.len() / 16
    }
}
