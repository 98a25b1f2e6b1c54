//! Every metric that the dashboard asks about.

/// Declares the names, and that they are asked about.
macro_rules! names {
    ($($(#[$meta:meta])* $constant:ident = $name:literal;)+) => {
        $($(#[$meta])* pub(crate) const $constant: &str = $name;)+

        /// All of them.
        pub(crate) const ALL: &[&str] = &[$($constant),+];
    };
}

names! {
    /// Time of a cycle.
    CYCLE = "bigfleet_shard_cycle_duration_seconds";
    /// Cycles so far.
    CYCLES = "bigfleet_shard_cycle_duration_seconds_count";
    /// Time of a cycle's phases.
    CYCLE_PHASE = "bigfleet_shard_cycle_phase_duration_seconds";
    /// Needs that stayed unmet.
    SHORTFALLS = "bigfleet_shard_shortfalls";
    /// Needs unmet by reason.
    NEEDS_UNMET = "bigfleet_shard_needs_unmet";
    /// Machines by state, type and penalty.
    MACHINES = "bigfleet_shard_inventory_machines";
    /// Need rows by penalty.
    DEMAND = "bigfleet_shard_demand_machines";
    /// Declared prices of machines with a host.
    COST = "bigfleet_shard_cost_dollars_per_hour";
    /// Actions emitted.
    ACTIONS = "bigfleet_shard_actions_total";
    /// The kill switch.
    PAUSED = "bigfleet_shard_actuation_paused";
    /// Another process holds a higher epoch.
    FENCED = "bigfleet_shard_fenced";
    /// Clusters connected.
    SESSIONS = "bigfleet_shard_active_sessions";
    /// Proposals to a commit broker.
    OCC = "bigfleet_shard_phase1_occ_proposals_total";
    /// Generation and consensus term.
    TERM = "bigfleet_coordinator_raft_term";
    /// Commands proposed.
    APPLY = "bigfleet_coordinator_apply_total";
    /// Instructions not yet answered.
    PENDING = "bigfleet_coordinator_pending_instructions";
    /// When the backups were last current.
    EXPORT = "bigfleet_coordinator_last_export_timestamp_seconds";
    /// Transfers by phase.
    TRANSFERS = "bigfleet_coordinator_transfers";
    /// Whether shards are asked what they hold.
    RECOVERING = "bigfleet_coordinator_recovering";
}

/// Whether a series, or the histogram it belongs to, is asked about.
#[must_use]
pub(crate) fn asked_about(series: &str) -> bool {
    let family = series.strip_suffix("_bucket").unwrap_or(series);
    ALL.contains(&family)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that no process exports would be unknown for ever, and look like an empty fleet.
    #[test]
    fn every_name_is_in_the_list_of_metrics() {
        let list = include_str!("../../../../../api/metrics/observability.yaml");
        for name in ALL {
            let family = name.strip_suffix("_count").unwrap_or(name);
            let short = family.strip_prefix("bigfleet_shard_");
            let short = short.or_else(|| family.strip_prefix("bigfleet_coordinator_"));
            let wanted = format!("{{name: {}, ", short.unwrap());
            assert!(list.contains(&wanted), "{name}");
        }
    }
}
