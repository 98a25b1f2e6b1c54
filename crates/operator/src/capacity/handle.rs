use std::collections::HashSet;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bigfleet_crds::AvailableCapacity;
use bigfleet_in_cluster::{Change, Lane, Paced, Store, refusal};
use bigfleet_net::shutdown::Shutdown;
use bigfleet_wire::v1alpha1::AvailableCapacityUpdate;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::Value;

use super::CapacityView;
use super::ledger::{Key, Ledger, Step};
use crate::dispatch::{Clock, Progress, Pump, Slots, Verdict, Work, found, until_settled};

/// How often stale hints are looked for.
const SWEEP: Duration = Duration::from_secs(5);

/// What hints need.
pub struct Config {
    /// The way to the API server.
    pub paced: Paced,
    /// The cache of AvailableCapacities, of [`CapacityView::of`].
    pub store: Store<CapacityView>,
    /// The handler slots, shared with [`Nodes`](crate::nodes::Nodes).
    pub slots: Slots,
    /// The clocks.
    pub clock: Clock,
}

/// The hints of this cluster. Clones share one state; nothing here waits.
#[derive(Clone)]
pub struct Capacity {
    shared: Arc<Shared>,
}

struct Shared {
    config: Config,
    ledger: Mutex<Ledger>,
    pump: Pump<Key>,
}

impl Capacity {
    /// Nothing is done before [`run`](Self::run).
    #[must_use]
    pub fn new(config: Config) -> Self {
        let pump = Pump::new(config.slots.clone(), config.clock);
        Self { shared: Arc::new(Shared { config, ledger: Mutex::default(), pump }) }
    }

    /// A frame was received.
    pub fn frame(&self, frame: &AvailableCapacityUpdate) {
        let key = self.shared.enter(|ledger| ledger.frame(frame));
        if let Some(key) = key {
            self.shared.pump.mark(key, false);
        }
    }

    /// The profile fingerprints in the roll-up that was just built.
    pub fn demanded(&self, fingerprints: HashSet<Arc<str>>) {
        self.shared.enter(|ledger| ledger.demanded(fingerprints));
    }

    /// A session began: its shard will send every hint again.
    pub fn session_began(&self) {
        let now = self.shared.config.clock.now();
        self.shared.enter(|ledger| ledger.session_began(now));
    }

    /// The session ended.
    pub fn session_ended(&self) {
        self.shared.enter(Ledger::session_ended);
    }

    /// Whether nothing waits and nobody works.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.shared.pump.is_idle()
    }

    /// Does what follows from what is received, until told to stop: while this process holds the
    /// lease. The cache is to be synced; what it holds is read when this is called.
    pub fn run(&self, shutdown: Shutdown) -> impl Future<Output = ()> + Send + use<> {
        let shared = self.shared.clone();
        shared.enter(Ledger::reset);
        let mut feed = shared.config.store.changes();
        while let Some(change) = feed.try_next() {
            shared.enter(|ledger| changed(ledger, change));
        }
        async move {
            let follow = async {
                while let Some(change) = feed.next().await {
                    shared.enter(|ledger| changed(ledger, change));
                }
                std::future::pending().await
            };
            let worker = Arc::new(Worker { shared: shared.clone() });
            tokio::select! {
                // Ends with the shutdown, after the last of its workers.
                () = shared.pump.run(worker, shutdown.token()) => {}
                () = follow => {}
                () = shared.sweep() => {}
            }
        }
    }
}

fn changed(ledger: &mut Ledger, change: Change<CapacityView>) {
    match change {
        Change::Put { after, .. } => ledger.shown(after),
        Change::Gone { before, .. } => ledger.vanished(&before),
        Change::Swapped(changes) => {
            changes.into_iter().for_each(|change| changed(ledger, change));
            ledger.relisted();
        }
    }
}

impl Shared {
    fn enter<T>(&self, enter: impl FnOnce(&mut Ledger) -> T) -> T {
        enter(&mut self.ledger.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn sweep(&self) {
        let clock = self.config.clock;
        loop {
            let now = clock.now();
            for key in self.enter(|ledger| ledger.drop_stale(now)) {
                self.pump.mark(key, false);
            }
            clock.sleep_until(now + SWEEP).await;
        }
    }
}

struct Worker {
    shared: Arc<Shared>,
}

impl Work<Key> for Worker {
    async fn work(&self, key: Key) -> Verdict {
        let clock = self.shared.config.clock;
        until_settled(clock, &key, || async {
            match self.shared.enter(|ledger| ledger.plan(&key)) {
                Step::Done => return Ok(Progress::Settled),
                Step::Create(object) => self.create(&key, &object).await?,
                Step::Patch(patch) => self.patch(&key, &patch).await?,
                Step::Delete => self.delete(&key).await?,
            }
            Ok(Progress::More)
        })
        .await
    }
}

impl Worker {
    async fn create(&self, key: &Key, object: &AvailableCapacity) -> Result<(), kube::Error> {
        let call = |client| async move {
            let api: Api<AvailableCapacity> = Api::all(client);
            match api.create(&PostParams::default(), object).await {
                Err(error) if refusal::code(&error) == Some(409) => api.get(key).await,
                created => created,
            }
        };
        self.wrote(&self.shared.config.paced.call(Lane::NodeState, call).await?);
        Ok(())
    }

    async fn patch(&self, key: &Key, patch: &Value) -> Result<(), kube::Error> {
        let call = |client| async move {
            let api: Api<AvailableCapacity> = Api::all(client);
            api.patch(key, &PatchParams::default(), &Patch::Merge(patch)).await
        };
        match found(self.shared.config.paced.call(Lane::NodeState, call).await)? {
            Some(object) => self.wrote(&object),
            None => self.shared.enter(|ledger| ledger.missing(key)),
        }
        Ok(())
    }

    async fn delete(&self, key: &Key) -> Result<(), kube::Error> {
        let call = |client| async move {
            Api::<AvailableCapacity>::all(client).delete(key, &DeleteParams::default()).await
        };
        found(self.shared.config.paced.call(Lane::NodeState, call).await)?;
        self.shared.enter(|ledger| ledger.deleted(key));
        Ok(())
    }

    fn wrote(&self, object: &AvailableCapacity) {
        if let Some(object) = CapacityView::of(object) {
            self.shared.enter(|ledger| ledger.wrote(object.into()));
        }
    }
}
