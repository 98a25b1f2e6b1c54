//! Reporting to the leader, whichever replica that is.

use bigfleet_net::{
    grpc,
    leader::{Replicas, Turn},
    message_limits,
};
use bigfleet_shard::metrics::ReportOutcome;
use bigfleet_wire::v1alpha1::{ReportAck, ShardReport, coordinator_client::CoordinatorClient};
use tokio::time::Instant;
use tonic::{Code, Status};

use crate::memory::Ignored;

/// What the coordinator says to the older of two processes of one shard.
const STALE_EPOCH: &str = "stale shard epoch";

/// A report that no leader took.
#[derive(Debug)]
pub(crate) struct Missed {
    /// For the metric: the worst that was heard.
    pub(crate) outcome: ReportOutcome,
    /// The coordinator knows a newer process of this shard: what it said.
    pub(crate) stale: Option<String>,
}

/// Sends the report to replicas in turn until `judge` takes an answer. All of it ends
/// by the deadline; an answer that comes later is dropped unread.
pub(crate) async fn report<T>(
    replicas: &mut Replicas,
    report: &ShardReport,
    deadline: Instant,
    mut judge: impl FnMut(ReportAck) -> Result<T, Ignored>,
) -> Result<T, Missed> {
    let (mut heard, mut stale) = (ReportOutcome::Unavailable, None);
    let mut round = replicas.round(deadline).await;
    while let Some(attempt) = round.next_attempt() {
        let mut rpc = message_limits!(CoordinatorClient::new(attempt.channel.clone()));
        let request = attempt.request(report.clone());
        let turn = match attempt.in_time(rpc.report_shard(request)).await {
            Ok(ack) => match judge(ack) {
                Ok(taken) => {
                    round.found(attempt);
                    return Ok(taken);
                }
                Err(why) => {
                    let coordinator = attempt.addr();
                    tracing::error!(coordinator, %why, "coordinator's answer ignored");
                    heard = ReportOutcome::Error;
                    Turn::Next
                }
            },
            Err(status) => refused(&attempt.addr(), &status, &mut heard, &mut stale),
        };
        round.missed(attempt, turn);
    }
    Err(Missed { outcome: heard, stale })
}

/// Learns from a refusal.
fn refused(
    coordinator: &str,
    status: &Status,
    heard: &mut ReportOutcome,
    stale: &mut Option<String>,
) -> Turn {
    let message = status.message();
    match status.code() {
        Code::FailedPrecondition => {
            tracing::debug!(coordinator, message, "not the leader");
            if *heard != ReportOutcome::Error {
                *heard = ReportOutcome::NotLeader;
            }
            Turn::after(status)
        }
        // A lost connection, or none: the outcome is unknown.
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => {
            tracing::debug!(coordinator, message, "coordinator not reached");
            Turn::Next
        }
        code => {
            let code = grpc::code_name(code);
            tracing::error!(coordinator, code, message, "coordinator refuses the report");
            *heard = ReportOutcome::Error;
            // Every leader would say so: the epoch is replicated.
            if status.code() == Code::Aborted && message.starts_with(STALE_EPOCH) {
                *stale = Some(message.to_owned());
                return Turn::Stop;
            }
            Turn::Next
        }
    }
}
