//! Terms and generations of a fleet.

use bigfleet_model::FleetId;

/// How many consensus terms a generation is worth: no election rate closes a
/// gap of this many a second.
const GENERATION: u64 = 1 << 20;

/// Whether `newer` is a later history of the same fleet.
pub(super) fn supersedes(newer: &FleetId, older: &FleetId) -> bool {
    newer.uuid() == older.uuid() && newer.generation() > older.generation()
}

/// `generation × 2^20 + consensus_term`: rises with every election, and no
/// older history ever catches up with a newer one.
#[must_use]
pub fn coordinator_term(fleet: &FleetId, consensus_term: u64) -> i64 {
    let term = u64::from(fleet.generation()) * GENERATION + consensus_term;
    i64::try_from(term).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_history_of_the_same_fleet_has_greater_terms() {
        let (old, new) = (FleetId::new("u-1", 0), FleetId::new("u-1", 0x6553_f100));
        assert!(supersedes(&new, &old) && !supersedes(&old, &new) && !supersedes(&new, &new));
        assert!(!supersedes(&FleetId::new("u-2", u32::MAX), &old));
        assert_eq!(coordinator_term(&old, 7), 7);
        assert!(coordinator_term(&new, 0) > coordinator_term(&old, 1 << 40));
        assert!(coordinator_term(&FleetId::new("u", u32::MAX), 1 << 20) < 1 << 53);
    }
}
