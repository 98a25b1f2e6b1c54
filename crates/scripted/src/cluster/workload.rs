//! Equal pods, and where they run.

use std::sync::Arc;

use bigfleet_model::{Attributes, Group, Profile, Resources};

use super::shape::Shape;
use crate::operator::Picture;

/// One pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Where it runs.
    pub machine: Option<String>,
    /// Since when it has run nowhere; the time of a step.
    pub waiting_since: i64,
}

#[derive(Debug, Clone)]
pub(super) struct Workload {
    pub(super) profile: Arc<Profile>,
    pub(super) request: Resources,
    pub(super) group: Group,
    /// As deployed; churn stays around it.
    pub(super) size: usize,
    pub(super) pods: Vec<Pod>,
}

impl Workload {
    pub(super) fn new(name: &str, shape: &Shape, size: usize) -> Self {
        Self {
            profile: shape.profile(),
            request: shape.request().clone(),
            group: shape.group(name),
            size,
            pods: Vec::new(),
        }
    }

    /// Pods that run nowhere leave first.
    pub(super) fn scale(&mut self, pods: usize, now: i64) {
        self.pods.sort_by_key(|pod| pod.machine.is_none());
        self.pods.resize(pods, Pod { machine: None, waiting_since: now });
    }

    pub(super) fn is_gang(&self) -> bool {
        !self.group.is_empty()
    }

    /// The values that its machines must share; none for a machine that lacks
    /// one. Empty for a workload that is no gang.
    pub(super) fn domain<'a>(&self, attributes: &'a impl Attributes) -> Option<Vec<&'a str>> {
        self.profile.same().map(|same| attributes.attribute(&same.key)).collect()
    }

    /// Whether a machine with this much room left takes one more of its pods.
    pub(super) fn fits(&self, picture: &Picture, machine: &str, room: &Resources) -> bool {
        room.covers(&self.request)
            && picture
                .machines
                .get(machine)
                .is_some_and(|known| self.profile.matches(&known.frame.labels))
    }
}
