//! Random worlds: the invariants of one cycle, and the same output whatever the
//! order of the input.

use bigfleet_oracle::{
    decide, invariants,
    worlds::{SplitMix64, world},
};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn invariants_of_one_cycle(seed: u64) {
        let input = world(seed);
        let violations = invariants::check(&input, &decide(&input));
        prop_assert!(violations.is_empty(), "seed {seed}: {violations:#?}");
    }

    #[test]
    fn inv_47_shuffled_input_gives_the_same_output(seed: u64) {
        let input = world(seed);
        let mut shuffled = input.clone();
        let mut random = SplitMix64::new(!seed);
        random.shuffle(&mut shuffled.snapshot);
        random.shuffle(&mut shuffled.demand);
        random.shuffle(&mut shuffled.pending);
        prop_assert_eq!(decide(&input), decide(&shuffled), "seed {}", seed);
    }
}
