//! Whether a process is ready, and if not, why: one value behind `/readyz`
//! and the gRPC health of the named services.

use std::sync::Arc;

use tokio::sync::watch;

/// Ready, or the reason why not.
pub type State = Result<(), String>;

/// A shared handle; clones see the same state.
#[derive(Debug, Clone)]
pub struct Readiness {
    state: Arc<watch::Sender<State>>,
}

impl Readiness {
    /// Not ready, for this reason.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Self {
        Self { state: Arc::new(watch::Sender::new(Err(reason.into()))) }
    }

    /// Ready from now on.
    pub fn set_ready(&self) {
        self.set(Ok(()));
    }

    /// Not ready from now on. The reason is what `/readyz` answers.
    pub fn set_not_ready(&self, reason: impl Into<String>) {
        self.set(Err(reason.into()));
    }

    fn set(&self, new: State) {
        self.state.send_if_modified(|state| {
            let changed = *state != new;
            *state = new;
            changed
        });
    }

    /// Whether the process is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.state.borrow().is_ok()
    }

    /// The state with its reason.
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Follows the state; the receiver has seen the present one.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_are_news() {
        let readiness = Readiness::new("starting");
        let follower = readiness.subscribe();
        assert_eq!(readiness.state(), Err("starting".into()));
        readiness.set_not_ready("starting");
        assert!(!follower.has_changed().unwrap());
        readiness.set_ready();
        assert!(readiness.is_ready() && follower.has_changed().unwrap());
        readiness.set_not_ready("fenced");
        assert_eq!(readiness.state(), Err("fenced".into()));
    }
}
