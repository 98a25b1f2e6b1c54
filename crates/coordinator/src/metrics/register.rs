//! Names and help texts.

use bigfleet_net::metrics::Names;
use prometheus_client::registry::Registry;

use super::Metrics;

/// What all names begin with.
const PREFIX: &str = "bigfleet_coordinator";

impl Metrics {
    /// Into a registry that has no prefix of its own.
    pub fn register(&self, registry: &mut Registry) {
        let names = &mut Names::new(registry, PREFIX);
        self.register_replica(names);
        self.register_fleet(names);
        self.register_reports(names);
        self.register_rebalancing(names);
    }

    fn register_replica(&self, names: &mut Names<'_>) {
        names.plain(
            "raft_term",
            "Coordinator term: generation and consensus term",
            &self.raft_term,
        );
        names.plain("is_leader", "Whether this replica leads", &self.is_leader);
        let help = "Leaderships that this replica has seen begin";
        names.plain("leader_changes", help, &self.leader_changes);
        names.plain("commit_index", "Last entry known to be committed", &self.commit_index);
        names.plain("applied_index", "Last entry applied", &self.applied_index);
        names.seconds("apply_duration", "Time from proposal to commit", &self.apply_duration);
        names.seconds("fsync_duration", "Time of one synced batch", &self.fsync_duration);
        names.bytes("snapshot", "Size of the newest snapshot", &self.snapshot_bytes);
        names.plain("apply", "Commands proposed, by what came of them", &self.applies);
        names.plain("recovering", "Whether shards are asked what they hold", &self.recovering);
        let help = "Whether a newer generation of this fleet has been seen";
        names.plain("superseded", help, &self.superseded);
        let help = "When the backups were last current, in unix time; of the leader";
        names.seconds("last_export_timestamp", help, &self.last_export);
        names.plain("export_failures", "Backups not written", &self.export_failures);
        let help = "Callers turned away for their identity";
        names.plain("identity_rejected", help, &self.identity_rejected);
    }

    fn register_fleet(&self, names: &mut Names<'_>) {
        names.plain("shards", "Registered shards by how lately they were heard", &self.shards);
        names.plain("domains", "Domains with an owner", &self.domains);
        names.plain("clusters", "Clusters with an owner", &self.clusters);
        names.plain("transfer_machines", "Machines in transfers", &self.transfer_machines);
        names.plain("transfers", "Transfers by phase", &self.transfers);
        let help = "Clusters and domains that a shard has not let go of";
        names.plain("rows_releasing", help, &self.rows_releasing);
        let help = "Longest time that a cluster or domain waits for a shard to let go of it";
        names.seconds("oldest_releasing_age", help, &self.oldest_releasing_age);
        let help = "Longest time that a transfer is past its normal time";
        names.seconds("oldest_transfer_age", help, &self.oldest_transfer_age);
        let help = "Holdings that another shard was found to have";
        names.plain("adoption_conflicts", help, &self.adoption_conflicts);
        let help = "Clusters claimed by a second shard";
        names.plain("cluster_binding_conflicts", help, &self.binding_conflicts);
    }

    fn register_reports(&self, names: &mut Names<'_>) {
        names.plain("reports", "Reports by the code of their answer", &self.reports);
        names.seconds("report_duration", "Time of a report", &self.report_duration);
        names.plain("pending_instructions", "Instructions not yet answered", &self.pending);
        let help = "Age of the oldest instruction that is not answered";
        names.seconds("oldest_instruction_age", help, &self.oldest_instruction_age);
        let help = "Instructions that failed too often";
        names.plain("instructions_given_up", help, &self.instructions_given_up);
        let help = "Reports of a process that another one has succeeded";
        names.plain("stale_epoch", help, &self.stale_epoch);
        let help = "Reports of other fleets, newer generations or a history that was lost";
        names.plain("foreign_fleet", help, &self.foreign_fleet);
        let help = "Shortfalls with a bad quantity or bucket";
        names.plain("shortfalls_dropped", help, &self.shortfalls_dropped);
        let help = "Shortfalls older than five cycles";
        names.plain("shortfalls_escalated", help, &self.shortfalls_escalated);
    }

    fn register_rebalancing(&self, names: &mut Names<'_>) {
        let help = "Time of a pass over all shortfalls and pools";
        names.seconds("rebalance_duration", help, &self.rebalance_duration);
        let help = "Transfers by tier and by what became of them";
        names.plain("rebalance_moves", help, &self.rebalance_moves);
        let help = "Shortfalls that a pass left open, and passes not made, by reason";
        names.plain("rebalance_skipped", help, &self.rebalance_skipped);
    }
}
