//! Why a need fared as it did.

use bigfleet_engine::{Ahead, DomainCoverage, Explanation, Funnel, NeedKey};
use bigfleet_wire::v1alpha1 as wire;
use tokio::time::Instant;

use crate::{
    shard::Shard,
    views::{
        Extras, NeedRow,
        wire::{count, coverage, cycle_number, need_view},
    },
};

/// Most needs ahead that are told.
const AHEAD: usize = 200;
/// Most domains that are told.
const DOMAINS: usize = 1_000;
/// Most decisions that are told.
const DECISIONS: usize = 100;

impl Shard {
    /// All there is to say about a need, if there is one. It looks at all machines in
    /// one hold of the engine: call it off the runtime, and one at a time.
    pub(super) fn explain_need(
        &self,
        request: &wire::ExplainNeedRequest,
    ) -> Option<wire::ExplainNeedResponse> {
        let key = NeedKey {
            cluster: request.cluster_id.as_str().into(),
            fingerprint: request.profile_fingerprint.as_str().into(),
            group: request.group.as_str().into(),
        };
        let explanation = {
            let decider = self.decider.blocking_read();
            decider.engine.explain(&key)?
        };
        let Explanation { row, rank, of, funnel, supply, ahead, domains } = explanation;
        let snapshot = self.needs_read.load();
        let mut row = NeedRow::of(row, snapshot.cycle, Instant::now());
        if let Some(known) = snapshot.get(&key) {
            row.inherit(known);
        }
        let best = domains.iter().take(DomainCoverage::IN_A_ROW).cloned().collect();
        let text = {
            let decider = self.decider.blocking_read();
            self.detail_text(&decider.engine, &row)
        };
        let extras = Extras::of(supply, best, text);
        let decisions = self.audit.last_of_need(&key, DECISIONS);
        Some(wire::ExplainNeedResponse {
            cycle: cycle_number(snapshot.cycle),
            need: Some(need_view(&row, snapshot.cycle, &extras)),
            rank: count(rank),
            rank_of: count(of),
            funnel: Some(supply_funnel(&funnel)),
            ahead: ahead.iter().take(AHEAD).map(ahead_need).collect(),
            domains: domains.iter().take(DOMAINS).map(coverage).collect(),
            decisions: decisions.iter().map(|record| record.to_wire(false)).collect(),
            computed_at_unix_nanos: snapshot.computed_at,
        })
    }
}

fn supply_funnel(funnel: &Funnel) -> wire::SupplyFunnel {
    wire::SupplyFunnel {
        matching: count(funnel.matching),
        usable: count(funnel.usable),
        bound_here: count(funnel.bound_here),
        bound_elsewhere: count(funnel.bound_elsewhere),
        idle_free: count(funnel.idle_free),
        speculative_free: count(funnel.speculative_free),
        in_transition: count(funnel.in_transition),
        failed: count(funnel.failed),
        held_back: count(funnel.held_back),
        taken_this_cycle: count(funnel.taken),
        claimed: count(funnel.claimed),
    }
}

fn ahead_need(ahead: &Ahead) -> wire::AheadNeed {
    wire::AheadNeed {
        cluster_id: ahead.need.cluster.to_string(),
        profile_fingerprint: ahead.need.fingerprint.to_string(),
        group: ahead.need.group.to_string(),
        priority: ahead.priority,
        machines_taken: count(ahead.machines),
        arrival_unix_nanos: ahead.arrival,
    }
}
