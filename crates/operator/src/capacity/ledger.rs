use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bigfleet_crds::{AvailableCapacity, available_capacity_name};
use bigfleet_wire::v1alpha1::AvailableCapacityUpdate;
use serde_json::Value;

use super::{CapacityView, Hint};
use crate::dispatch::Moment;
use crate::nodes::mirror::{Mirror, Mirrored};
use crate::rollup::Demanded;

/// The name of an AvailableCapacity.
pub(super) type Key = Arc<str>;

/// What a session has not refreshed by then is no longer true.
pub(super) const REFRESHED_WITHIN: Duration = Duration::from_secs(600);

/// What comes before the fingerprint in a key.
const PREFIX: &str = "available:";

/// What hints there are, and what they are to be.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    objects: Mirror<CapacityView>,
    wants: HashMap<Key, Want>,
    /// The fingerprints in our roll-ups; none before the first one.
    demanded: Option<Demanded>,
    /// When the live session began, until its stale hints were dealt with.
    session: Option<Moment>,
    /// Names that this session has spoken of.
    refreshed: HashSet<Key>,
}

#[derive(Debug, PartialEq)]
enum Want {
    Hint(Hint),
    /// None; `sure` once a delete has been answered.
    Absent {
        sure: bool,
    },
}

/// The next call for one hint.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    Create(Box<AvailableCapacity>),
    Patch(Value),
    Delete,
    Done,
}

impl Ledger {
    /// A frame was received; the name of its hint.
    pub(super) fn frame(&mut self, frame: &AvailableCapacityUpdate) -> Option<Key> {
        if frame.supersedes_key.is_empty() {
            return None;
        }
        let key: Key = available_capacity_name(&frame.supersedes_key).into();
        let hint = Hint::of(frame);
        let fingerprint = frame.supersedes_key.strip_prefix(PREFIX);
        let demanded = match (&self.demanded, fingerprint) {
            (Some(demanded), Some(fingerprint)) => demanded.contains(fingerprint),
            // Before the first roll-up nothing is known to be unwanted.
            _ => true,
        };
        // None for demanded capacity stays visible.
        let gone = hint.is_nothing() && !demanded;
        let want = if gone { Want::Absent { sure: false } } else { Want::Hint(hint) };
        self.wants.insert(key.clone(), want);
        // Of use only until the stale ones are dealt with; a session may outlive many profiles.
        if self.session.is_some() {
            self.refreshed.insert(key.clone());
        }
        Some(key)
    }

    pub(super) fn demanded(&mut self, demanded: Demanded) {
        self.demanded = Some(demanded);
    }

    pub(super) fn session_began(&mut self, now: Moment) {
        self.session = Some(now);
        self.refreshed.clear();
    }

    pub(super) fn session_ended(&mut self) {
        self.session = None;
    }

    /// When the live session's stale hints are due.
    pub(super) fn stale_at(&self) -> Option<Moment> {
        self.session.map(|began| began + REFRESHED_WITHIN)
    }

    /// Ten minutes into the session, everything it has not spoken of goes.
    pub(super) fn drop_stale(&mut self, now: Moment) -> Vec<Key> {
        if self.stale_at().is_none_or(|at| now < at) {
            return Vec::new();
        }
        self.session = None;
        let known = self.objects.iter().map(|object| object.name());
        let known: HashSet<Key> = known.chain(self.wants.keys()).cloned().collect();
        let stale: Vec<Key> = known.difference(&self.refreshed).cloned().collect();
        self.refreshed = HashSet::new();
        for key in &stale {
            self.wants.insert(key.clone(), Want::Absent { sure: false });
        }
        stale
    }

    /// The next call for one hint.
    pub(super) fn plan(&mut self, key: &Key) -> Step {
        let object = self.objects.get(key);
        match (self.wants.get(key), object) {
            (Some(Want::Hint(hint)), None) => Step::Create(hint.create(key).into()),
            (Some(Want::Hint(hint)), Some(object)) if *hint != object.hint => {
                Step::Patch(hint.patch(&object.hint))
            }
            (Some(Want::Absent { .. }), Some(_)) | (Some(Want::Absent { sure: false }), None) => {
                Step::Delete
            }
            (Some(Want::Absent { sure: true }), None) => {
                self.wants.remove(key);
                Step::Done
            }
            (None, _) | (Some(Want::Hint(_)), Some(_)) => Step::Done,
        }
    }

    pub(super) fn wrote(&mut self, object: Arc<CapacityView>) {
        self.objects.wrote(object);
    }

