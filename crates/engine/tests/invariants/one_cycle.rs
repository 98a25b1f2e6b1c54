//! What input and output of one cycle show. The worlds are decided once for all.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use bigfleet_engine::{CycleOutput, Engine, decide, input::merge};
use bigfleet_oracle::{invariants, worlds};

use crate::support::{key, seeds};

const WORLDS: u64 = 6_000;

/// Violations by number, each with its seed; and how often there was something to
/// violate, by the kind of thing.
static FOUND: LazyLock<BTreeMap<u32, Vec<String>>> = LazyLock::new(|| {
    let mut found: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for seed in seeds(WORLDS) {
        let input = worlds::world(seed);
        for violation in invariants::check(&input, &decide(&input)) {
            let number = violation.split(':').next().and_then(|text| text.parse().ok());
            let number = number.expect("a violation begins with its number");
            found.entry(number).or_default().push(format!("seed {seed}: {violation}"));
        }
    }
    found
});

macro_rules! holds {
    ($($name:ident: $number:literal,)*) => {$(
        #[test]
        fn $name() {
            let found = FOUND.get(&$number).map_or(&[][..], Vec::as_slice);
            assert!(found.is_empty(), "{}", found.join("\n"));
        }
    )*};
}

holds! {
    inv_01_a_machine_is_claimed_by_at_most_one_need: 1,
    inv_02_every_claim_is_usable: 2,
    inv_03_bound_claims_belong_to_the_cluster: 3,
    inv_04_creating_is_claimed_by_its_stamp_or_unstamped: 4,
    inv_05_what_leaves_is_never_claimed: 5,
    inv_06_every_configured_machine_has_one_fate: 6,
    inv_07_covered_and_deficit_make_the_aggregate: 7,
    inv_08_at_most_one_action_per_machine_from_its_state: 8,
    inv_09_no_verdict_without_a_need: 9,
    inv_10_a_need_covered_by_credit_does_nothing: 10,
    inv_11_no_acquired_machine_can_be_dropped: 11,
    inv_13_no_purchase_while_idle_machines_cover: 13,
    inv_14_no_cheaper_twin_is_left: 14,
    inv_16_an_unsatisfied_plain_need_leaves_no_candidate: 16,
    inv_17_no_cost_is_nan: 17,
    inv_21_victims_have_lower_priority: 21,
    inv_22_no_need_evicts_its_own: 22,
    inv_23_gangs_preempt_inside_their_domain: 23,
    inv_24_no_victim_can_be_spared: 24,
    inv_26_claims_of_a_gang_share_a_domain: 26,
    inv_29_acquisition_keeps_the_skew: 29,
    inv_31_a_fold_is_satisfied_iff_every_gang_has_a_place: 31,
    inv_37_what_is_reclaimed_would_help_nobody: 37,
    inv_41_no_reclaim_for_a_silent_cluster: 41,
    inv_43_owned_hardware_is_never_deleted: 43,
    inv_46_quiet_needs_and_held_machines_stay_quiet: 46,
}

#[test]
fn inv_09_every_need_has_exactly_one_verdict() {
    for seed in seeds(WORLDS) {
        let input = worlds::world(seed);
        let output = decide(&input);
        let keys: BTreeSet<_> = output.verdicts.iter().map(key).collect();
        assert_eq!(keys.len(), output.verdicts.len(), "seed {seed}: a verdict twice");
        let spoken_for = |output: &CycleOutput| -> usize {
            output.verdicts.iter().map(|verdict| verdict.folded.max(1) as usize).sum()
        };
        assert_eq!(spoken_for(&output), merge(input.demand).len(), "seed {seed}");
    }
}

#[test]
fn inv_48_watching_changes_nothing() {
    for seed in seeds(WORLDS) {
        let input = worlds::world(seed);
        let mut engine = Engine::load(&input);
        let mut ended = Vec::new();
        engine.cycle_observed(input.now, &mut |phase| ended.push(phase));
        assert_eq!(ended.len(), 4, "seed {seed}");
        assert_eq!(engine.output(), decide(&input), "seed {seed}");
    }
}
