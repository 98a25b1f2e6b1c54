//! The part of reports and answers that is for shards which share a provider.

use std::time::Duration;

use bigfleet_shard::{
    Answered, SharedSide,
    holdings::{Attempt, Holdings},
};
use bigfleet_wire::v1alpha1::{InstructAck, ShardReport, ShardSummary, instruct_ack::Outcome};

use crate::{
    instruction,
    memory::{Carried, Obeyed},
};

/// Between reports that came to nothing, while the shard does nothing: three of them
/// take half a minute at most.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);
/// Of a transfer that no machine matches.
const NOTHING: &str = "no quiet machine of one held domain matches";
/// Of one whose machines did not become Idle.
const UNDRAINED: &str = "none of the machines chosen was drained in time";

/// Adds what is on disk, and what could be lent.
pub(crate) async fn complete(
    shared: &SharedSide,
    carried: &Carried,
    report: ShardReport,
) -> ShardReport {
    let pools = shared.pools().await;
    // Before what is on disk: what is said of it later is not said of an earlier process.
    let announced = shared.announced();
    let summary = report.summary.map(|summary| ShardSummary { pools, ..summary });
    with_holdings(ShardReport { summary, ..report }, &shared.holdings(), carried, announced)
}

/// Adds what is on disk. Before the provider has answered this process's epoch
/// (`announced`) a report is no evidence of anything let go of, for a call of an earlier
/// process may still arrive, and a lost disk remembers no key that it was sent for.
#[must_use]
pub fn with_holdings(
    report: ShardReport,
    holdings: &Holdings,
    carried: &Carried,
    announced: bool,
) -> ShardReport {
    let shard = report.shard_id.clone();
    let asked = carried.holdings && announced;
    ShardReport {
        assignment_version: if announced { holdings.version() } else { 0 },
        assignment_digest: holdings.digest(),
        releasing: holdings.releasing_message(&shard),
        settled: holdings.settled_message(),
        holdings: asked.then(|| holdings.holdings_message(&shard)),
        ..report
    }
}

/// Takes in an answer: fleet and term, then the Assignment, then what is to be
/// released. The acks of the last.
pub(crate) async fn carry_out(shared: &SharedSide, obeyed: Obeyed) -> Vec<InstructAck> {
    if let Err(refused) = shared.heard(obeyed.fleet, obeyed.term).await {
        tracing::error!(%refused, "coordinator's answer ignored");
        shared.attempted(Attempt::Missed);
        return Vec::new();
    }
    shared.bound_elsewhere(obeyed.bound_elsewhere);
    if let Some(assignment) = obeyed.assignment
        && !shared.assign(assignment).await
    {
        // What it gives and what it takes is not known: nothing is answered by the one
        // before.
        shared.attempted(Attempt::Missed);
        return Vec::new();
    }
    let mut acks = Vec::new();
    for (id, payload) in obeyed.releases {
        acks.extend(ack(id, shared.release(payload).await));
    }
    shared.attempted(obeyed.attempt);
    acks
}

/// How a release instruction is acked; not at all as long as there is no answer.
#[must_use]
pub fn ack(id: String, answered: Answered) -> Option<InstructAck> {
    match answered {
        Answered::Released { machines, home } => Some(InstructAck {
            machine_ids: machines,
            home_domain: Some(home),
            ..instruction::ack(id, Outcome::Accepted, "")
        }),
        Answered::Nothing => Some(instruction::ack(id, Outcome::RejectedInvalid, NOTHING)),
        Answered::Undrained => Some(instruction::ack(id, Outcome::RejectedInvalid, UNDRAINED)),
        Answered::Invalid(why) => {
            Some(instruction::ack(id, Outcome::RejectedInvalid, why.to_string()))
        }
        Answered::Later => None,
    }
}

/// A report came to nothing.
pub(crate) async fn missed(shared: &SharedSide, stale: Option<&str>) {
    if let Some(text) = stale {
        shared.stale_epoch(text).await;
    }
    shared.attempted(Attempt::Missed);
}
