//! Profiles, matched once against every class.

use std::{collections::BTreeMap, sync::Arc};

use bigfleet_model::{Attributes, Fingerprint, Operator, Profile, Requirement};
use hashbrown::HashMap;

use super::ClassRow;

/// A value of a topology key, or a tuple of several; numbers order like texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct DomainId(pub(crate) u32);

/// A profile with what it says of each class.
pub(crate) struct ProfileRow {
    pub(crate) profile: Arc<Profile>,
    /// By class.
    pub(crate) matches: Vec<bool>,
    /// The classes that match.
    pub(crate) classes: Vec<usize>,
    /// Domain of a class under the `Same` keys, by class; empty without them.
    pub(crate) same: Vec<Option<DomainId>>,
    /// Values of each domain, in key order.
    same_values: Vec<Vec<String>>,
    /// Domain of a class under the enforced spread, by class; empty without one.
    pub(crate) spread: Vec<Option<DomainId>>,
    /// Dollars of an interruption.
    pub(crate) penalty: f64,
    pub(crate) max_skew: u32,
}

impl ProfileRow {
    fn of(profile: Arc<Profile>, classes: &[ClassRow<'_>]) -> Self {
        let matches: Vec<bool> = classes.iter().map(|row| profile.matches(row.class)).collect();
        let matching = (0..classes.len()).filter(|class| matches[*class]).collect();
        let keys: Vec<&str> = profile.same().map(|requirement| requirement.key.as_str()).collect();
        let (same, same_values) = domains(&keys, classes);
        // `Same` wins where both are present.
        let hard = profile.hard_spread().filter(|_| keys.is_empty());
        let (spread, _) =
            hard.map_or_else(Default::default, |hard| domains(&[&hard.topology_key], classes));
        let max_skew = hard.map_or(0, |hard| hard.skew());
        let penalty = profile.interruption().dollars();
        Self { matches, classes: matching, same, same_values, spread, penalty, max_skew, profile }
    }

    pub(crate) fn is_gang(&self) -> bool {
        self.profile.same().next().is_some()
    }

    pub(crate) fn has_spread(&self) -> bool {
        self.max_skew > 0
    }

    /// Key and value of a domain.
    pub(crate) fn domain_values(&self, domain: DomainId) -> BTreeMap<String, String> {
        let keys = self.profile.same().map(|requirement| requirement.key.clone());
        keys.zip(self.same_values[domain.0 as usize].iter().cloned()).collect()
    }
}

/// The domain of each class under these keys, and the values of each domain.
fn domains(keys: &[&str], classes: &[ClassRow<'_>]) -> (Vec<Option<DomainId>>, Vec<Vec<String>>) {
    if keys.is_empty() {
        return Default::default();
    }
    let tuples: Vec<Option<Vec<&str>>> = classes
        .iter()
        .map(|row| keys.iter().map(|key| row.class.attribute(key)).collect())
        .collect();
    let mut known: Vec<&Vec<&str>> = tuples.iter().flatten().collect();
    known.sort_unstable();
    known.dedup();
    let of_class = |tuple: &Option<Vec<&str>>| {
        let tuple = tuple.as_ref()?;
        known.binary_search(&tuple).ok().map(|at| DomainId(at as u32))
    };
    let ids = tuples.iter().map(of_class).collect();
    let values = known.iter().map(|tuple| tuple.iter().map(|v| (*v).to_owned()).collect());
    (ids, values.collect())
}

/// Profiles by number.
#[derive(Default)]
pub(crate) struct Profiles {
    rows: Vec<ProfileRow>,
    numbers: HashMap<Fingerprint, usize, foldhash::fast::FixedState>,
    /// Profile that a gang's profile folds into.
    folded: HashMap<usize, usize, foldhash::fast::FixedState>,
}

impl Profiles {
    pub(super) fn intern(&mut self, profile: &Arc<Profile>, classes: &[ClassRow<'_>]) -> usize {
        if let Some(number) = self.numbers.get(profile.fingerprint()) {
            return *number;
        }
        self.numbers.insert(profile.fingerprint().clone(), self.rows.len());
        self.rows.push(ProfileRow::of(profile.clone(), classes));
        self.rows.len() - 1
    }

    pub(crate) fn row(&self, number: usize) -> &ProfileRow {
        &self.rows[number]
    }

    /// Every `Same` replaced by `Exists`, or by `In` if it lists values (§4.2).
    /// The spread stays in the text, but is not enforced, as with `Same`.
    pub(crate) fn folded(&mut self, number: usize, classes: &[ClassRow<'_>]) -> usize {
        if let Some(known) = self.folded.get(&number) {
            return *known;
        }
        let gang = &self.rows[number].profile;
        let fold = |requirement: &Requirement| {
            let operator = match requirement.operator {
                Operator::Same if requirement.values.is_empty() => Operator::Exists,
                Operator::Same => Operator::In,
                other => other,
            };
            Requirement { operator, ..requirement.clone() }
        };
        let profile = Arc::new(Profile::new(
            gang.requirements().iter().map(fold).collect(),
            gang.spread().to_vec(),
            gang.priority(),
            gang.interruption(),
            gang.reclamation(),
        ));
        let folded = self.intern(&profile, classes);
        self.folded.insert(number, folded);
        folded
    }
}
