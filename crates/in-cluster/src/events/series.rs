use std::{collections::VecDeque, time::Duration};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time},
};
use serde_json::{Value, json};

use super::{Kind, Note, namespace_of};

/// Events whose repetition is counted; of an older one the next is a new event.
const REMEMBERED: usize = 4096;

/// As long as the server keeps an event, by default.
const LIFE: Duration = Duration::from_secs(3600);

/// How to write a note.
pub(super) enum Write {
    Create(Box<Event>),
    Count { name: String, patch: Value },
}

/// Events already written.
#[derive(Default)]
pub(super) struct Series {
    written: HashMap<Identity, Written, RandomState>,
    order: VecDeque<Identity>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Identity {
    kind: Kind,
    reason: String,
    message: String,
    object: [Option<String>; 4],
}

struct Written {
    name: String,
    count: i32,
    last: Timestamp,
}

impl Identity {
    fn of(note: &Note) -> Self {
        let ObjectReference { kind, namespace, name, uid, .. } = note.regarding.clone();
        Self {
            kind: note.kind,
            reason: note.reason.clone(),
            message: note.message.clone(),
            object: [kind, namespace, name, uid],
        }
    }
}

impl Series {
    pub(super) fn write(
        &mut self,
        note: &Note,
        source: &EventSource,
        instance: &str,
        now: Timestamp,
    ) -> Write {
        let identity = Identity::of(note);
        if let Some(written) = self.written.get_mut(&identity) {
            let age = Duration::try_from(now.duration_since(written.last)).unwrap_or_default();
            if age < LIFE {
                written.count = written.count.saturating_add(1);
                written.last = now;
                let patch = json!({"count": written.count, "lastTimestamp": Time(now)});
                return Write::Count { name: written.name.clone(), patch };
            }
            self.forget(note);
        }
        let name = event_name(note);
        self.remember(identity, Written { name: name.clone(), count: 1, last: now });
        Write::Create(Box::new(event(note, name, source, instance, now)))
    }

    fn remember(&mut self, identity: Identity, written: Written) {
        while self.order.len() >= REMEMBERED {
            if let Some(oldest) = self.order.pop_front() {
                self.written.remove(&oldest);
            }
        }
        self.order.push_back(identity.clone());
        self.written.insert(identity, written);
    }

    pub(super) fn forget(&mut self, note: &Note) {
        let identity = Identity::of(note);
        self.written.remove(&identity);
        self.order.retain(|other| *other != identity);
    }
}

/// The object's name, cut to fit, and something no other event of it has.
fn event_name(note: &Note) -> String {
    let name = note.regarding.name.as_deref().unwrap_or("unknown");
    let cut = name.char_indices().nth(200).map_or(name, |(end, _)| &name[..end]);
    format!("{}.{:016x}", cut.trim_end_matches(['.', '-']), getrandom::u64().unwrap_or_default())
}

fn event(note: &Note, name: String, source: &EventSource, instance: &str, now: Timestamp) -> Event {
    Event {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(namespace_of(note).to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: note.regarding.clone(),
        type_: Some(note.kind.text().to_owned()),
        reason: Some(note.reason.clone()),
        message: Some(cut_message(&note.message)),
        action: Some(note.reason.clone()),
        count: Some(1),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        event_time: Some(MicroTime(now)),
        source: Some(source.clone()),
        reporting_component: source.component.clone(),
        reporting_instance: Some(instance.to_owned()),
        ..Event::default()
    }
}

/// The server refuses messages beyond 1 KiB.
fn cut_message(message: &str) -> String {
    const LONGEST: usize = 1024;
    if message.len() <= LONGEST {
        return message.to_owned();
    }
    let mut end = LONGEST - "…".len();
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &message[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &str, message: &str) -> Note {
        let regarding = ObjectReference { name: Some(name.into()), ..ObjectReference::default() };
        Note { kind: Kind::Normal, reason: "Reason".into(), message: message.into(), regarding }
    }

    fn created(write: Write) -> Option<Event> {
        match write {
            Write::Create(event) => Some(*event),
            Write::Count { .. } => None,
        }
    }

    #[test]
    fn a_repetition_counts_until_the_server_has_forgotten_the_first() {
        let mut series = Series::default();
        let start = Timestamp::UNIX_EPOCH;
        let mut write = |seconds| {
            series.write(
                &note("node", "x"),
                &EventSource::default(),
                "i",
                start + Duration::from_secs(seconds),
            )
        };
        let first = created(write(0)).unwrap();
        let Write::Count { name, patch } = write(60) else { panic!("no repetition") };
        assert_eq!(Some(name), first.metadata.name);
        assert_eq!(patch["count"], 2);
        assert!(created(write(60 + 3600)).is_some());
    }

    #[test]
    fn memory_is_bounded() {
        let mut series = Series::default();
        for index in 0..REMEMBERED + 10 {
            let note = note(&format!("node-{index}"), "x");
            series.write(&note, &EventSource::default(), "i", Timestamp::UNIX_EPOCH);
        }
        assert_eq!(series.written.len(), REMEMBERED);
        assert_eq!(series.order.len(), REMEMBERED);
    }

    #[test]
    fn long_words_are_cut_where_a_letter_ends() {
        assert_eq!(cut_message(&"ä".repeat(512)).len(), 1024);
        let cut = cut_message(&"ä".repeat(600));
        assert!(cut.len() <= 1024 && cut.ends_with('…'), "{}", cut.len());
        let event = event_name(&note(&"a".repeat(253), "x"));
        assert!(event.len() < 253, "{event}");
    }
}
