//! Resource vectors form the algebra of engine chapter §1.1.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use bigfleet_model::{Dimension, Resources, Totals, resources::Amount};
use proptest::{collection::vec, prelude::*};

fn dimension(at: usize) -> Dimension {
    let names = ["cpu", "memory", "example.com/a", "example.com/b", "example.com/c", "pods"];
    Dimension::intern(names[at]).unwrap()
}

fn resources() -> impl Strategy<Value = Resources> {
    let amount = prop_oneof![Just(0), 1..5i64, Just(i64::MAX), 0..i64::MAX];
    vec((0..6usize, amount), 0..8)
        .prop_map(|pairs| pairs.into_iter().map(|(at, n)| (dimension(at), n)).collect())
}

fn totals() -> impl Strategy<Value = Totals> {
    let amount = prop_oneof![Just(0), 1..5i128, 0..i128::MAX / 4];
    vec((0..6usize, amount), 0..8)
        .prop_map(|pairs| pairs.into_iter().map(|(at, n)| (dimension(at), n)).collect())
}

/// Every amount, zeros included.
fn dense<A: Amount>(vector: &bigfleet_model::resources::Vector<A>) -> [i128; 6] {
    std::array::from_fn(|at| vector.get(dimension(at)).into())
}

proptest! {
    #[test]
    fn add_is_per_dimension_commutative_and_associative(a in totals(), b in totals(), c in resources()) {
        let (x, y) = (dense(&a), dense(&b));
        prop_assert_eq!(dense(&a.add(&b)), std::array::from_fn(|at| x[at] + y[at]));
        prop_assert_eq!(a.add(&b), b.add(&a));
        prop_assert_eq!(a.add(&b).add(&c), a.add(&b.add(&c)));
        prop_assert_eq!(a.add(&Resources::zero()), a);
    }

    #[test]
    fn max_is_per_dimension_idempotent_and_an_upper_bound(a in resources(), b in resources()) {
        let (x, y) = (dense(&a), dense(&b));
        let max = a.max(&b);
        prop_assert_eq!(dense(&max), std::array::from_fn(|at| x[at].max(y[at])));
        prop_assert_eq!(&b.max(&a), &max);
        prop_assert_eq!(&a.max(&a), &a);
        prop_assert!(max.covers(&a) && max.covers(&b));
    }

    #[test]
    fn sub_sat_never_goes_below_zero(a in totals(), b in resources()) {
        let (x, y) = (dense(&a), dense(&b));
        let rest = a.sub_sat(&b);
        prop_assert_eq!(dense(&rest), std::array::from_fn(|at| (x[at] - y[at]).max(0)));
        prop_assert_eq!(rest.is_zero(), b.covers(&a));
        prop_assert_eq!(&a.add(&b).sub_sat(&b), &a);
        prop_assert!(rest.add(&b).covers(&a));
    }

    #[test]
    fn covers_is_a_partial_order(a in resources(), b in resources(), c in resources()) {
        let (x, y) = (dense(&a), dense(&b));
        prop_assert_eq!(a.covers(&b), (0..6).all(|at| x[at] >= y[at]));
        prop_assert!(a.covers(&a));
        prop_assert!(a.covers(&Totals::zero()));
        prop_assert!(!(a.covers(&b) && b.covers(&a)) || a == b);
        prop_assert!(!(a.covers(&b) && b.covers(&c)) || a.covers(&c));
    }

    #[test]
    fn zero_is_the_vector_without_positive_dimensions(a in resources()) {
        prop_assert_eq!(a.is_zero(), dense(&a) == [0; 6]);
        prop_assert_eq!(a.is_zero(), a == Resources::zero());
    }

    #[test]
    fn scale_is_repeated_addition(a in resources(), n in 0..20u64) {
        let mut sum = Totals::zero();
        (0..n).for_each(|_| sum.add_assign(&a));
        prop_assert_eq!(a.scale(n), sum);
    }

    #[test]
    fn order_by_name_is_total_and_by_value(a in totals(), b in totals(), c in totals()) {
        use std::cmp::Ordering::{Equal, Greater};
        prop_assert_eq!(a.cmp_by_name(&b) == Equal, a == b);
        prop_assert_eq!(a.cmp_by_name(&b), b.cmp_by_name(&a).reverse());
        if a.cmp_by_name(&b) != Greater && b.cmp_by_name(&c) != Greater {
            prop_assert_ne!(a.cmp_by_name(&c), Greater);
        }
        if a.covers(&b) && a != b {
            prop_assert_eq!(a.cmp_by_name(&b), Greater);
        }
    }
}

#[test]
fn the_last_amount_of_a_dimension_stands() {
    let (cpu, memory) = (Dimension::CPU, Dimension::MEMORY);
    let vector: Resources = [(memory, 1), (cpu, 2), (memory, 3), (cpu, 0)].into_iter().collect();
    assert_eq!(vector.by_name().as_slice(), [("memory", 3)]);
}

#[test]
fn sums_past_64_bits_are_exact() {
    let one: Resources = [(Dimension::MEMORY, i64::MAX)].into_iter().collect();
    let many = one.scale(100_000_000);
    assert_eq!(many.get(Dimension::MEMORY), i128::from(i64::MAX) * 100_000_000);
}
