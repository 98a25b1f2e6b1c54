//! A cluster that lives by itself: its pods, its operator, and the patience to
//! come back to a shard that went away.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{self, watch},
    task::JoinHandle,
    time::{MissedTickBehavior, interval, timeout},
};

use crate::{
    Error,
    cluster::Cluster,
    operator::{Operator, State},
};

/// How a member stood after its latest step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// Steps so far.
    pub steps: u64,
    /// Sessions so far.
    pub sessions: u64,
    /// Whether a session stands.
    pub connected: bool,
    /// Machines in its picture.
    pub machines: usize,
    /// Pods.
    pub live: usize,
    /// Pods that run nowhere.
    pub waiting: usize,
    /// Pods that lost their machine so far.
    pub evictions: u64,
    /// Every pod runs where it may.
    pub demand_met: bool,
}

/// A cluster with its operator, stepping at an interval. Without a session it
/// tries for one at every step; its pods live on meanwhile. Dropping it drops
/// its connection.
#[derive(Debug)]
pub struct Member {
    operator: Arc<sync::Mutex<Operator>>,
    cluster: Arc<Mutex<Cluster>>,
    standing: watch::Receiver<Standing>,
    living: JoinHandle<()>,
}

impl Member {
    /// Begins to live. Give an operator made with [`Operator::new`], its policies
    /// set; one that has connected already goes on with its session.
    #[must_use]
    pub fn start(operator: Operator, cluster: Cluster, every: Duration) -> Self {
        let operator = Arc::new(sync::Mutex::new(operator));
        let cluster = Arc::new(Mutex::new(cluster));
        let (sender, standing) = watch::channel(Standing::default());
        let living = tokio::spawn(live(operator.clone(), cluster.clone(), sender, every));
        Self { operator, cluster, standing, living }
    }

    /// The operator, to stall, abort or send elsewhere; no step happens while it
    /// is held.
    pub async fn operator(&self) -> sync::MutexGuard<'_, Operator> {
        self.operator.lock().await
    }

    /// The cluster, to scale or disturb.
    pub fn cluster(&self) -> MutexGuard<'_, Cluster> {
        locked(&self.cluster)
    }

    /// How it stood after its latest step.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.standing.borrow().clone()
    }

    /// Waits until the condition holds after a step; `wanted` says what for,
    /// should it not come.
    pub async fn wait_for(
        &self,
        wanted: &'static str,
        mut condition: impl FnMut(&Standing) -> bool,
        within: Duration,
    ) -> Result<(), Error> {
        let mut standing = self.standing.clone();
        let held = timeout(within, standing.wait_for(|standing| condition(standing))).await;
        if matches!(held, Ok(Ok(_))) {
            return Ok(());
        }
        Err(Error::Late { waited: within, wanted, seen: format!("{:?}", self.standing()) })
    }

    /// Stops living, with the connection dropped, and leaves the pods as they
    /// are.
    #[must_use]
    pub fn stop(self) -> Cluster {
        self.living.abort();
        self.cluster().clone()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.living.abort();
    }
}

/// A step that panicked would have left the pods as they were bound.
fn locked(cluster: &Mutex<Cluster>) -> MutexGuard<'_, Cluster> {
    cluster.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn live(
    operator: Arc<sync::Mutex<Operator>>,
    cluster: Arc<Mutex<Cluster>>,
    standing: watch::Sender<Standing>,
    every: Duration,
) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for steps in 1.. {
        ticks.tick().await;
        let mut operator = operator.lock().await;
        let stands = |state: &State| state.session > 0 && state.ended.is_none();
        if !operator.read(stands)
            && let Err(status) = operator.reconnect().await
        {
            tracing::debug!(%status, "no session yet");
        }
        let now = operator.next_timestamp();
        let (roll_up, after) = operator.read(|state| {
            let mut cluster = locked(&cluster);
            let roll_up = cluster.step(now, &state.picture);
            let after = Standing {
                steps,
                sessions: state.session,
                connected: stands(state),
                machines: state.picture.machines.len(),
                live: cluster.live(),
                waiting: cluster.waiting(),
                evictions: cluster.evictions(),
                demand_met: cluster.demand_met(&state.picture),
            };
            (roll_up, after)
        });
        // A session that ended meanwhile is the next step's affair.
        let _ = operator.send_roll_up(roll_up);
        standing.send_replace(after);
    }
}
