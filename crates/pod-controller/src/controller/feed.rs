//! From changes in the cluster to pods that must be looked at.

use std::sync::{Arc, Mutex};

use bigfleet_in_cluster::{Change, ObjectKey, store::Feed};

use super::{
    lock,
    mentions::{Mention, Mentions},
    queue::Queue,
    strays::Strays,
    world::{Claim, Group, Volume, World},
};
use crate::{existing::Existing, pod::Pod};

/// What is derived from the caches, kept up to date with them.
#[derive(Debug, Default)]
pub(crate) struct Index {
    mentions: Mutex<Mentions>,
    strays: Mutex<Strays>,
}

impl Index {
    /// Names of the requests that bear the pod's label under another name than its own.
    #[must_use]
    pub(crate) fn strays(&self, pod: &Pod) -> Vec<Box<str>> {
        lock(&self.strays).of(&pod.namespace, &pod.uid).map(Into::into).collect()
    }
}

/// The changes of all caches.
#[derive(Debug)]
pub(crate) struct Changes {
    pods: Feed<Pod>,
    requests: Feed<Existing>,
    unmanaged: Feed<()>,
    claims: Feed<Claim>,
    volumes: Feed<Volume>,
    groups: Feed<Group>,
}

impl Changes {
    /// From what is known now on, which comes first.
    #[must_use]
    pub(crate) fn of(world: &World) -> Self {
        Self {
            pods: world.pods.changes(),
            requests: world.requests.changes(),
            unmanaged: world.unmanaged.changes(),
            claims: world.claims.changes(),
            volumes: world.volumes.changes(),
            groups: world.groups.store.changes(),
        }
    }

    /// Takes in what has already happened.
    pub(crate) fn catch_up(&mut self, index: &Index, queue: &Queue) {
        let follow = Follow { index, queue };
        while let Some(change) = self.pods.try_next() {
            each(change, &mut |change| follow.pod(change));
        }
        while let Some(change) = self.requests.try_next() {
            each(change, &mut |change| follow.request(change));
        }
    }

    /// Takes in what happens, for ever.
    pub(crate) async fn follow(mut self, index: Arc<Index>, queue: Arc<Queue>) {
        let follow = Follow { index: &index, queue: &queue };
        loop {
            tokio::select! {
                Some(change) = self.pods.next() => each(change, &mut |change| follow.pod(change)),
                Some(change) = self.requests.next() => {
                    each(change, &mut |change| follow.request(change));
                }
                Some(change) = self.unmanaged.next() => each(change, &mut |change| {
                    follow.mentioned(&Mention::Node(change.key.name));
                }),
                Some(change) = self.claims.next() => each(change, &mut |change| {
                    follow.mentioned(&Mention::Claim(change.key));
                }),
                Some(change) = self.volumes.next() => each(change, &mut |change| {
                    for volume in [change.before, change.after].into_iter().flatten() {
                        if let Some(claim) = &volume.claim {
                            follow.mentioned(&Mention::Claim(claim.clone()));
                        }
                    }
                }),
                Some(change) = self.groups.next() => each(change, &mut |change| {
                    follow.mentioned(&Mention::Group(change.key));
                }),
                else => return,
            }
        }
    }
}

/// One object's step.
struct One<P> {
    key: ObjectKey,
    before: Option<Arc<P>>,
    after: Option<Arc<P>>,
}

fn each<P>(change: Change<P>, see: &mut impl FnMut(One<P>)) {
    match change {
        Change::Put { key, before, after } => see(One { key, before, after: Some(after) }),
        Change::Gone { key, before } => see(One { key, before: Some(before), after: None }),
        Change::Swapped(changes) => changes.into_iter().for_each(|change| each(change, see)),
    }
}

struct Follow<'a> {
    index: &'a Index,
    queue: &'a Queue,
}

impl Follow<'_> {
    fn pod(&self, change: One<Pod>) {
        let (before, after) = (change.before.as_deref(), change.after.as_deref());
        lock(&self.index.mentions).update(&change.key, before, after);
        self.queue.add(change.key);
    }

    fn request(&self, change: One<Existing>) {
        let Some(namespace) = change.key.namespace else { return };
        let (before, after) = (change.before.as_deref(), change.after.as_deref());
        lock(&self.index.strays).update(&namespace, before, after);
        // Whoever lost its owner is found by the next resync.
        for pod in [before, after].into_iter().flatten().filter_map(|it| it.pod_name.as_ref()) {
            self.queue.add(ObjectKey { namespace: Some(namespace.clone()), name: pod.clone() });
        }
    }

    fn mentioned(&self, mention: &Mention) {
        for pod in lock(&self.index.mentions).pods(mention) {
            self.queue.add(pod.clone());
        }
    }
}
