//! The first pass of a term: every pod that was there at its begin has been seen to.

use std::collections::HashSet;

use bigfleet_in_cluster::ObjectKey;

/// The pods that are still to be seen to; none once the pass is over.
#[derive(Debug, Default)]
pub(crate) struct Pass(Option<HashSet<ObjectKey>>);

impl Pass {
    /// Begins with these pods.
    pub(crate) fn begin(&mut self, pods: impl IntoIterator<Item = ObjectKey>) {
        self.0 = Some(pods.into_iter().collect());
        self.end_if_empty();
    }

    /// This pod is seen to; true once, when it was the last.
    pub(crate) fn settle(&mut self, pod: &ObjectKey) -> bool {
        self.0.as_mut().is_some_and(|waiting| waiting.remove(pod)) && self.end_if_empty()
    }

    /// Whether all pods are seen to.
    #[must_use]
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_none()
    }

    fn end_if_empty(&mut self) -> bool {
        self.0.take_if(|waiting| waiting.is_empty()).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_pod_ends_the_pass_once() {
        let key = |name| ObjectKey::namespaced("apps", name);
        let mut pass = Pass::default();
        assert!(!pass.settle(&key("a")), "no pass was begun");
        pass.begin([key("a"), key("b")]);
        assert!(!pass.settle(&key("a")));
        assert!(!pass.settle(&key("a")));
        assert!(!pass.settle(&key("c")));
        assert!(pass.settle(&key("b")));
        assert!(!pass.settle(&key("b")));
        pass.begin([key("a")]);
        assert!(!pass.is_over());
        pass.begin([]);
        assert!(pass.is_over());
    }
}
