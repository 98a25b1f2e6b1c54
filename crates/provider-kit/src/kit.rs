//! A running provider, without its network.

use std::{collections::BTreeSet, sync::Arc};

use bigfleet_net::readiness::Readiness;
use prometheus_client::registry::Registry;
use tokio::sync::{Notify, mpsc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Error,
    book::{Book, Books, Health, Writer},
    calls::Calls,
    clock::Clock,
    cloud::{Caps, Cloud},
    config::Config,
    handle::Handle,
    inflight::InflightCap,
    metrics::Metrics,
    random::OperationIds,
    record::Classes,
    service::Service,
    shape::ShapeCheck,
    store::{State, Store, StoreError},
    sweeper::{self, Sweeper},
    tracker::Tracker,
};

/// One provider: its book, its tasks, its service.
pub struct Kit {
    service: Service,
    book: Arc<Book>,
    health: Arc<Health>,
    metrics: Metrics,
    handle: Handle,
    /// Ends the tasks of machines, the sweeper and the listener.
    stopping: CancellationToken,
    tasks: TaskTracker,
    /// Ends the writer, when nobody has anything to write any more.
    stop_writer: CancellationToken,
    writer: TaskTracker,
}

impl Kit {
    /// Loads or seeds the store, resumes what a restart interrupted, and sweeps. The
    /// provider is ready when this returns.
    pub async fn start<C: Cloud>(
        cloud: C,
        store: Arc<dyn Store>,
        config: Config,
        readiness: Readiness,
    ) -> Result<Self, Error> {
        let (cloud, config) = (Arc::new(cloud), Arc::new(config));
        let (caps, clock, metrics) = (cloud.caps(), Clock::new(), Metrics::default());
        gate(caps, &config, &metrics)?;
        let (handle, events) = Handle::new();
        cloud.attach(handle.clone());
        let loaded = load(&store).await?;
        let fresh = loaded.records.is_empty();
        let state = if fresh {
            let shape = ShapeCheck::new(&*config.provider);
            let limit = config.describe_timeout;
            sweeper::seed(&*cloud, &store, &shape, limit, clock.now(), loaded).await?
        } else {
            loaded
        };
        let (book, changes) = Book::new(Books::load(state, config.fence));
        let health = Arc::new(Health::new(readiness));
        let (works, accepted) = mpsc::unbounded_channel();
        let stop_writer = CancellationToken::new();
        let writer = TaskTracker::new();
        let writing = Writer {
            store,
            book: book.clone(),
            changes,
            works,
            timeouts: config.timeouts,
            metrics: metrics.clone(),
            health: health.clone(),
            suspects: BTreeSet::new(),
            failing: false,
            promoted: Vec::new(),
        };
        writer.spawn(writing.run(stop_writer.clone()));
        let tracker = Arc::new(Tracker {
            cloud,
            caps,
            book: book.clone(),
            config: config.clone(),
            ids: Arc::new(OperationIds::new()),
            clock,
            metrics: metrics.clone(),
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        let inflight = InflightCap::new(config.max_inflight, metrics.inflight.clone());
        tracker.resume(&inflight).await;
        let mut sweeper = Sweeper::new(tracker.clone());
        if !fresh {
            sweeper.sweep().await;
        }
        let asked = Arc::new(Notify::new());
        tracker.tasks.spawn(sweeper::listen(tracker.clone(), events, asked.clone()));
        tracker.tasks.spawn(sweeper.run(asked));
        tracker.tasks.spawn(tracker.clone().run(accepted));
        let calls = Calls {
            book: book.clone(),
            ids: tracker.ids.clone(),
            clock,
            inflight,
            metrics: metrics.clone(),
            health: health.clone(),
        };
        health.well();
        Ok(Self {
            service: Service::new(calls, config, caps),
            book,
            health,
            metrics,
            handle,
            stopping: tracker.stopping.clone(),
            tasks: tracker.tasks.clone(),
            stop_writer,
            writer,
        })
    }

    /// The six calls, for a gRPC server.
    #[must_use]
    pub fn service(&self) -> Service {
        self.service.clone()
    }

    /// What the cloud was given.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Adds `bigfleet_provider_…` to a registry without a prefix.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.metrics.register(registry, &self.book);
    }

    /// Not ready any more, and no mutation is accepted: the first step of a stop.
    pub fn refuse(&self) {
        self.health.stop();
    }

    /// Ends all tasks, leaves what they did to the next start, and closes the store.
    pub async fn stop(self) {
        self.refuse();
        self.stopping.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.stop_writer.cancel();
        self.writer.close();
        self.writer.wait().await;
    }
}

impl Drop for Kit {
    /// A kit that is dropped instead of stopped leaves no task behind.
    fn drop(&mut self) {
        self.stopping.cancel();
        self.stop_writer.cancel();
    }
}

impl std::fmt::Debug for Kit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kit").finish_non_exhaustive()
    }
}

/// CONFIGURED without having seen the node is the operator's to accept.
fn gate(caps: Caps, config: &Config, metrics: &Metrics) -> Result<(), Error> {
    match (caps.observes_ready, config.allow_ungated_configure) {
        (true, _) => metrics.readiness_gate("observed"),
        (false, true) => {
            tracing::warn!("CONFIGURED is not gated by readiness: --allow-ungated-configure");
            metrics.readiness_gate("ungated");
        }
        (false, false) => return Err(Error::Ungated),
    }
    Ok(())
}

async fn load(store: &Arc<dyn Store>) -> Result<State, Error> {
    let store = store.clone();
    let loaded = tokio::task::spawn_blocking(move || store.load()).await;
    let mut state = loaded.map_err(|error| StoreError::Other(error.to_string()))??;
    let mut classes = Classes::default();
    for record in &mut state.records {
        classes.share(&mut record.machine);
    }
    Ok(state)
}
