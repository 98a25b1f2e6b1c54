//! Profiles, fingerprints and buckets as properties (wire chapter §9, §10;
//! engine invariants 49 and 50; wire invariant 12).

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use bigfleet_model::{
    ClusterId, Operator, PenaltyBucket, Profile, Quantity, Requirement, TopologySpread,
    WhenUnsatisfiable, gate::demand,
};
use bigfleet_wire::v1alpha1 as wire;
use proptest::{collection::vec, prelude::*, sample::select};

/// Few and nasty, so that near-equal profiles are common.
fn text() -> impl Strategy<Value = String> {
    const TEXTS: [&str; 12] =
        ["", "a", "b", "a,b", "a;", "a:1", "|", "%", "%2C", "\u{0}", "\u{85}", "zürich"];
    select(&TEXTS[..]).prop_map(str::to_owned)
}

fn requirement() -> impl Strategy<Value = Requirement> {
    (text(), select(Operator::ALL), vec(text(), 0..4))
        .prop_map(|(key, operator, values)| Requirement { key, operator, values })
}

fn spread() -> impl Strategy<Value = TopologySpread> {
    (text(), -1..3i32, select(WhenUnsatisfiable::ALL)).prop_map(
        |(topology_key, max_skew, when_unsatisfiable)| TopologySpread {
            topology_key,
            max_skew,
            when_unsatisfiable,
        },
    )
}

fn bucket() -> impl Strategy<Value = PenaltyBucket> {
    (0..=27).prop_map(|number| PenaltyBucket::from_wire(number).unwrap())
}

#[derive(Clone, Debug)]
struct Parts {
    requirements: Vec<Requirement>,
    spread: Vec<TopologySpread>,
    priority: i32,
    interruption: PenaltyBucket,
    reclamation: PenaltyBucket,
}

impl Parts {
    fn profile(self) -> Profile {
        let Self { requirements, spread, priority, interruption, reclamation } = self;
        Profile::new(requirements, spread, priority, interruption, reclamation)
    }

    /// What the parts mean, told without the code under test: sets of
    /// requirements over sets of values, and a bag of spread entries.
    fn meaning(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        use std::collections::BTreeSet;
        let requirements: BTreeSet<_> = self
            .requirements
            .iter()
            .map(|r| (r.key.clone(), r.operator, r.values.iter().cloned().collect::<BTreeSet<_>>()))
            .collect();
        let mut spread = self.spread.clone();
        spread.sort();
        (requirements, spread, self.priority, self.interruption, self.reclamation)
    }
}

prop_compose! {
    fn parts()(
        requirements in vec(requirement(), 0..4),
        spread in vec(spread(), 0..3),
        priority in prop_oneof![0..2i32, any::<i32>()],
        interruption in bucket(),
        reclamation in bucket(),
    ) -> Parts {
        Parts { requirements, spread, priority, interruption, reclamation }
    }
}

