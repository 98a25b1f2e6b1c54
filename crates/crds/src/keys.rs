//! Annotation and label keys under `bigfleet.lucy.sh/`.
//!
//! The keys of `shard_metadata` share the prefix but never reach Kubernetes;
//! they live with the shard's types.

/// Pod annotation: dollars per interruption, as a quantity. Written by users.
pub const INTERRUPTION_PENALTY: &str = "bigfleet.lucy.sh/interruption-penalty";

/// Pod annotation: dollars per loss of the machine, as a quantity. Written by users.
pub const RECLAMATION_PENALTY: &str = "bigfleet.lucy.sh/reclamation-penalty";

/// Pod annotation: `"true"` means that no CapacityRequest is made. Written by users.
pub const IGNORE: &str = "bigfleet.lucy.sh/ignore";

/// CapacityRequest label: UID of the pod that it stands for.
pub const OWNED_BY_POD: &str = "bigfleet.lucy.sh/owned-by-pod";

/// CapacityRequest label: `"true"` when the pod belongs to a DaemonSet.
pub const DAEMONSET: &str = "bigfleet.lucy.sh/daemonset";

/// CapacityRequest annotation: comma list of requirement keys widened to Exists.
pub const APPROXIMATED: &str = "bigfleet.lucy.sh/approximated";

/// UpcomingNode annotation and Node label: the machine's id, verbatim.
pub const MACHINE_ID: &str = "bigfleet.lucy.sh/machine-id";

/// Node annotation: id of the reclaim instruction; it marks a cordon as ours.
pub const RECLAIM_INSTRUCTION: &str = "bigfleet.lucy.sh/reclaim-instruction";

/// Node annotation: when the drain ends, RFC 3339 UTC. Removed at the end of the drain.
pub const RECLAIM_DEADLINE: &str = "bigfleet.lucy.sh/reclaim-deadline";

/// Node annotation: `"true"` when the node was unschedulable before us.
pub const CORDONED_BY_HUMAN: &str = "bigfleet.lucy.sh/cordoned-by-human";

/// Annotation of the unschedulable-pod controller's Lease: holder identity after its first full
/// pass.
pub const SYNCED: &str = "bigfleet.lucy.sh/synced";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::GROUP;

    #[test]
    fn every_key_is_under_the_group_and_has_a_row_in_the_specification() {
        let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/spec/wire.md");
        let spec = std::fs::read_to_string(spec).unwrap();
        let (_, table) = spec.split_once("### 13.4 ").unwrap();
        let (table, _) = table.split_once("\n## ").unwrap();
        for key in [
            INTERRUPTION_PENALTY,
            RECLAMATION_PENALTY,
            IGNORE,
            OWNED_BY_POD,
            DAEMONSET,
            APPROXIMATED,
            MACHINE_ID,
            RECLAIM_INSTRUCTION,
            RECLAIM_DEADLINE,
            CORDONED_BY_HUMAN,
            SYNCED,
        ] {
            let (group, name) = key.split_once('/').unwrap();
            assert_eq!(group, GROUP);
            let row = format!("`{name}`");
            assert!(table.contains(&row), "{key} has no row in the wire chapter, §13.4");
        }
    }
}
