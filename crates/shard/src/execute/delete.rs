//! Idle → Deleting → Speculative.

use bigfleet_model::{MachineId, MachineState};

use super::{Ended, call::Mutation};
use crate::{live::Cause, outcome::Outcome, shard::Shard};

impl Shard {
    pub(super) async fn delete(&self, machine: &MachineId, decision: i64) -> Ended {
        {
            let mut desk = self.desk().await;
            if desk.state(machine) != Some(MachineState::Idle) {
                return Outcome::Success.into();
            }
            desk.write(machine, Cause::Decision, decision, |tracked| {
                tracked.machine.state = MachineState::Deleting;
                tracked.idle_since = None;
            });
        }
        let answer = self.mutate(machine, Mutation::Delete).await;
        let unsupported = answer.as_ref().is_err_and(|failed| failed.unsupported);
        if unsupported && self.live().undeletable.insert(machine.clone()) {
            tracing::warn!(
                %machine,
                "its provider cannot delete it: it is never released again; declare it as bare \
                 metal or reserved"
            );
        }
        self.conclude(machine, MachineState::Idle, answer, decision).await
    }
}
