//! A watch cache that keeps of each object only what its readers need.
//!
//! A half-read list must never be seen: an unsynced store reads as empty, and an empty roll-up
//! means "reclaim everything". So a list is built aside and swapped in when it is complete; a
//! list that fails, or a resource that is not there, leaves what was known and is an error.

mod follow;
mod key;
mod table;

use std::{
    fmt::Debug,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use bigfleet_net::shutdown::Shutdown;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};

pub use follow::Selection;
pub use key::ObjectKey;
pub use table::{Change, Items};

use crate::Error;
use key::KeyRef;
use table::Table;

/// Whether what a store shows can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No list has been complete yet.
    Unsynced,
    /// Follows the server, or did until it went away.
    Synced,
    /// The server does not know the resource: its CRD is absent. What was known before is kept.
    Missing,
}

#[derive(Debug, Clone)]
struct Standing {
    state: State,
    /// What went wrong last, until it goes right again.
    problem: Option<String>,
}

/// Projections of the objects of one resource. Clones share one state.
#[derive(Debug)]
pub struct Store<P> {
    shared: Arc<Shared<P>>,
}

#[derive(Debug)]
struct Shared<P> {
    /// The resource, for messages.
    what: String,
    table: RwLock<Table<P>>,
    standing: watch::Sender<Standing>,
}

impl<P> Clone for Store<P> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<P: PartialEq + Send + Sync + 'static> Store<P> {
    /// An empty store; `what` names the resource in messages, for example `capacityrequests`.
    #[must_use]
    pub fn new(what: impl Into<String>) -> Self {
        let standing = Standing { state: State::Unsynced, problem: None };
        Self {
            shared: Arc::new(Shared {
                what: what.into(),
                table: RwLock::default(),
                standing: watch::Sender::new(standing),
            }),
        }
    }

    /// Follows the server until the stop is asked for.
    ///
    /// Each object is reduced by `project` at once; an object without a projection is as good as
    /// absent. Run it once per store.
    pub async fn run<K>(
        &self,
        api: Api<K>,
        selection: Selection,
        project: impl FnMut(&K) -> Option<P> + Send,
        shutdown: Shutdown,
    ) where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        tokio::select! {
            () = shutdown.requested() => {}
            () = follow::follow(self, api, selection, project) => {}
        }
    }

    /// Whether what the store shows can be relied on.
    #[must_use]
    pub fn state(&self) -> State {
        self.shared.standing.borrow().state
    }

    /// What keeps the store from following the server, if anything does.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.shared.standing.borrow().problem.clone()
    }

    /// Returns when the first list is complete.
    pub async fn wait_synced(&self, cap: Duration) -> Result<(), Error> {
        let mut standing = self.shared.standing.subscribe();
        let synced = standing.wait_for(|standing| standing.state == State::Synced);
        if let Ok(Ok(_)) = tokio::time::timeout(cap, synced).await {
            return Ok(());
        }
        Err(Error::NotSynced {
            what: self.shared.what.clone(),
            waited: cap,
            problem: self.problem().unwrap_or_else(|| "the server is slow to answer".into()),
        })
    }

    /// Returns when [`Store::state`] is another than `known`.
    pub async fn wait_other_than(&self, known: State) -> State {
        let mut standing = self.shared.standing.subscribe();
        let other = standing.wait_for(|standing| standing.state != known).await;
        // The sender lives in this store.
        other.map_or(known, |standing| standing.state)
    }

    /// The projection of one object.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<P>> {
        self.with(|items| items.get(key).cloned())
    }

    /// The projection of an object by the words of its key; no namespace for one of the cluster.
    #[must_use]
    pub fn find(&self, namespace: Option<&str>, name: &str) -> Option<Arc<P>> {
        self.with(|items| items.get(&KeyRef { namespace, name }).cloned())
    }

    /// Reads everything at one moment. Nothing changes meanwhile, so be quick.
    pub fn with<T>(&self, read: impl FnOnce(&Items<P>) -> T) -> T {
        self.read(|table| read(&table.items))
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.with(Items::len)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every step from now on, in order and without loss. What is known already comes first, as
    /// one [`Change::Swapped`]. A feed that nobody reads grows: drop it instead.
    #[must_use]
    pub fn changes(&self) -> Feed<P> {
        let feed = self.write(|table| table.feed(self.state() != State::Unsynced));
        Feed { feed }
    }

    fn read<T>(&self, read: impl FnOnce(&Table<P>) -> T) -> T {
        read(&self.shared.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, write: impl FnOnce(&mut Table<P>) -> T) -> T {
        write(&mut self.shared.table.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn stand(&self, state: State, problem: Option<String>) {
        self.shared.standing.send_if_modified(|standing| {
            let differs = standing.state != state || standing.problem != problem;
            *standing = Standing { state, problem };
            differs
        });
    }
}

/// The steps of a store; see [`Store::changes`].
#[derive(Debug)]
pub struct Feed<P> {
    feed: mpsc::UnboundedReceiver<Change<P>>,
}

impl<P> Feed<P> {
    /// The next step; none when the store is gone.
    pub async fn next(&mut self) -> Option<Change<P>> {
        self.feed.recv().await
    }

    /// The next step, if there is one already.
    pub fn try_next(&mut self) -> Option<Change<P>> {
        self.feed.try_recv().ok()
    }
}
