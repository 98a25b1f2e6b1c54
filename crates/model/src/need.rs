//! Demand (engine chapter §1.6).

use std::sync::Arc;

use bigfleet_wire::v1alpha1 as wire;

use crate::{
    id::{ClusterId, Group},
    profile::Profile,
    requirement::Attributes,
    resources::{Resources, Totals},
};

/// One constrained aggregate request of a cluster. There is no count: the
/// number of machines is the engine's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Who asks.
    pub cluster: ClusterId,
    /// What machines must be like.
    pub profile: Arc<Profile>,
    /// The gang, or empty.
    pub group: Group,
    /// Total wanted.
    pub aggregate: Totals,
    /// Largest indivisible unit: every machine counted or acquired must cover it
    /// alone.
    pub min_unit: Resources,
    /// Age clock in unix nanoseconds; 0 is unknown.
    pub arrival: i64,
}

impl Need {
    /// Whether a machine with these attributes and this capacity can serve.
    pub fn usable(&self, attributes: &impl Attributes, capacity: &Resources) -> bool {
        capacity.covers(&self.min_unit) && self.profile.matches(attributes)
    }

    /// Same cluster, profile and group.
    pub fn is_same_need(&self, other: &Self) -> bool {
        self.group == other.group && self.profile == other.profile && self.cluster == other.cluster
    }

    /// Takes in another need of the same identity: resources add up, the unit is
    /// the larger, the arrival the earliest known.
    pub fn absorb(&mut self, other: &Self) {
        self.aggregate.add_assign(&other.aggregate);
        self.min_unit = self.min_unit.max(&other.min_unit);
        self.arrival = match (self.arrival, other.arrival) {
            (0, known) | (known, 0) => known,
            (a, b) => a.min(b),
        };
    }
}

/// The whole demand of one cluster, as its operator sent it: in identity order,
/// each identity once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RollUp {
    /// Whose demand.
    pub cluster: ClusterId,
    /// When it was built, in unix nanoseconds.
    pub timestamp: i64,
    /// Replaces what the cluster wanted before.
    pub needs: Vec<Need>,
}

impl From<&Need> for wire::CapacityNeed {
    fn from(need: &Need) -> Self {
        let profile = &need.profile;
        Self {
            requirements: profile.requirements().iter().map(Into::into).collect(),
            aggregate_resources: need.aggregate.to_wire(),
            priority: profile.priority(),
            spread: profile.spread().iter().map(Into::into).collect(),
            interruption_penalty_bucket: profile.interruption().to_wire(),
            reclamation_penalty_bucket: profile.reclamation().to_wire(),
            min_unit: need.min_unit.to_wire(),
            group: need.group.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{Dimension, Operator, PenaltyBucket, Requirement};

    fn need(arrival: i64) -> Need {
        let ssd = Requirement { key: "ssd".to_owned(), operator: Operator::Exists, values: vec![] };
        let zero = PenaltyBucket::ZERO;
        Need {
            cluster: "c".into(),
            profile: Arc::new(Profile::new(vec![ssd], vec![], 0, zero, zero)),
            group: Group::none(),
            aggregate: Totals::zero(),
            min_unit: [(Dimension::CPU, 2_000)].into_iter().collect(),
            arrival,
        }
    }

    #[test]
    fn the_earliest_known_arrival_counts() {
        for (a, b, earliest) in [(5, 3, 3), (3, 5, 3), (0, 5, 5), (5, 0, 5), (0, 0, 0)] {
            let mut absorbed = need(a);
            absorbed.absorb(&need(b));
            assert_eq!(absorbed.arrival, earliest, "{a} and {b}");
        }
    }

    #[test]
    fn a_usable_machine_matches_and_holds_one_unit_alone() {
        let ssd = BTreeMap::from([("ssd".to_owned(), String::new())]);
        let cores = |millis| [(Dimension::CPU, millis)].into_iter().collect();
        assert!(need(0).usable(&ssd, &cores(2_000)));
        assert!(!need(0).usable(&ssd, &cores(1_999)));
        assert!(!need(0).usable(&BTreeMap::new(), &cores(2_000)));
    }
}
