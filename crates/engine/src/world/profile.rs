//! Profiles, with what the phases ask of them.

use std::sync::Arc;

use bigfleet_model::Profile;

use crate::handle::{ProfileIx, TopologyIx};

/// How constrained a need is; the most constrained go first (§6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Constraint {
    Folded,
    Same,
    Spread,
    #[default]
    Plain,
}

/// Larger goes first; needs of equal precedence form a tier (§5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Precedence(u64);

impl Precedence {
    /// Smaller goes first.
    pub(crate) const fn descending(self) -> u64 {
        u64::MAX - self.0
    }

    fn of(profile: &Profile) -> Self {
        // Flipping the sign bit makes unsigned order the order of priorities.
        let priority = u64::from(profile.priority() as u32 ^ (1 << 31));
        let bucket = |ordinal: i32| u64::from(ordinal as u8);
        let buckets =
            bucket(profile.interruption().to_wire()) << 8 | bucket(profile.reclamation().to_wire());
        Self(priority << 16 | buckets)
    }
}

#[derive(Clone)]
pub(crate) struct ProfileRow {
    pub(crate) profile: Arc<Profile>,
    pub(crate) precedence: Precedence,
    pub(crate) constraint: Constraint,
    /// Of the `Same` keys, or of the enforced spread; `Same` wins.
    pub(crate) topology: Option<TopologyIx>,
    pub(crate) max_skew: u32,
    /// Dollars of an interruption.
    pub(crate) penalty: f64,
    /// What a gang's profile folds into.
    pub(crate) folded: Option<ProfileIx>,
    /// Place of the fingerprint among all; kept by [`super::World`].
    pub(crate) rank: u32,
}

impl ProfileRow {
    pub(crate) fn new(profile: Arc<Profile>, topology: Option<TopologyIx>) -> Self {
        let constraint = if profile.same().next().is_some() {
            Constraint::Same
        } else if profile.hard_spread().is_some() {
            Constraint::Spread
        } else {
            Constraint::Plain
        };
        Self {
            precedence: Precedence::of(&profile),
            constraint,
            topology,
            max_skew: profile.hard_spread().map_or(0, |hard| hard.skew()),
            penalty: profile.interruption().dollars(),
            folded: None,
            rank: 0,
            profile,
        }
    }
}

/// Keys whose values are the domains of a need.
pub(crate) fn topology_keys(profile: &Profile) -> Vec<String> {
    let same: Vec<String> = profile.same().map(|requirement| requirement.key.clone()).collect();
    if !same.is_empty() {
        return same;
    }
    profile.hard_spread().map(|hard| hard.topology_key.clone()).into_iter().collect()
}
