//! ReportShard.

use bigfleet_net::{grpc::code_name, identity::Identity, rule::Rule};
use bigfleet_wire::v1alpha1::{ReportAck, ShardReport};
use tokio::time::Instant;
use tonic::{Code, Request, Status};

use super::{
    Coordinator, Replica,
    guard::{Led, Serves},
    rpc,
};
use crate::{
    reports::{Begun, Refusal, Rejected, batches, limits},
    state::{Command, Refused},
};

impl<R: Replica> Coordinator<R> {
    pub(super) async fn report(&self, request: Request<ShardReport>) -> Result<ReportAck, Status> {
        let began = Instant::now();
        let answer = self.answer_report(request).await;
        let code = answer.as_ref().map_or_else(Status::code, |_| Code::Ok);
        self.metrics.reported(code_name(code), began.elapsed());
        answer
    }

    async fn answer_report(&self, request: Request<ShardReport>) -> Result<ReportAck, Status> {
        let rule = Rule::exactly(Identity::Shard(request.get_ref().shard_id.clone()));
        let led = self.lead(&request, &rule, Serves::Open)?;
        limits::report(request.get_ref())?;
        self.admit(rpc::REPORT_SHARD, &request, &rule)?;
        let report = request.into_inner();
        self.barrier(led).await?;
        match self.soft(led.term, |reports, state, now| reports.begin(state, &report, now))?? {
            Begun::Answer(ack) => return Ok(*ack),
            Begun::Commit(command) => self.register(led, *command).await?,
            Begun::Known => {}
        }
        let taken = self.soft(led.term, |reports, state, now| reports.take(state, report, now))?;
        let mut taken = taken?;
        for command in batches(std::mem::take(&mut taken.commands)) {
            // What is refused has changed meanwhile; the next report shows how.
            let outcome = self.commit(led, command).await?;
            self.soft(led.term, |reports, _, _| reports.count_conflicts(&outcome))?;
        }
        for Refusal { transfer, donor, reason } in &taken.refusals {
            tracing::info!(%transfer, %donor, reason, "a donor refused a transfer; it has ended");
        }
        self.soft(led.term, |reports, state, now| reports.answer(state, &taken, now))
    }

    /// A process becomes known before anything else that it says counts.
    async fn register(&self, led: Led, command: Command) -> Result<(), Status> {
        match self.commit(led, command).await? {
            // Two reports at once: the other one registered it.
            Ok(_) | Err(Refused::ShardExists(_)) => Ok(()),
            Err(Refused::StaleEpoch { shard, known }) => {
                self.metrics.stale_epoch.inc();
                let shard = shard.to_string();
                Err(Rejected::StaleEpoch { shard, epoch: known, known }.into())
            }
            Err(refused) => Err(Status::unavailable(format!("not registered: {refused}"))),
        }
    }
}
