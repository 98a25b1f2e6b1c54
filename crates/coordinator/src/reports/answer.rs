//! Steps 7 and 8: what a shard is told.

use bigfleet_wire::v1alpha1 as wire;

use super::{Digest, Now, Reports, Soft, Taken, wire::assignment};
use crate::state::{Assignment, ClusterId, Key, ShardId, State, TransferPhase};

/// A shard that is to hear more soon.
const SOON_MS: u32 = 1_000;

impl Reports {
    /// The answer to a report that was taken, from one applied index.
    pub fn answer(&mut self, state: &State, taken: &Taken, now: Now) -> wire::ReportAck {
        let mut ack = wire::ReportAck {
            coordinator_term: self.term,
            // Said again it tells a shard that shares its provider nothing, so that it must
            // not take this for leave to act.
            acknowledged: taken.fresh || taken.assignment_digest == 0,
            fleet_id: state.fleet_id().unwrap_or_default().to_owned(),
            ..wire::ReportAck::default()
        };
        if !taken.fresh {
            return ack;
        }
        let shared = taken.assignment_digest != 0;
        if state.recovering() {
            ack.next_report_after_ms = SOON_MS;
            ack.want_holdings = shared && taken.of_this_fleet && !state.adopted(&taken.shard);
            return ack;
        }
        let term = self.term;
        let mut sequence = self.sequence;
        let soft = self.shards.entry(taken.shard.clone()).or_default();
        if shared && taken.of_this_fleet {
            ack.assignment = soft.due(state, taken);
            soft.ask_for_transfers(state, &taken.shard, &mut sequence, now);
        } else {
            // Of a lost volume, say: it is asked once it knows the fleet, with an Assignment.
            soft.instructions.keep_transfers(|_| false);
        }
        ack.want_cluster_ids = soft.wants_clusters(state, taken);
        ack.bound_elsewhere = soft.bound_elsewhere(state, &taken.shard).collect();
        let transfer = |id: &_| state.transfers().get(id).cloned();
        let (instructions, more) = soft.instructions.deliver(term, transfer);
        ack.instructions = instructions;
        if more {
            ack.next_report_after_ms = SOON_MS;
        }
        self.sequence = sequence;
        ack
    }
}

impl Soft {
    /// Where the shard's provider is, as it said last.
    fn provider_address(&self) -> &str {
        self.kept.as_ref().map_or("", |kept| &kept.provider_address)
    }

    /// The Assignment, if the shard has an older one or another. Due by index: a shard
    /// that never heard of a key could not say that it let go of it.
    fn due(&mut self, state: &State, taken: &Taken) -> Option<wire::Assignment> {
        let changed_at = state.shard(&taken.shard)?.changed_at;
        let same = taken.assignment_version >= changed_at
            && self.digest(state, &taken.shard, changed_at) == taken.assignment_digest;
        if same {
            return None;
        }
        let due = state.assignment_of(&taken.shard, self.provider_address());
        self.remember(changed_at, &due);
        Some(assignment(&taken.shard, &due))
    }

    /// Computed once for each change, not for each report.
    fn digest(&mut self, state: &State, shard: &ShardId, changed_at: u64) -> u64 {
        if let Some(known) = &self.digest
            && known.changed_at == changed_at
            && *known.provider_address == *self.provider_address()
        {
            return known.digest;
        }
        let now = state.assignment_of(shard, self.provider_address());
        self.remember(changed_at, &now);
        now.digest
    }

    fn remember(&mut self, changed_at: u64, assignment: &Assignment) {
        let provider_address = self.provider_address().into();
        self.digest = Some(Digest { changed_at, provider_address, digest: assignment.digest });
    }

    /// Whether the shard's clusters are others than the map's, and naming them may help.
    fn wants_clusters(&mut self, state: &State, taken: &Taken) -> bool {
        let ours = state.cluster_digest_of(&taken.shard);
        let theirs = taken.cluster_digest;
        // 0 is a shard that does not say.
        if theirs == 0 || theirs == ours {
            self.clusters_differ = None;
            self.claimed = Vec::new();
            return false;
        }
        let owner = |cluster: &ClusterId| {
            state.row(&Key::Cluster(cluster.clone())).and_then(|row| row.owner.as_ref())
        };
        if !taken.named_clusters.is_empty() {
            // They were bound as far as they can be; what differs is another's, or gone.
            self.clusters_differ = Some((theirs, ours));
            let foreign = |cluster: &&ClusterId| owner(cluster) != Some(&taken.shard);
            self.claimed = taken.named_clusters.iter().filter(foreign).cloned().collect();
        }
        // Its owner was removed: whoever serves it may have it now.
        let nobodys = self.claimed.iter().any(|cluster| owner(cluster).is_none());
        nobodys || self.clusters_differ != Some((theirs, ours))
    }

    /// Who has the clusters that this shard would serve, too.
    fn bound_elsewhere<'a>(
        &'a self,
        state: &'a State,
        shard: &'a ShardId,
    ) -> impl Iterator<Item = wire::BoundElsewhere> + use<'a> {
        self.claimed.iter().filter_map(move |cluster| {
            let row = state.row(&Key::Cluster(cluster.clone()));
            let owner = row.and_then(|row| row.owner.as_ref()).filter(|owner| *owner != shard)?;
            let (cluster_id, shard_id) = (cluster.to_string(), owner.to_string());
            Some(wire::BoundElsewhere { cluster_id, shard_id })
        })
    }

    /// A Releasing transfer is an instruction to its donor: derived from the record, so
    /// that a new leader goes on without memory.
    fn ask_for_transfers(&mut self, state: &State, shard: &ShardId, sequence: &mut i64, now: Now) {
        let waits = |id: &_| {
            state.transfers().get(id).is_some_and(|transfer| {
                transfer.from == *shard && transfer.phase == TransferPhase::Releasing
            })
        };
        self.instructions.keep_transfers(waits);
        for id in state.transfers().keys().filter(|id| waits(id)) {
            self.instructions.ask(sequence, id, now.monotonic);
        }
    }
}
