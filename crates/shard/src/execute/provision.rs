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
        let ack = match self.mutate(machine, Mutation::Create).await {
            Ok(ack) => ack,
            Err(failed) => {
                return self.settle(machine, MachineState::Speculative, failed, decision).await;
            }
        };
        match self.apply_ack(machine, &ack, decision).await {
            Ok(_) => Ended::success(ack.operation_id),
            Err(error) => self.settle_rejected(machine, error, decision).await,
        }
    }
}
