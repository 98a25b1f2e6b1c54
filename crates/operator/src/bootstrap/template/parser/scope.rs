//! The variables a body has declared so far.

use std::{collections::HashMap, sync::Arc};

use super::super::node::Name;

/// A stack of names; asking for one does not walk it.
pub(super) struct Scope {
    names: Vec<Name>,
    counts: HashMap<Name, usize>,
}

impl Default for Scope {
    fn default() -> Self {
        let mut scope = Self { names: Vec::new(), counts: HashMap::new() };
        scope.declare("$".into());
        scope
    }
}

impl Scope {
    pub(super) fn declare(&mut self, name: Name) {
        *self.counts.entry(Arc::clone(&name)).or_default() += 1;
        self.names.push(name);
    }

    pub(super) fn knows(&self, name: &str) -> bool {
        self.counts.get(name).is_some_and(|&count| count > 0)
    }

    pub(super) fn mark(&self) -> usize {
        self.names.len()
    }

    /// Forgets what was declared since the mark.
    pub(super) fn forget_since(&mut self, mark: usize) {
        for name in self.names.drain(mark..) {
            if let Some(count) = self.counts.get_mut(&name) {
                *count -= 1;
            }
        }
    }
}
