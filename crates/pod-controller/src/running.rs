//! The controller in any cluster, real or in memory: caches, then the lease, then the work.

use std::{sync::Arc, time::Duration};

use bigfleet_in_cluster::{
    Error as ClusterError, Paced,
    events::Recorder,
    lease::{self, Elector},
    store::State,
};
use bigfleet_net::{readiness::Readiness, shutdown::Shutdown};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    controller::{Controller, Options, Scope, Turn, World},
    metrics::Metrics,
};

/// Name of the program, of its Lease and of its Deployment.
pub const NAME: &str = "bigfleet-unschedulable-pod-controller";

/// How long the initial lists may take: a hundred thousand pods come in pages, and a process
/// that gives up early only heats the API server.
const SYNC_CAP: Duration = Duration::from_secs(600);

/// What a controller needs.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Which parts of the cluster matter.
    pub scope: Scope,
    /// How it works.
    pub options: Options,
    /// Who it is in the Lease and in events.
    pub identity: String,
    /// Where its Lease is.
    pub namespace: String,
    /// Whether it waits for the Lease before it works. It keeps one either way: operators take
    /// a silent Lease, or none, for a controller that is down, and hold their roll-ups.
    pub leader_elect: bool,
}

/// Works until the stop is asked for, then in order to the end. Dropped, it stops as a crash
/// does.
///
/// # Errors
///
/// When the initial lists take too long.
pub async fn run(
    paced: Paced,
    setup: Setup,
    metrics: Arc<Metrics>,
    readiness: Readiness,
    stop: Shutdown,
) -> Result<(), ClusterError> {
    let world = World::new(setup.scope);
    let (watched, client, until) = (world.clone(), paced.client().clone(), stop.clone());
    let watching = spawn(async move { Box::pin(watched.run(&client, &until)).await });
    tokio::select! {
        () = stop.requested() => return Ok(()),
        synced = world.wait_synced(SYNC_CAP) => synced?,
    }
    let _ready = spawn(tell_readiness(world.clone(), readiness));
    let identity = setup.identity;
    tracing::info!(identity, pods = world.pods.len(), "caches are complete");
    let stop_events = Shutdown::new();
    let recorder = Recorder::start(paced.clone(), NAME, identity.as_str(), stop_events.clone());
    let elector = Elector::new(lease::Settings::new(NAME, setup.namespace, identity));
    // Given back only when nothing is written any more: the next one starts at once.
    let stop_lease = Shutdown::new();
    let (held, lent, until) = (elector.clone(), paced.clone(), stop_lease.clone());
    let holding = spawn(async move { held.run(lent, until).await });
    let turn = if setup.leader_elect { Turn::Elected } else { Turn::Always };
    Controller::new(paced, world, setup.options, recorder, metrics).run(&elector, turn, stop).await;
    stop_lease.request();
    // It ends by itself; a panic in it must not hold up the stop.
    drop(holding.await);
    stop_events.request();
    drop(watching);
    Ok(())
}

fn spawn(task: impl Future<Output = ()> + Send + 'static) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(task))
}

/// Ready as long as the CRD is there; a standby is ready too.
async fn tell_readiness(world: World, readiness: Readiness) {
    let mut state = State::Synced;
    loop {
        if state == State::Synced {
            readiness.set_ready();
        } else {
            readiness.set_not_ready("the CRD capacityrequests.bigfleet.lucy.sh is missing");
        }
        state = world.requests.wait_other_than(state).await;
    }
}
