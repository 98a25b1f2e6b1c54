//! The operator, put together. It takes a client and makes none, so that it runs as
//! well against a server in memory.

use std::{sync::Arc, time::Duration};

use bigfleet_crds::CapacityRequest;
use bigfleet_in_cluster::{
    Error as ClusterError, Paced, Store,
    events::{self, Recorder},
    lease::{Elector, Leadership, Settings as LeaseSettings},
    store::{Selection, State},
};
use bigfleet_net::{readiness::Readiness, shutdown::Shutdown, tls::Security};
use kube::Api;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{interval, sleep},
};

use crate::{
    ack::Pool,
    hold::{DemandSource, Lookout},
    metrics::Metrics,
    pod_status::{Needs, PodStatus},
    rollup::{Cycle, Parts as CycleParts, Projector, TEND_EVERY},
    session::{Lead, Parts, Render, Session, Settings},
    side::{Context, MakeSide, Side},
    status::StatusWriter,
};

/// Name of our Deployment and of our Lease.
pub const NAME: &str = "bigfleet-operator";

/// How long the first lists may take.
const SYNC_CAP: Duration = Duration::from_secs(600);

/// How an operator behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose demand it reports.
    pub cluster_id: String,
    /// The shard.
    pub shard_addr: String,
    /// Our certificate and whom we believe.
    pub security: Security,
    /// Between two roll-ups.
    pub rollup_interval: Duration,
    /// Acknowledgements at once.
    pub ack_concurrency: usize,
    /// Who writes requests.
    pub demand_source: DemandSource,
    /// Whether pods are told.
    pub pod_status: bool,
    /// Whether only the holder of the lease acts.
    pub leader_elect: bool,
    /// Where we run.
    pub namespace: String,
    /// Who we are among replicas.
    pub identity: String,
}

/// What an operator is made of.
pub struct Setup {
    /// How it behaves.
    pub options: Options,
    /// The API server.
    pub paced: Paced,
    /// Who makes bootstrap blobs.
    pub render: Arc<dyn Render>,
    /// Makes nodes and hints.
    pub side: MakeSide,
    /// Where it counts.
    pub metrics: Arc<Metrics>,
    /// Whether it is ready.
    pub readiness: Readiness,
}

/// An operator at work.
#[derive(Debug)]
pub struct Running {
    /// Ends with the process, never before.
    tasks: JoinSet<Result<(), Error>>,
    /// What a leader does.
    stop: Shutdown,
    /// The lease, given back when the leader's work has ended.
    elections: JoinSet<()>,
    resign: Shutdown,
    pool: Arc<Pool>,
    cycle: Arc<Cycle>,
    lead: Lead,
    pod_status: Arc<PodStatus>,
}

/// Why an operator ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A first list was not complete in time.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A task that must never end did.
    #[error("a task ended that must not: {0}; the process ends so that it is restarted")]
    TaskEnded(String),
}

/// Starts all parts.
#[must_use]
pub fn start(setup: Setup) -> Running {
    let Setup { options, paced, render, side, metrics, readiness } = setup;
    let (stop, resign) = (Shutdown::new(), Shutdown::new());
    let mut elections = JoinSet::new();
    let lead = lead(&options, &paced, &resign, &mut elections);
    let events = Recorder::start(paced.clone(), NAME, options.identity.clone(), stop.clone());
    let ourselves = events::deployment(&options.namespace, NAME);
    let store = Store::new("capacityrequests");
    let projector = Arc::new(Projector::default());
    let writer = Arc::new(StatusWriter::new(paced.clone(), store.clone(), projector.clone()));
    let pool = Arc::new(Pool::new(writer.clone(), metrics.clone(), events.clone()));
    let lookout =
        Arc::new(Lookout::new(paced.clone(), options.namespace.clone(), options.demand_source));
    let needs = Arc::new(Needs::default());
    let parts = CycleParts {
        store: store.clone(),
        lookout: lookout.clone(),
        metrics: metrics.clone(),
        events: events.clone(),
        ourselves: ourselves.clone(),
        needs: needs.clone(),
    };
    let cycle = Arc::new(Cycle::new(&options.cluster_id, parts));
    let pod_status = Arc::new(PodStatus::new(
        paced.clone(),
        needs.clone(),
        writer.clone(),
        events.clone(),
        metrics.clone(),
        options.pod_status,
    ));
    let side = side(Context {
        cluster_id: options.cluster_id.clone(),
        paced: paced.clone(),
        metrics: metrics.clone(),
        events: events.clone(),
        ourselves: ourselves.clone(),
        pod_status: pod_status.clone(),
        demanded: cycle.demanded(),
        lead: lead.clone(),
    });
    let session = Session::new(Parts {
        settings: Settings {
            cluster_id: options.cluster_id.clone(),
            shard_addr: options.shard_addr.clone(),
            security: options.security.clone(),
            interval: options.rollup_interval,
        },
        lead: lead.clone(),
        cycle: cycle.clone(),
        pool: pool.clone(),
        needs,
        render,
        downstream: side.clone(),
        metrics: metrics.clone(),
        events,
        ourselves,
    });

    let mut tasks = JoinSet::new();
    let (until, requests) = (stop.clone(), store.clone());
    let api = Api::<CapacityRequest>::all(paced.client().clone());
    tasks.spawn(async move {
        let project = move |object: &CapacityRequest| Some(projector.project(object));
        requests.run(api, Selection::all(), project, until).await;
        Ok(())
    });
    let (until, following) = (stop.clone(), cycle.clone());
    tasks.spawn(async move {
        following.follow(until).await;
        Ok(())
    });
    let (until, looking) = (stop.clone(), cycle.clone());
    tasks.spawn(async move {
        lookout.run(move || looking.departures(), until).await;
        Ok(())
    });
    let (until, working) = (stop.clone(), pool.clone());
    tasks.spawn(async move {
        working.run(options.ack_concurrency, until).await;
        Ok(())
    });
    let (until, told, telling) = (stop.clone(), lead.clone(), pod_status.clone());
    tasks.spawn(async move {
        telling.run(told, until).await;
        Ok(())
    });
    let leading = lead.clone();
    let tending = Tending { cycle: cycle.clone(), pool: pool.clone(), writer, lead, metrics };
    tasks.spawn(tending.run(stop.clone()));
    let beside = side.clone();
    let until = stop.clone();
    tasks.spawn(async move {
        beside.run(until).await;
        Ok(())
    });
    tasks.spawn(ready(readiness, store.clone(), side.clone(), stop.clone()));
    let until = stop.clone();
    tasks.spawn(async move {
        // An unsynced store reads as empty, and an empty roll-up means "reclaim everything".
        let synced = async {
            store.wait_synced(SYNC_CAP).await?;
            side.synced(SYNC_CAP).await
        };
        tokio::select! {
            () = until.requested() => return Ok(()),
            synced = synced => synced?,
        }
        session.run(until).await;
        Ok(())
    });
    Running { tasks, stop, elections, resign, pool, cycle, lead: leading, pod_status }
}

