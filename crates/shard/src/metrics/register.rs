//! Names and help texts.

use bigfleet_net::metrics::Names;
use prometheus_client::registry::Registry;

use super::Metrics;

/// What all names begin with.
const PREFIX: &str = "bigfleet_shard";

impl Metrics {
    /// Into a registry that has no prefix of its own.
    pub fn register(&self, registry: &mut Registry) {
        let mut names = Names::new(registry, PREFIX);
        self.register_cycle(&mut names);
        self.register_fleet(&mut names);
        self.register_actions(&mut names);
        self.register_edges(&mut names);
    }

    fn register_cycle(&self, names: &mut Names<'_>) {
        names.seconds("cycle_duration", "Time of a cycle", &self.cycle_duration);
        names.seconds("cycle_phase_duration", "Time of a cycle's phases", &self.phase_duration);
        names.plain("shortfalls", "Needs that stayed unmet", &self.shortfalls);
        let help = "Shortfalls by age in cycles";
        names.plain("shortfalls_aged", help, &self.shortfalls_aged.family);
        let help = "Shortfalls by class of priority";
        names.plain("shortfalls_by_priority", help, &self.shortfalls_by_priority.family);
        names.plain("needs_unmet", "Needs unmet by reason", &self.needs_unmet.family);
        let help = "Time from first seen unmet to satisfied";
        names.seconds("need_wait", help, &self.need_wait);
        let help = "Time from the first roll-up of a need to its first machine Configured";
        names.seconds("provisioning_latency", help, &self.provisioning_latency);
        let help = "Proposals to a commit broker; this engine has none";
        names.plain("phase1_occ_proposals", help, &self.proposals);
        let help = "Displacements by a commit broker; this engine has none";
        names.plain("phase1_occ_displacements", help, &self.phase1_occ_displacements);
        let help = "Retries given up at a commit broker; this engine has none";
        names.plain("phase1_occ_retries_exhausted", help, &self.phase1_occ_retries_exhausted);
    }

    fn register_fleet(&self, names: &mut Names<'_>) {
        let help = "Machines by state, capacity type and penalty of what they serve";
        names.plain("inventory_machines", help, &self.inventory.family);
        names.plain("demand_machines", "Need rows by penalty", &self.demand.family);
        let help = "Declared prices of machines with a host";
        names.plain("cost_dollars_per_hour", help, &self.cost.family);
        let help = "Machines unchanged in a transitional state for 30 minutes";
        names.plain("machines_stuck", help, &self.machines_stuck.family);
        let help = "Of a shared provider: keys and machines between two owners";
        names.plain("holdings", help, &self.holdings);
        let help = "Age of the oldest of them, as this process has seen it";
        names.seconds("holdings_age", help, &self.holdings_age);
        let help = "Machines of a shared provider without the label that says whose they are";
        names.plain("machines_without_owner", help, &self.machines_without_owner);
        let help = "Records of the provider that were rejected";
        names.plain("machines_rejected", help, &self.machines_rejected);
        let help = "Changes of the provider's that were adopted although not ours to make";
        names.plain("reconcile_forced", help, &self.reconcile_forced);
        let help = "Age of the last good reconcile";
        names.seconds("last_reconcile_age", help, &self.last_reconcile_age);
        let help = "Removals held because too many machines disappeared at once";
        names.plain("removals_held", help, &self.removals_held);
        names.plain("idle_releases", "Machines given back", &self.idle_releases);
    }

    fn register_actions(&self, names: &mut Names<'_>) {
        names.plain("actions", "Actions emitted for execution", &self.actions);
        let help = "How executions ended";
        names.plain("action_execute_outcomes", help, &self.outcomes);
        let help = "Actions left for the next cycle by the limit";
        names.plain("actions_deferred", help, &self.actions_deferred);
        let help = "Actions that found the queue full";
        names.plain("actions_dropped", help, &self.actions_dropped);
        let help = "Actions whose machine had one already or had moved on";
        names.plain("actions_deduped", help, &self.actions_deduped);
        names.plain("action_queue_depth", "Actions that wait", &self.action_queue_depth);
        names.plain("action_queue_capacity", "Actions that may wait", &self.action_queue_capacity);
        names.plain("execute_inflight", "Actions under way", &self.execute_inflight);
        let help = "Reclaims left for a later cycle by the cap";
        names.plain("reclaims_capped", help, &self.reclaims_capped);
        let help = "Actions withheld by the kill switch";
        names.plain("actions_suppressed", help, &self.suppressed);
        names.plain("actions_dryrun", "Actions withheld by shadow mode", &self.dryrun);
        let help = "Whether the kill switch is on";
        names.plain("actuation_paused", help, &self.actuation_paused);
        let help = "Time from Configure to Configured";
        names.seconds("configure_phase", help, &self.configure_phase);
        let help = "Time to get a bootstrap blob";
        names.seconds("request_bootstrap", help, &self.request_bootstrap);
        names.seconds("drain_phase", "Time from Drain to Idle", &self.drain_phase);
        let help = "First reclaim acks that did not come in time";
        names.plain("reclaim_ack_timeouts", help, &self.reclaim_ack_timeouts);
        let help = "Whether another process holds a higher epoch";
        names.plain("fenced", help, &self.fenced);
        let help = "Fenced calls that a fresh sequence number cleared";
        names.plain("fence_false_alarms", help, &self.fence_false_alarms);
    }

    fn register_edges(&self, names: &mut Names<'_>) {
        names.plain("active_sessions", "Clusters connected", &self.active_sessions);
        names.plain("session_lifecycle", "Events of sessions", &self.session_lifecycle);
        let help = "Callers with a wrong identity; any is a security event";
        names.plain("session_identity_rejected", help, &self.session_identity_rejected);
        names.plain("outbox_depth", "Frames that wait for operators", &self.outbox_depth);
        let help = "Roll-ups held in a row";
        names.plain("rollup_quarantined", help, &self.clusters.quarantined);
        names.plain("rollups_rejected", "Roll-ups rejected", &self.clusters.rejected);
        names.seconds("rollup_age", "Age of a cluster's demand", &self.clusters.age);
        let help = "Reports to the coordinator";
        names.plain("coordinator_reports", help, &self.coordinator_reports);
        let help = "Audit lines that found the buffer full";
        names.plain("audit_dropped", help, &self.audit_dropped);
        names.plain("audit_errors", "Failed writes of the audit log", &self.audit_errors);
        names.plain("observe_watchers", "Readers of live streams", &self.watchers);
        let help = "Readers whose stream ended because they were slow";
        names.plain("observe_dropped", help, &self.watchers_ended);
    }
}
