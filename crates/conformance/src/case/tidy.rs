//! Giving machines back after a test: bindings are drained, and where Delete
//! works what was created is deleted, for it may cost money.

use futures_util::future::join_all;

use super::{Case, State, lock};
use crate::shard::Shard;

impl Case {
    /// Best effort: what cannot be given back is left as evidence.
    pub async fn tidy(&self) {
        let picked = std::mem::take(&mut *lock(&self.own.picked));
        // A shard of its own: the test may have raised its marks to the top.
        let shard = self.shard();
        join_all(picked.iter().map(|machine| self.give_back(machine, &shard))).await;
    }

    async fn give_back(&self, machine: &str, shard: &Shard) {
        let Ok((seen, _)) = self.until(machine, super::SETTLE, |seen| at_rest(seen.state())).await
        else {
            return;
        };
        let mut state = seen.state();
        if state == State::Configured
            && self.drain_as(machine, 0, &shard.next()).await.accepted().is_ok()
            && self.settle(machine, State::Idle).await.is_ok()
        {
            state = State::Idle;
        }
        let gates = self.gates();
        if state == State::Idle && gates.slot && gates.del {
            self.delete_as(machine, &shard.next()).await;
            // The next test must not see it move.
            let _ = self.settle(machine, State::Speculative).await;
        }
    }
}

fn at_rest(state: State) -> bool {
    use State::{Configured, Failed, Idle, Speculative};
    matches!(state, Speculative | Idle | Configured | Failed)
}
