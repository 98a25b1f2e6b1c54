//! What needs are told apart by.

use std::{
    borrow::Borrow,
    cmp::Ordering,
    hash::{Hash, Hasher},
    sync::Arc,
};

use bigfleet_model::{Profile, Requirement, TopologySpread};
use bigfleet_wire::v1alpha1 as wire;
use prost::Message;

/// A profile and a group: requests that agree in both are one need.
#[derive(Debug)]
pub struct NeedIdentity {
    profile: Profile,
    group: Box<str>,
    encoded: Encoded,
}

/// All of a need's message but its resources, as bytes in the order of field numbers.
#[derive(Debug)]
pub(super) struct Encoded {
    /// Field 1.
    pub(super) requirements: Box<[u8]>,
    /// Fields 3 to 7.
    pub(super) profile: Box<[u8]>,
    /// Field 9.
    pub(super) group: Box<[u8]>,
}

impl Encoded {
    fn of(profile: &Profile, group: &str) -> Self {
        let requirements = |one: &Requirement| one.into();
        let spread = |one: &TopologySpread| one.into();
        let bytes = |need: wire::CapacityNeed| need.encode_to_vec().into_boxed_slice();
        Self {
            requirements: bytes(wire::CapacityNeed {
                requirements: profile.requirements().iter().map(requirements).collect(),
                ..Default::default()
            }),
            profile: bytes(wire::CapacityNeed {
                priority: profile.priority(),
                spread: profile.spread().iter().map(spread).collect(),
                interruption_penalty_bucket: profile.interruption().to_wire(),
                reclamation_penalty_bucket: profile.reclamation().to_wire(),
                ..Default::default()
            }),
            group: bytes(wire::CapacityNeed { group: group.to_owned(), ..Default::default() }),
        }
    }
}

impl NeedIdentity {
    /// Of a profile and a group, which may be empty.
    #[must_use]
    pub fn new(profile: Profile, group: &str) -> Self {
        Self { encoded: Encoded::of(&profile, group), profile, group: group.into() }
    }

    /// What machines must be like.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The canonical text of the profile.
    pub fn fingerprint(&self) -> &str {
        self.profile.fingerprint().as_str()
    }

    /// The gang, or empty.
    pub fn group(&self) -> &str {
        &self.group
    }

    pub(super) fn encoded(&self) -> &Encoded {
        &self.encoded
    }

    fn key(&self) -> (&str, &str) {
        (self.fingerprint(), &self.group)
    }
}

impl PartialEq for NeedIdentity {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for NeedIdentity {}

impl PartialOrd for NeedIdentity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Identity order: fingerprint, then group.
impl Ord for NeedIdentity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Hash for NeedIdentity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// Finds an identity by its two texts without making one.
pub(super) trait Key {
    fn texts(&self) -> (&str, &str);
}

impl Key for (&str, &str) {
    fn texts(&self) -> (&str, &str) {
        *self
    }
}

impl Key for Arc<NeedIdentity> {
    fn texts(&self) -> (&str, &str) {
        self.key()
    }
}

impl<'a> Borrow<dyn Key + 'a> for Arc<NeedIdentity> {
    fn borrow(&self) -> &(dyn Key + 'a) {
        self
    }
}

impl PartialEq for dyn Key + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.texts() == other.texts()
    }
}

impl Eq for dyn Key + '_ {}

impl Hash for dyn Key + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.texts().hash(state);
    }
}
