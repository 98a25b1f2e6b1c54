//! What is kept of a CapacityRequest.

use std::sync::Arc;

use bigfleet_crds::{CapacityRequest, CapacityRequestPhase, conditions, keys};
use bigfleet_net::labels;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::{
    condition::Condition,
    intern::Interner,
    skipped::Untranslatable,
    translate::{Demand, Translator},
    uid::Uid,
};

labels! {
    /// Whether the shard has accepted a request.
    Phase {
        /// Not yet; an empty phase counts so.
        Pending = "Pending",
        /// Once, and for good.
        Acknowledged = "Acknowledged",
    }
}

/// One request, translated and stripped of the rest: a quarter of a million of them
/// are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which object of that name it is.
    pub uid: Uid,
    /// Its `resourceVersion`; 0 if it is no number.
    pub version: u64,
    /// Counts edits of the spec.
    pub generation: i64,
    /// How far it is.
    pub phase: Phase,
    /// Of a DaemonSet's pod.
    pub daemonset: bool,
    /// The pod that owns it.
    pub pod: Option<Uid>,
    /// All of them, for a patch replaces the list.
    pub conditions: Box<[Condition]>,
    /// What it asks for, or why nobody knows.
    pub demand: Result<Demand, Arc<Untranslatable>>,
}

/// Makes requests of objects; equal parts are shared.
#[derive(Debug, Default)]
pub struct Projector {
    translator: Translator,
    texts: Interner<str>,
}

impl Projector {
    /// What is kept of this object.
    #[must_use]
    pub fn project(&self, object: &CapacityRequest) -> Request {
        let metadata = &object.metadata;
        let text = |text: &Option<String>| text.as_deref().unwrap_or_default().to_owned();
        let label = |key| metadata.labels.as_ref().and_then(|labels| labels.get(key));
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let status = object.status.as_ref();
        Request {
            uid: Uid::of(&text(&metadata.uid)),
            version: text(&metadata.resource_version).parse().unwrap_or(0),
            generation: metadata.generation.unwrap_or(0),
            phase: match object.phase() {
                CapacityRequestPhase::Pending => Phase::Pending,
                CapacityRequestPhase::Acknowledged => Phase::Acknowledged,
            },
            daemonset: label(keys::DAEMONSET).is_some_and(|value| value == "true"),
            pod: owner(metadata.owner_references.as_deref().unwrap_or_default())
                .or_else(|| label(keys::OWNED_BY_POD).map(|uid| Uid::of(uid))),
            conditions: status
                .iter()
                .flat_map(|status| &status.conditions)
                .map(|condition| Condition::of(condition, &self.texts))
                .collect(),
            demand: self.translator.translate(namespace, &object.spec).map_err(Arc::new),
        }
    }

    /// Shared texts, for conditions of our own.
    #[must_use]
    pub const fn texts(&self) -> &Interner<str> {
        &self.texts
    }
}

fn owner(owners: &[OwnerReference]) -> Option<Uid> {
    owners.iter().find(|owner| owner.kind == "Pod").map(|owner| Uid::of(&owner.uid))
}

impl Request {
    /// A condition of this type.
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| &*condition.kind == kind)
    }

    /// Whether it says that the fleet does not cover it.
    #[must_use]
    pub fn denies(&self) -> bool {
        self.condition(conditions::SATISFIED).is_some_and(|told| !told.is_true())
    }

    /// Whether it counts for the same in a roll-up.
    pub(super) fn counts_as(&self, other: &Self) -> bool {
        let same_demand = match (&self.demand, &other.demand) {
            (Ok(mine), Ok(theirs)) => mine.is_same(theirs),
            (Err(_), Err(_)) => true,
            _ => false,
        };
        same_demand && self.daemonset == other.daemonset
    }
}
