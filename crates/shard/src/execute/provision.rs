//! Speculative → Creating → (second half) Configured.

use bigfleet_engine::action::Acquisition;
use bigfleet_model::{MachineId, MachineState};

use super::{Ended, call::Mutation};
use crate::{live::Cause, outcome::Outcome, shard::Shard};

impl Shard {
    pub(super) async fn provision(
        &self,
        machine: &MachineId,
        bought: &Acquisition,
        decision: i64,
    ) -> Ended {
        {
            let mut desk = self.desk().await;
            match desk.state(machine) {
                None => return Outcome::InventoryMiss.into(),
                Some(MachineState::Speculative) => {}
                Some(_) => return Outcome::StaleState.into(),
            }
            desk.write(machine, Cause::Decision, decision, |tracked| {
                tracked.machine.state = MachineState::Creating;
                tracked.machine.stamp = Some(bought.stamp.clone());
            });
        }
        let answer = self.mutate(machine, Mutation::Create).await;
        self.conclude(machine, MachineState::Speculative, answer, decision).await
    }
}