fn lead(options: &Options, paced: &Paced, resign: &Shutdown, elections: &mut JoinSet<()>) -> Lead {
    if !options.leader_elect {
        let (leading, told) = watch::channel(Leadership::Leading);
        let until = resign.clone();
        elections.spawn(async move {
            until.requested().await;
            drop(leading);
        });
        return Lead::told(told);
    }
    let settings = LeaseSettings::new(NAME, &options.namespace, &options.identity);
    let elector = Elector::new(settings);
    let lead = Lead::elected(&elector);
    let (paced, until) = (paced.clone(), resign.clone());
    elections.spawn(async move { elector.run(paced, until).await });
    lead
}

/// Looks after requests that are not understood, and counts.
struct Tending {
    cycle: Arc<Cycle>,
    pool: Arc<Pool>,
    writer: Arc<StatusWriter>,
    lead: Lead,
    metrics: Arc<Metrics>,
}

impl Tending {
    async fn run(self, shutdown: Shutdown) -> Result<(), Error> {
        let mut ticks = interval(TEND_EVERY);
        loop {
            tokio::select! {
                () = shutdown.requested() => return Ok(()),
                _ = ticks.tick() => {}
            }
            let leading = self.lead.is_leading();
            self.metrics.leader.set(i64::from(leading));
            if leading {
                self.cycle.tend(&self.pool, &self.writer);
            } else if self.lead.is_standby() {
                self.cycle.stand_by();
            }
        }
    }
}

/// Ready is: every cache is filled. Neither the shard nor the lease matters.
async fn ready(
    readiness: Readiness,
    store: Store<crate::rollup::Request>,
    side: Arc<dyn Side>,
    shutdown: Shutdown,
) -> Result<(), Error> {
    const LOOK_EVERY: Duration = Duration::from_millis(250);
    loop {
        let unready = match store.state() {
            State::Synced => side.unready(),
            State::Unsynced => Some("capacityrequests have not been listed yet".to_owned()),
            State::Missing => Some("the CRD of capacityrequests is missing".to_owned()),
        };
        match unready {
            None => readiness.set_ready(),
            Some(reason) => readiness.set_not_ready(reason),
        }
        tokio::select! {
            () = shutdown.requested() => return Ok(()),
            () = sleep(LOOK_EVERY) => {}
        }
    }
}

impl Running {
    /// Who stamps what was accepted.
    #[must_use]
    pub const fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Where demand comes from.
    #[must_use]
    pub const fn cycle(&self) -> &Arc<Cycle> {
        &self.cycle
    }

    /// Who tells waiting pods.
    #[must_use]
    pub const fn pod_status(&self) -> &Arc<PodStatus> {
        &self.pod_status
    }

    /// Whether this process leads.
    #[must_use]
    pub const fn lead(&self) -> &Lead {
        &self.lead
    }

    /// Returns when a part dies, and why.
    pub async fn ended(&mut self) -> Error {
        match self.tasks.join_next().await {
            Some(Ok(Err(error))) => error,
            Some(Err(error)) => Error::TaskEnded(error.to_string()),
            Some(Ok(Ok(()))) | None => Error::TaskEnded("it returned".to_owned()),
        }
    }

    /// Stops in order: the leader's work first, then the lease is given back.
    pub async fn stop(mut self) {
        self.stop.request();
        while self.tasks.join_next().await.is_some() {}
        self.resign.request();
        while self.elections.join_next().await.is_some() {}
    }
}