    /// A patch found no object: it will be created again.
    pub(super) fn missing(&mut self, key: &Key) {
        self.objects.deleted(key);
    }

    pub(super) fn deleted(&mut self, key: &Key) {
        self.objects.deleted(key);
        if let Some(Want::Absent { sure }) = self.wants.get_mut(key) {
            *sure = true;
        }
    }

    pub(super) fn shown(&mut self, object: Arc<CapacityView>) {
        self.objects.shown(object);
    }

    pub(super) fn vanished(&mut self, object: &CapacityView) {
        self.objects.vanished(object.name(), object.uid());
    }

    pub(super) fn relisted(&mut self) {
        self.objects.relisted();
    }

    /// Forgets everything but the session and the demand.
    pub(super) fn reset(&mut self) {
        self.objects = Mirror::default();
        self.wants.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(fingerprint: &str, count: i32) -> AvailableCapacityUpdate {
        AvailableCapacityUpdate {
            supersedes_key: format!("available:{fingerprint}"),
            available_count: count,
            confidence: if count == 0 { 1 } else { 4 },
            ..AvailableCapacityUpdate::default()
        }
    }

    /// Carries out the next call as a server would.
    fn carry_out(ledger: &mut Ledger, key: &Key) -> bool {
        match ledger.plan(key) {
            Step::Create(mut object) => {
                object.metadata.uid = Some("u".into());
                object.metadata.resource_version = Some("1".into());
                ledger.wrote(Arc::new(CapacityView::of(&object).unwrap()));
                true
            }
            Step::Delete => {
                ledger.deleted(key);
                true
            }
            Step::Patch(_) => true,
            Step::Done => false,
        }
    }

    #[test]
    fn a_frame_without_a_key_is_ignored_and_an_equal_one_writes_nothing() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.frame(&AvailableCapacityUpdate::default()), None);
        let key = ledger.frame(&frame("a", 3)).unwrap();
        assert!(matches!(ledger.plan(&key), Step::Create(_)));
        carry_out(&mut ledger, &key);
        assert_eq!(ledger.plan(&key), Step::Done);
        ledger.frame(&frame("a", 3));
        assert_eq!(ledger.plan(&key), Step::Done);
        ledger.frame(&frame("a", 4));
        assert!(matches!(ledger.plan(&key), Step::Patch(_)));
    }

    #[test]
    fn nothing_stays_visible_while_it_is_demanded() {
        let mut ledger = Ledger::default();
        let key = ledger.frame(&frame("a", 0)).unwrap();
        assert!(matches!(ledger.plan(&key), Step::Create(_)), "demand is not known yet");
        ledger.demanded(Arc::new(["a".into()].into_iter().collect()));
        ledger.frame(&frame("a", 0));
        assert!(matches!(ledger.plan(&key), Step::Create(_)));
        carry_out(&mut ledger, &key);
        ledger.demanded(Demanded::default());
        ledger.frame(&frame("a", 2));
        assert!(matches!(ledger.plan(&key), Step::Patch(_)), "there is some");
        ledger.frame(&frame("a", 0));
        assert_eq!(ledger.plan(&key), Step::Delete);
        carry_out(&mut ledger, &key);
        assert_eq!(ledger.plan(&key), Step::Done);
    }

    #[test]
    fn ten_minutes_into_a_session_the_unrefreshed_go() {
        let mut ledger = Ledger::default();
        let at = Moment::from_secs;
        let (a, b) = (ledger.frame(&frame("a", 1)).unwrap(), ledger.frame(&frame("b", 1)).unwrap());
        carry_out(&mut ledger, &a);
        carry_out(&mut ledger, &b);
        ledger.session_began(at(100));
        ledger.frame(&frame("b", 1));
        assert!(ledger.drop_stale(at(699)).is_empty());
        assert_eq!(ledger.drop_stale(at(700)), std::slice::from_ref(&a));
        assert_eq!(ledger.plan(&a), Step::Delete);
        assert_eq!(ledger.plan(&b), Step::Done);
        assert!(ledger.drop_stale(at(800)).is_empty(), "once per session");
        ledger.frame(&frame("a", 1));
        assert_eq!(ledger.plan(&a), Step::Done, "a frame that came meanwhile keeps it");
        assert!(ledger.refreshed.is_empty(), "a long session remembers no names for nothing");
        ledger.session_began(at(900));
        ledger.session_ended();
        assert!(ledger.drop_stale(at(5000)).is_empty(), "an ended session says nothing");
    }
}
