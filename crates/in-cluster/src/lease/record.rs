use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use tokio::time::Instant;

use super::Settings;

/// What a Lease says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Who holds it; empty when it was given back.
    pub holder: String,
    /// When it was renewed, by the holder's wall clock.
    pub renewed: Option<Timestamp>,
    /// How long a silent holder is to be waited for.
    pub duration: Duration,
    /// How often it changed hands.
    pub transitions: i32,
    /// What else it carries.
    pub annotations: BTreeMap<String, String>,
}

impl Record {
    pub(super) fn of(lease: &Lease) -> Self {
        let spec = lease.spec.as_ref();
        let seconds = spec.and_then(|spec| spec.lease_duration_seconds).unwrap_or_default();
        Self {
            holder: spec.and_then(|spec| spec.holder_identity.clone()).unwrap_or_default(),
            renewed: spec.and_then(|spec| spec.renew_time.as_ref()).map(|time| time.0),
            duration: Duration::from_secs(u64::try_from(seconds).unwrap_or_default()),
            transitions: spec.and_then(|spec| spec.lease_transitions).unwrap_or_default(),
            annotations: lease.metadata.annotations.clone().unwrap_or_default(),
        }
    }
}

/// What to do about a lease that was just read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It is ours: renew it.
    Renew,
    /// Nobody's, or of one who has gone silent: take it.
    Take,
    /// Another's.
    Leave,
}

/// The last record seen and since when it has not changed.
#[derive(Debug, Default)]
pub(super) struct Watcher {
    seen: Option<(Record, Instant)>,
}

impl Watcher {
    pub(super) fn look(&mut self, record: Record, identity: &str, now: Instant) -> Step {
        let since = match &self.seen {
            Some((seen, since)) if *seen == record => *since,
            _ => now,
        };
        let step = if record.holder == identity {
            Step::Renew
        } else if record.holder.is_empty() || now >= since + record.duration {
            Step::Take
        } else {
            Step::Leave
        };
        self.seen = Some((record, since));
        step
    }
}

/// The lease as we want it, over what was read.
pub(super) fn held(
    settings: &Settings,
    read: Option<&Lease>,
    annotations: &BTreeMap<String, String>,
    now: Timestamp,
) -> Lease {
    let mut metadata = read.map_or_else(
        || ObjectMeta {
            name: Some(settings.name.clone()),
            namespace: Some(settings.namespace.clone()),
            ..ObjectMeta::default()
        },
        |lease| lease.metadata.clone(),
    );
    if !annotations.is_empty() {
        let carried = metadata.annotations.get_or_insert_default();
        carried.extend(annotations.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    let spec = read.and_then(|lease| lease.spec.as_ref());
    let ours = spec.and_then(|spec| spec.holder_identity.as_ref()) == Some(&settings.identity);
    let transitions = spec.and_then(|spec| spec.lease_transitions).unwrap_or_default();
    let acquired = spec.and_then(|spec| spec.acquire_time.clone()).filter(|_| ours);
    let seconds = settings.lease_duration.as_secs().max(1);
    let spec = LeaseSpec {
        holder_identity: Some(settings.identity.clone()),
        lease_duration_seconds: Some(i32::try_from(seconds).unwrap_or(i32::MAX)),
        acquire_time: Some(acquired.unwrap_or(MicroTime(now))),
        renew_time: Some(MicroTime(now)),
        lease_transitions: Some(transitions + i32::from(read.is_some() && !ours)),
        ..LeaseSpec::default()
    };
    Lease { metadata, spec: Some(spec) }
}

/// The lease given back: the next one need not wait.
pub(super) fn released(lease: &Lease, now: Timestamp) -> Lease {
    let transitions = lease.spec.as_ref().and_then(|spec| spec.lease_transitions);
    let spec = LeaseSpec {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        acquire_time: Some(MicroTime(now)),
        renew_time: Some(MicroTime(now)),
        lease_transitions: transitions,
        ..LeaseSpec::default()
    };
    Lease { metadata: lease.metadata.clone(), spec: Some(spec) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(holder: &str, transitions: i32) -> Record {
        Record {
            holder: holder.into(),
            renewed: None,
            duration: Duration::from_secs(15),
            transitions,
            annotations: BTreeMap::new(),
        }
    }

    #[test]
    fn a_silent_holder_is_waited_for_by_our_own_clock() {
        let mut watcher = Watcher::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(watcher.look(record("other", 1), "me", at(0)), Step::Leave);
        assert_eq!(watcher.look(record("other", 1), "me", at(14)), Step::Leave);
        assert_eq!(watcher.look(record("other", 2), "me", at(16)), Step::Leave);
        assert_eq!(watcher.look(record("other", 2), "me", at(30)), Step::Leave);
        assert_eq!(watcher.look(record("other", 2), "me", at(31)), Step::Take);
        assert_eq!(watcher.look(record("", 2), "me", at(32)), Step::Take);
        assert_eq!(watcher.look(record("me", 3), "me", at(33)), Step::Renew);
    }

    #[test]
    fn a_lease_counts_its_holders() {
        let settings = |identity: &str| Settings::new("lease", "space", identity);
        let annotations = BTreeMap::from([("synced".to_owned(), "a".to_owned())]);
        let now = Timestamp::UNIX_EPOCH;
        let first = held(&settings("a"), None, &annotations, now);
        assert_eq!(Record::of(&first).transitions, 0);
        let later = now + Duration::from_secs(5);
        let renewed = held(&settings("a"), Some(&first), &annotations, later);
        assert_eq!(Record::of(&renewed).transitions, 0);
        assert_eq!(renewed.spec.as_ref().unwrap().acquire_time, Some(MicroTime(now)));
        assert_eq!(Record::of(&renewed).renewed, Some(later));
        let back = released(&renewed, later);
        assert_eq!(Record::of(&back).holder, "");
        let taken = held(&settings("b"), Some(&back), &BTreeMap::new(), later);
        assert_eq!(Record::of(&taken).transitions, 1);
        assert_eq!(Record::of(&taken).annotations, annotations);
    }
}
