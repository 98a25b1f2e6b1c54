//! Which need a binding serves, and how a provider keeps that for us (wire
//! chapter §11).

use std::{collections::BTreeMap, str::FromStr};

use crate::{
    fingerprint::Fingerprint,
    gate::Quoted,
    id::{ClusterId, Group},
    need::Need,
};

/// Keys under which the stamp travels in `shard_metadata`.
pub mod key {
    /// Decimal `i32`.
    pub const PRIORITY: &str = "bigfleet.lucy.sh/assigned-priority";
    /// Shortest `f64`, `+Inf` if pinned.
    pub const INTERRUPTION: &str = "bigfleet.lucy.sh/assigned-interruption-penalty-dollars";
    /// Shortest `f64`, `+Inf` if pinned.
    pub const RECLAMATION: &str = "bigfleet.lucy.sh/assigned-reclamation-penalty-dollars";
    /// Canonical text of the profile.
    pub const FINGERPRINT: &str = "bigfleet.lucy.sh/assigned-need-fingerprint";
    /// May be empty.
    pub const GROUP: &str = "bigfleet.lucy.sh/assigned-group";
}

/// The need that a machine was bought or bound for.
#[derive(Clone, Debug, PartialEq)]
pub struct Stamp {
    /// Unknown counts as below every priority.
    pub priority: Option<i32>,
    /// Dollars, `+∞` if pinned.
    pub interruption: f64,
    /// Dollars, `+∞` if pinned.
    pub reclamation: f64,
    /// Profile of the need; empty if unknown.
    pub fingerprint: Fingerprint,
    /// Gang of the need; empty if none.
    pub group: Group,
    /// Whose purchase it is. Kept in memory only: once bound, the machine's own
    /// cluster says it.
    pub for_cluster: Option<ClusterId>,
}

impl Default for Stamp {
    fn default() -> Self {
        Self {
            priority: None,
            interruption: 0.0,
            reclamation: 0.0,
            fingerprint: Fingerprint::from(""),
            group: Group::none(),
            for_cluster: None,
        }
    }
}

/// A metadata value that could not be read; its field stayed at the default.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("shard_metadata[{key:?}]: malformed value {}", Quoted(.value))]
pub struct MalformedStamp {
    /// Which key.
    pub key: &'static str,
    /// What stood there.
    pub value: String,
}

impl Stamp {
    /// Of the need that decides.
    pub fn of(need: &Need) -> Self {
        let profile = &need.profile;
        Self {
            priority: Some(profile.priority()),
            interruption: profile.interruption().dollars(),
            reclamation: profile.reclamation().dollars(),
            fingerprint: profile.fingerprint().clone(),
            group: need.group.clone(),
            for_cluster: Some(need.cluster.clone()),
        }
    }

    /// What Configure sends.
    pub fn to_metadata(&self) -> BTreeMap<String, String> {
        let pairs = [
            (key::PRIORITY, self.priority.map(|priority| priority.to_string())),
            (key::INTERRUPTION, Some(dollars_text(self.interruption))),
            (key::RECLAMATION, Some(dollars_text(self.reclamation))),
            (key::FINGERPRINT, Some(self.fingerprint.to_string())),
            (key::GROUP, Some(self.group.to_string())),
        ];
        pairs.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }

    /// What a provider echoed. Each key is read alone: absent leaves the default,
    /// malformed too and is reported, unknown is ignored. No known key, no stamp.
    pub fn from_metadata(
        metadata: &BTreeMap<String, String>,
    ) -> (Option<Self>, Vec<MalformedStamp>) {
        let mut reader = Reader { metadata, malformed: Vec::new(), found: false };
        let text = |text: &str| Some(text.to_owned());
        let stamp = Self {
            priority: reader.read(key::PRIORITY, |text| i32::from_str(text).ok()),
            interruption: reader.read(key::INTERRUPTION, parse_dollars).unwrap_or(0.0),
            reclamation: reader.read(key::RECLAMATION, parse_dollars).unwrap_or(0.0),
            fingerprint: reader.read(key::FINGERPRINT, text).unwrap_or_default().into(),
            group: reader.read(key::GROUP, text).unwrap_or_default().into(),
            for_cluster: None,
        };
        (reader.found.then_some(stamp), reader.malformed)
    }
}

struct Reader<'a> {
    metadata: &'a BTreeMap<String, String>,
    malformed: Vec<MalformedStamp>,
    found: bool,
}

impl Reader<'_> {
    fn read<T>(&mut self, key: &'static str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = self.metadata.get(key)?;
        let value = parse(text);
        match &value {
            Some(_) => self.found = true,
            None => self.malformed.push(MalformedStamp { key, value: text.clone() }),
        }
        value
    }
}

fn dollars_text(dollars: f64) -> String {
    if dollars == f64::INFINITY { "+Inf".to_owned() } else { dollars.to_string() }
}

fn parse_dollars(text: &str) -> Option<f64> {
    let dollars: f64 = text.parse().ok()?;
    // Adding zero turns −0 into 0, so that equal stamps have equal bits.
    (dollars >= 0.0).then_some(dollars + 0.0)
}
