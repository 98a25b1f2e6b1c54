//! Events of the core API: what happened to an object, for those who look at it.

mod series;

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use tokio::sync::mpsc;

use bigfleet_net::shutdown::Shutdown;

use crate::{Lane, Paced, refusal};
use series::{Series, Write};

/// Notes that may wait to be written; more are dropped.
const QUEUE: usize = 1024;

/// Where events about objects of the whole cluster live.
const CLUSTER_NAMESPACE: &str = "default";

/// Whether somebody should look into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// For the record.
    Normal,
    /// Somebody should.
    Warning,
}

impl Kind {
    fn text(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Something to tell about an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// Whether somebody should look into it.
    pub kind: Kind,
    /// One word for machines, CamelCase.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// The object; see [`regarding`].
    pub regarding: ObjectReference,
}

/// A reference to an object, for a [`Note`].
#[must_use]
pub fn regarding<K: Resource<DynamicType = ()>>(object: &K) -> ObjectReference {
    ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        name: Some(object.name_any()),
        namespace: object.namespace(),
        uid: object.uid(),
        ..ObjectReference::default()
    }
}

/// A reference to a Deployment, our own for example, known by its name alone.
#[must_use]
pub fn deployment(namespace: &str, name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("apps/v1".into()),
        kind: Some("Deployment".into()),
        name: Some(name.into()),
        namespace: Some(namespace.into()),
        ..ObjectReference::default()
    }
}

/// Writes events in the background; never fails or delays its caller. Clones share one queue.
///
/// A note said before counts up the event that said it first. Writes have the lowest precedence
/// of the budget, and when too many wait the newest is dropped: an event is a help, not a record.
#[derive(Debug, Clone)]
pub struct Recorder {
    queue: mpsc::Sender<Note>,
}

impl Recorder {
    /// Starts to write. `component` names the program, `instance` this process.
    #[must_use]
    pub fn start(
        paced: Paced,
        component: impl Into<String>,
        instance: impl Into<String>,
        shutdown: Shutdown,
    ) -> Self {
        let (queue, notes) = mpsc::channel(QUEUE);
        let source = EventSource { component: Some(component.into()), host: None };
        let writer = Writer { paced, source, instance: instance.into(), series: Series::default() };
        tokio::spawn(async move {
            tokio::select! {
                () = shutdown.requested() => {}
                () = writer.run(notes) => {}
            }
        });
        Self { queue }
    }

    /// A recorder that forgets everything.
    #[must_use]
    pub fn silent() -> Self {
        Self { queue: mpsc::channel(1).0 }
    }

    /// Tells something; does not wait.
    pub fn note(&self, note: Note) {
        if let Err(mpsc::error::TrySendError::Full(note)) = self.queue.try_send(note) {
            tracing::debug!(reason = note.reason, "event dropped: too many wait to be written");
        }
    }

    /// [`Recorder::note`] of something for the record.
    pub fn normal(
        &self,
        regarding: ObjectReference,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) {
        let (reason, message) = (reason.into(), message.into());
        self.note(Note { kind: Kind::Normal, reason, message, regarding });
    }

    /// [`Recorder::note`] of something that somebody should look into.
    pub fn warning(
        &self,
        regarding: ObjectReference,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) {
        let (reason, message) = (reason.into(), message.into());
        self.note(Note { kind: Kind::Warning, reason, message, regarding });
    }
}

struct Writer {
    paced: Paced,
    source: EventSource,
    instance: String,
    series: Series,
}

impl Writer {
    async fn run(mut self, mut notes: mpsc::Receiver<Note>) {
        while let Some(note) = notes.recv().await {
            let now = jiff::Timestamp::now();
            let write = self.series.write(&note, &self.source, &self.instance, now);
            let answer = match write {
                Write::Count { name, patch } => match self.patch(&note, &name, &patch).await {
                    // Events live an hour; this one has gone.
                    Err(error) if refusal::code(&error) == Some(404) => {
                        self.series.forget(&note);
                        let write = self.series.write(&note, &self.source, &self.instance, now);
                        let Write::Create(event) = write else { continue };
                        self.create(&event).await
                    }
                    answer => answer,
                },
                Write::Create(event) => self.create(&event).await,
            };
            if let Err(error) = answer {
                self.series.forget(&note);
                tracing::debug!(reason = note.reason, %error, "event not written");
            }
        }
    }

    async fn create(&self, event: &Event) -> Result<(), kube::Error> {
        let namespace = event.metadata.namespace.as_deref().unwrap_or(CLUSTER_NAMESPACE);
        self.paced
            .call(Lane::PodStatus, |client| async move {
                let events = Api::<Event>::namespaced(client, namespace);
                events.create(&PostParams::default(), event).await.map(drop)
            })
            .await
    }

    async fn patch(
        &self,
        note: &Note,
        name: &str,
        patch: &serde_json::Value,
    ) -> Result<(), kube::Error> {
        let namespace = namespace_of(note);
        self.paced
            .call(Lane::PodStatus, |client| async move {
                let events = Api::<Event>::namespaced(client, namespace);
                events.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
            })
            .await
    }
}

fn namespace_of(note: &Note) -> &str {
    note.regarding.namespace.as_deref().unwrap_or(CLUSTER_NAMESPACE)
}
