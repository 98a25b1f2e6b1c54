//! "rej" = error, not FAILED_PRECONDITION, and state, host and binding unchanged
//! at once and for 250 ms.

use super::{Answer, Case, Machine, QUIET};
use crate::{ensure, outcome::Outcome, wire::state_name};
use tonic::Code;

/// Whether a rejection left the machine as it was.
fn unmoved(before: &Machine, after: &Machine) -> bool {
    before.state == after.state
        && before.host == after.host
        && before.cluster == after.cluster
        && before.shard_metadata == after.shard_metadata
        && before.last_error == after.last_error
}

impl Case {
    /// The call must be rejected and leave the machine alone.
    pub async fn rej(&self, machine: &str, call: impl Future<Output = Answer>) -> Outcome {
        let before = self.get(machine).await?;
        let answer = call.await;
        self.was_rejected(&before, &answer).await
    }

    /// As [`Case::rej`], but a provider may also take it for a repetition and
    /// do nothing, or not know the call.
    pub async fn rej_or_nothing(
        &self,
        machine: &str,
        call: impl Future<Output = Answer>,
    ) -> Outcome {
        let before = self.get(machine).await?;
        let answer = call.await;
        match answer.code() {
            Code::Ok => self.stays(&before).await,
            _ => self.was_rejected(&before, &answer).await,
        }
    }

    /// An error that is not the fence's, and nothing moved.
    pub async fn was_rejected(&self, before: &Machine, answer: &Answer) -> Outcome {
        ensure!(answer.code() != Code::Ok, "the call on {:?} must be rejected", before.id);
        answer.passed_fence()?;
        self.stays(before).await
    }

    /// The machine stays as it was, at once and for 250 ms.
    pub async fn stays(&self, before: &Machine) -> Outcome {
        for after in self.watch(&before.id, QUIET).await?.0 {
            ensure!(
                unmoved(before, &after),
                "{:?} must not move: it was {} cluster {:?}, host {:?}, and is {} cluster {:?}, host {:?}",
                before.id,
                state_name(before.state),
                before.cluster,
                before.host.as_ref().map(|host| &host.r#ref),
                state_name(after.state),
                after.cluster,
                after.host.as_ref().map(|host| &host.r#ref)
            );
        }
        Ok(())
    }
}
