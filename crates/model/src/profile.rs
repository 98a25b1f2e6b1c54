//! What a need asks of machines, without how much (engine chapter §1.5).

use std::hash::{Hash, Hasher};

use crate::{
    fingerprint::Fingerprint,
    penalty::PenaltyBucket,
    requirement::{Attributes, Operator, Requirement},
    spread::TopologySpread,
};

/// Requirements, spread, priority and both penalties, in canonical form.
/// Profiles are equal if and only if their fingerprints are.
#[derive(Clone, Debug)]
pub struct Profile {
    requirements: Vec<Requirement>,
    spread: Vec<TopologySpread>,
    priority: i32,
    interruption: PenaltyBucket,
    reclamation: PenaltyBucket,
    fingerprint: Fingerprint,
}

impl Profile {
    /// Brings the parts into canonical order and drops what says nothing new.
    pub fn new(
        mut requirements: Vec<Requirement>,
        mut spread: Vec<TopologySpread>,
        priority: i32,
        interruption: PenaltyBucket,
        reclamation: PenaltyBucket,
    ) -> Self {
        for requirement in &mut requirements {
            requirement.values.sort_unstable();
            requirement.values.dedup();
        }
        requirements.sort_unstable();
        requirements.dedup();
        spread.sort_unstable();
        let fingerprint =
            Fingerprint::of_canonical(&requirements, &spread, priority, interruption, reclamation);
        Self { requirements, spread, priority, interruption, reclamation, fingerprint }
    }

    /// What a gang's profile becomes where the gang fits a machine: every `Same` is
    /// `Exists`, or `In` if it lists values (engine chapter §4.2). The spread stays in
    /// the text, but is not enforced, as with `Same`.
    #[must_use]
    pub fn folded(&self) -> Self {
        let fold = |requirement: &Requirement| {
            let operator = match requirement.operator {
                Operator::Same if requirement.values.is_empty() => Operator::Exists,
                Operator::Same => Operator::In,
                other => other,
            };
            Requirement { operator, ..requirement.clone() }
        };
        Self::new(
            self.requirements.iter().map(fold).collect(),
            self.spread.clone(),
            self.priority,
            self.interruption,
            self.reclamation,
        )
    }

    /// Constraints on machines, all ANDed.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Every spread entry, hard or not.
    pub fn spread(&self) -> &[TopologySpread] {
        &self.spread
    }

    /// The one spread entry that the engine enforces: the first hard one.
    pub fn hard_spread(&self) -> Option<&TopologySpread> {
        self.spread.iter().find(|entry| entry.is_hard())
    }

    /// The `Same` requirements. Normally one; of several, the domain is the
    /// tuple of their values.
    pub fn same(&self) -> impl Iterator<Item = &Requirement> {
        self.requirements.iter().filter(|requirement| requirement.operator == Operator::Same)
    }

    /// Higher is served first.
    pub const fn priority(&self) -> i32 {
        self.priority
    }

    /// Cost of interrupting the workload.
    pub const fn interruption(&self) -> PenaltyBucket {
        self.interruption
    }

    /// Value of this pairing of machine and workload.
    pub const fn reclamation(&self) -> PenaltyBucket {
        self.reclamation
    }

    /// The canonical text.
    pub const fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// Whether all requirements hold.
    pub fn matches(&self, attributes: &impl Attributes) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(attributes))
    }
}

impl PartialEq for Profile {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

impl Eq for Profile {}

impl Hash for Profile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fingerprint.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spread::WhenUnsatisfiable;

    fn requirement(key: &str, operator: Operator, values: &[&str]) -> Requirement {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        Requirement { key: key.to_owned(), operator, values }
    }

    fn text(requirements: Vec<Requirement>) -> String {
        let none = PenaltyBucket::UNSPECIFIED;
        Profile::new(requirements, vec![], 0, none, none).fingerprint().to_string()
    }

    #[test]
    fn v1_the_empty_profile() {
        assert_eq!(text(vec![]), "p=0|ipb=0|rpb=0|reqs=|spr=");
    }

    #[test]
    fn v2_a_gang_of_gpu_machines() {
        let profile = Profile::new(
            vec![
                requirement("topology.kubernetes.io/zone", Operator::Same, &[]),
                requirement(
                    "node.kubernetes.io/instance-type",
                    Operator::In,
                    &["a3-ultragpu-8g", "a3-highgpu-8g"],
                ),
            ],
            vec![TopologySpread {
                topology_key: "topology.kubernetes.io/zone".to_owned(),
                max_skew: 1,
                when_unsatisfiable: WhenUnsatisfiable::DoNotSchedule,
            }],
            1_000_000,
            PenaltyBucket::from_dollars(8192.0),
            PenaltyBucket::from_dollars(65536.0),
        );
        assert_eq!(
            profile.fingerprint().as_str(),
            "p=1000000|ipb=16|rpb=19|reqs=node.kubernetes.io/instance-type:1:a3-highgpu-8g,\
             a3-ultragpu-8g;topology.kubernetes.io/zone:5:;|spr=topology.kubernetes.io/zone:1:1;"
        );
    }

    #[test]
    fn delimiters_and_controls_are_escaped() {
        assert_eq!(
            text(vec![requirement(
                "a:b%",
                Operator::In,
                &["x,y", "p|q;", "\u{0}\u{7f}\u{85}", "é"]
            )]),
            "p=0|ipb=0|rpb=0|reqs=a%3Ab%25:1:%00%7F%C2%85,p%7Cq%3B,x%2Cy,é;|spr="
        );
    }

    #[test]
    fn a_control_character_past_ascii_is_escaped_alone_too() {
        assert!(
            text(vec![requirement("\u{85}", Operator::Exists, &[])]).contains("reqs=%C2%85:3:;")
        );
        assert!(text(vec![requirement("\u{e9}", Operator::Exists, &[])]).contains("reqs=é:3:;"));
    }

    #[test]
    fn a_lone_empty_value_is_not_an_empty_list() {
        assert_eq!(
            text(vec![requirement("k", Operator::In, &[])]),
            "p=0|ipb=0|rpb=0|reqs=k:1:;|spr="
        );
        assert_eq!(
            text(vec![requirement("k", Operator::In, &[""])]),
            "p=0|ipb=0|rpb=0|reqs=k:1:%;|spr="
        );
        assert_eq!(
            text(vec![requirement("k", Operator::In, &["", "a"])]),
            "p=0|ipb=0|rpb=0|reqs=k:1:,a;|spr="
        );
    }

    #[test]
    fn the_first_hard_spread_by_key_is_enforced() {
        let entry = |key: &str, when_unsatisfiable| TopologySpread {
            topology_key: key.to_owned(),
            max_skew: 0,
            when_unsatisfiable,
        };
        let none = PenaltyBucket::UNSPECIFIED;
        let spread = vec![
            entry("zone", WhenUnsatisfiable::DoNotSchedule),
            entry("rack", WhenUnsatisfiable::DoNotSchedule),
            entry("host", WhenUnsatisfiable::ScheduleAnyway),
        ];
        let profile = Profile::new(vec![], spread, 0, none, none);
        let hard = profile.hard_spread().unwrap();
        assert_eq!((hard.topology_key.as_str(), hard.skew()), ("rack", 1));
    }
}
