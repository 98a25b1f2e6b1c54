//! The inventory and its hooks, as the kit sees them.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bigfleet_provider_kit::{
    Caps, Cloud, CloudError, Handle, Host, Machine, Offer, Op, OperationId, Ready,
};
use prometheus_client::registry::Registry;
use tokio::{task::JoinHandle, time::Instant};

use crate::{
    hooks::{Errand, Hook, Hooks, Ran},
    inventory::Inventory,
    shelf::{Shelf, Stamp},
    spool::{Spool, SpoolError},
};

/// A drain hook whose grace is over takes the node by force; this is its time for that.
const BY_FORCE: Duration = Duration::from_secs(30);

/// The file of an inventory, and its stamp from before it was read.
type Source = (PathBuf, Stamp);

/// What the flags came to; nothing is touched yet.
#[derive(Debug)]
pub struct Prepared {
    inventory: Inventory,
    real: Option<(Source, PathBuf)>,
    observes_ready: bool,
}

/// Machines of an inventory.
#[derive(Debug)]
pub struct StaticCloud {
    shelf: Arc<Shelf>,
    /// None simulates: every hook succeeds at once.
    hooks: Option<Hooks>,
    source: Option<Source>,
    observes_ready: bool,
    watch: Mutex<Option<JoinHandle<()>>>,
    /// When the drains under way began: a retry does not renew the grace.
    drains: Mutex<HashMap<OperationId, Drain>>,
}

#[derive(Clone, Copy, Debug)]
struct Drain {
    begun: Instant,
    deadline: Instant,
}

impl Prepared {
    /// Takes the spool.
    pub fn open(self) -> Result<StaticCloud, SpoolError> {
        let (hooks, source) = match self.real {
            Some((source, spool)) => (Some(Hooks { spool: Spool::open(&spool)? }), Some(source)),
            None => (None, None),
        };
        Ok(StaticCloud {
            shelf: Arc::new(Shelf::new(self.inventory)),
            hooks,
            source,
            observes_ready: self.observes_ready,
            watch: Mutex::default(),
            drains: Mutex::default(),
        })
    }
}

impl StaticCloud {
    pub(crate) fn simulated(inventory: Inventory) -> Prepared {
        Prepared { inventory, real: None, observes_ready: true }
    }

    pub(crate) fn real(
        inventory: Inventory,
        source: Source,
        spool: PathBuf,
        observes_ready: bool,
    ) -> Prepared {
        Prepared { inventory, real: Some((source, spool)), observes_ready }
    }

    fn errand<'a>(&self, kind: &'static str, op: &'a Op, machine: &'a Machine) -> Errand<'a> {
        Errand { op, kind, machine, inventory: self.shelf.current(), grace: None }
    }

    /// How much of the grace is left to this attempt.
    fn grace_left(&self, op: &Op, grace: Duration) -> Duration {
        let now = Instant::now();
        let mut drains = self.drains.lock().unwrap_or_else(PoisonError::into_inner);
        drains.retain(|_, drain| drain.deadline > now);
        let fresh = Drain { begun: now, deadline: op.deadline };
        let begun = drains.entry(op.id.clone()).or_insert(fresh).begun;
        grace.saturating_sub(now - begun)
    }
}

impl Drop for StaticCloud {
    fn drop(&mut self) {
        if let Some(watch) = self.watch.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            watch.abort();
        }
    }
}

impl Cloud for StaticCloud {
    fn caps(&self) -> Caps {
        let observes_ready = self.observes_ready;
        Caps { destroy: false, fixed: true, resumable: true, observes_ready }
    }

    fn attach(&self, handle: Handle) {
        let Some((file, seen)) = self.source.clone() else { return };
        let watch = tokio::spawn(self.shelf.clone().follow(file, seen, handle));
        *self.watch.lock().unwrap_or_else(PoisonError::into_inner) = Some(watch);
    }

    fn register_metrics(&self, registry: &mut Registry) {
        self.shelf.register_metrics(registry);
    }

    async fn describe(&self) -> Result<Vec<Offer>, CloudError> {
        Ok(self.shelf.current().machines.values().map(|entry| entry.offer.clone()).collect())
    }

    /// Owned machines are always there; this only switches one on.
    async fn create(&self, op: &Op, machine: &Machine) -> Result<Host, CloudError> {
        let errand = self.errand("create", op, machine);
        if let Some(hooks) = &self.hooks {
            hooks.run_if_any(Hook::PowerOn, &errand).await.or_error()?;
        }
        let entry = errand.inventory.entry(&machine.id);
        let host = entry.and_then(|entry| entry.offer.host.clone());
        let unknown = || CloudError::Fatal("the inventory does not know it any more".to_owned());
        host.map(Host::new).ok_or_else(unknown)
    }

    async fn bootstrap(
        &self,
        op: &Op,
        machine: &Machine,
        _: &str,
        blob: &[u8],
    ) -> Result<(), CloudError> {
        let Some(hooks) = &self.hooks else { return Ok(()) };
        let errand = self.errand("configure", op, machine);
        hooks.run_if_any(Hook::PowerOn, &errand).await.or_error()?;
        let limit = errand.inventory.hook_timeout;
        hooks.run(Hook::Install, &errand, limit, Some(blob)).await.or_error()
    }

    async fn ready(&self, op: &Op, machine: &Machine, _: &str) -> Result<Ready, CloudError> {
        let Some(hooks) = &self.hooks else { return Ok(Ready::Yes) };
        if !self.observes_ready {
            return Ok(Ready::Unobservable);
        }
        let errand = self.errand("configure", op, machine);
        let limit = errand.inventory.hook_timeout;
        match hooks.run(Hook::Status, &errand, limit, None).await {
            Ran::Done => Ok(Ready::Yes),
            Ran::Again(_) => Ok(Ready::NotYet),
            Ran::Overran(problem) => Err(CloudError::Retry(problem)),
            Ran::Failed(problem) => Err(CloudError::Fatal(problem)),
        }
    }

    async fn drain(&self, op: &Op, machine: &Machine, grace: Duration) -> Result<(), CloudError> {
        let Some(hooks) = &self.hooks else { return Ok(()) };
        let left = self.grace_left(op, grace);
        let errand = Errand { grace: Some(left), ..self.errand("drain", op, machine) };
        let drained = hooks.run(Hook::Drain, &errand, left.saturating_add(BY_FORCE), None).await;
        match drained {
            // Its grace is over: nobody waits for it any longer.
            Ran::Overran(problem) | Ran::Again(problem)
                if !op.cancelled.is_cancelled() && self.grace_left(op, grace).is_zero() =>
            {
                tracing::warn!(machine = %machine.id, problem, "drained by force");
                hooks.run_if_any(Hook::PowerOff, &errand).await.or_error()?;
            }
            ended => ended.or_error()?,
        }
        // No data of one cluster reaches the next.
        hooks.run(Hook::Wipe, &errand, errand.inventory.hook_timeout, None).await.or_error()
    }

    /// Never a Delete: repairs a failed machine, which is well when its status says so.
    async fn destroy(&self, op: &Op, machine: &Machine) -> Result<(), CloudError> {
        let Some(hooks) = &self.hooks else { return Ok(()) };
        let errand = self.errand("recycle", op, machine);
        hooks.run(Hook::Wipe, &errand, errand.inventory.hook_timeout, None).await.or_error()?;
        hooks.run_if_any(Hook::Status, &errand).await.or_error()
    }
}