/// The same parts in another order, with some said twice.
fn permuted(parts: &Parts) -> impl Strategy<Value = Parts> + use<> {
    let parts = parts.clone();
    let twice: Vec<Requirement> =
        parts.requirements.iter().cloned().chain(parts.requirements.first().cloned()).collect();
    (Just(twice).prop_shuffle(), Just(parts.spread.clone()).prop_shuffle(), any::<bool>()).prop_map(
        move |(mut requirements, spread, repeat)| {
            for requirement in &mut requirements {
                requirement.values.reverse();
                if repeat {
                    requirement.values.extend(requirement.values.first().cloned());
                }
            }
            Parts { requirements, spread, ..parts.clone() }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn inv_49_equal_meaning_equal_fingerprint((a, b) in parts().prop_flat_map(|p| (Just(p.clone()), permuted(&p)))) {
        let (a, b) = (a.profile(), b.profile());
        prop_assert_eq!(a.fingerprint(), b.fingerprint());
        prop_assert_eq!(a.requirements(), b.requirements());
        prop_assert_eq!(a, b);
    }

    #[test]
    fn inv_49_different_meaning_different_fingerprint(a in parts(), b in parts(), reuse in 0..6) {
        // Unrelated profiles differ everywhere; make them differ in one part only.
        let mut b = b;
        if reuse != 0 { b.requirements = a.requirements.clone(); }
        if reuse != 1 { b.spread = a.spread.clone(); }
        if reuse != 2 { b.priority = a.priority; }
        if reuse != 3 { b.interruption = a.interruption; }
        if reuse != 4 { b.reclamation = a.reclamation; }
        let same_meaning = a.meaning() == b.meaning();
        let same_text = a.profile().fingerprint() == b.profile().fingerprint();
        prop_assert_eq!(same_meaning, same_text);
    }

    #[test]
    fn inv_49_requirements_never_run_into_each_other(a in vec(requirement(), 0..3), b in vec(requirement(), 0..3)) {
        let parts = |requirements| Parts {
            requirements,
            spread: vec![],
            priority: 0,
            interruption: PenaltyBucket::ZERO,
            reclamation: PenaltyBucket::ZERO,
        };
        let (a, b) = (parts(a), parts(b));
        let same_meaning = a.meaning() == b.meaning();
        prop_assert_eq!(same_meaning, a.profile().fingerprint() == b.profile().fingerprint());
    }

    #[test]
    fn inv_50_bucket_is_monotone(a in any::<f64>(), b in any::<f64>()) {
        if a <= b {
            prop_assert!(PenaltyBucket::from_dollars(a) <= PenaltyBucket::from_dollars(b));
        }
    }

    #[test]
    fn a_bucket_holds_its_dollars(dollars in 0.0..9e6f64) {
        let bucket = PenaltyBucket::from_dollars(dollars);
        prop_assert!(bucket.dollars() >= dollars);
        let below = PenaltyBucket::from_wire(bucket.to_wire() - 1).unwrap();
        prop_assert!(below.dollars() < dollars || bucket == PenaltyBucket::ZERO);
    }

    #[test]
    fn printed_quantities_read_back(nanos in -i128::MAX..=i128::MAX, binary in any::<bool>()) {
        use bigfleet_model::quantity::Family;
        let family = if binary { Family::Binary } else { Family::Decimal };
        let text = Quantity::from_nanos(nanos, family).to_string();
        prop_assert_eq!(text.parse::<Quantity>().map(Quantity::nanos), Ok(nanos), "{}", text);
        let again = text.parse::<Quantity>().unwrap().to_string();
        prop_assert_eq!(again, text);
    }

    #[test]
    fn wire_12_order_of_arrival_changes_no_demand(
        all in vec((parts(), 0..9u32, text()), 0..6).prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle()))
    ) {
        let cluster = ClusterId::from("c");
        let send = |all: Vec<(Parts, u32, String)>| {
            let needs = all.into_iter().map(|(parts, cpu, group)| message(&parts, cpu, group)).collect();
            let message = wire::ClusterCapacityNeeds { cluster_id: String::new(), timestamp_unix_nanos: 5, needs };
            demand::roll_up(&cluster, message).map_err(|refusal| refusal.to_string())
        };
        let (sent, shuffled) = (send(all.0), send(all.1));
        prop_assert_eq!(sent.is_ok(), shuffled.is_ok());
        if let (Ok(sent), Ok(shuffled)) = (sent, shuffled) {
            prop_assert_eq!(sent, shuffled);
        }
    }
}

fn message(parts: &Parts, cpu: u32, group: String) -> wire::CapacityNeed {
    wire::CapacityNeed {
        requirements: parts.requirements.iter().map(Into::into).collect(),
        aggregate_resources: [("cpu".to_owned(), cpu.to_string())].into(),
        priority: parts.priority,
        spread: parts.spread.iter().map(Into::into).collect(),
        interruption_penalty_bucket: parts.interruption.to_wire(),
        reclamation_penalty_bucket: parts.reclamation.to_wire(),
        min_unit: [("cpu".to_owned(), cpu.to_string())].into(),
        group,
    }
}

#[test]
fn inv_50_bucket_of_bound_is_the_bucket() {
    for number in 1..=27 {
        let bucket = PenaltyBucket::from_wire(number).unwrap();
        assert_eq!(PenaltyBucket::from_dollars(bucket.dollars()), bucket);
    }
}
