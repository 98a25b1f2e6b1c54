//! The provider as the shard calls it, with somebody who watches and interferes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bigfleet_model::{Machine, MachineId};
use bigfleet_provider::{
    Ack, Configure, Error, Identity, ListFilter, MachineList, Provider, Stamped, fake::Fake,
};
use bigfleet_shard::Supply;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

type Answer<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// Changes what a List tells.
type Lie = Box<dyn FnMut(&mut MachineList) + Send>;

/// What interferes.
#[derive(Default)]
pub(crate) struct Knobs {
    /// Nobody answers.
    pub(crate) down: bool,
    /// Lists take so long.
    pub(crate) slow_list: Duration,
    /// Lists are told so.
    pub(crate) lie: Option<Lie>,
    /// Mutations of this machine fail.
    pub(crate) broken: BTreeSet<MachineId>,
    /// Every mutation takes so long.
    pub(crate) call_time: Duration,
    /// Mutations are decided so much later than their caller waits: they happen,
    /// and nobody hears of it.
    pub(crate) late: Duration,
    /// How often they failed.
    pub(crate) refused: usize,
    /// Machines with a mutation under way.
    under_way: BTreeSet<MachineId>,
    /// Most mutations under way at once.
    pub(crate) most: usize,
    /// Lists so far.
    pub(crate) lists: usize,
    /// Seconds of grace by machine, of the last Drain.
    pub(crate) graces: BTreeMap<MachineId, Duration>,
}

/// A watched provider.
#[derive(Clone)]
pub(crate) struct Watched {
    inner: Arc<Stamped<Fake>>,
    knobs: Arc<Mutex<Knobs>>,
}

impl Watched {
    pub(crate) fn new(fake: Fake, epoch: i64) -> Self {
        let inner = Stamped::new(fake, Identity::new("shard-0", epoch));
        Self { inner: Arc::new(inner), knobs: Arc::default() }
    }

    pub(crate) fn knobs(&self) -> MutexGuard<'_, Knobs> {
        self.knobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call in the provider's own time: whoever gives it up does not stop it.
    fn mutate<'a, F>(
        &'a self,
        machine: &'a MachineId,
        deadline: Instant,
        call: impl FnOnce(Arc<Stamped<Fake>>, MachineId) -> F + Send + 'a,
    ) -> Answer<'a, Ack>
    where
        F: Future<Output = Result<Ack, Error>> + Send + 'static,
    {
        Box::pin(async move {
            let _guard = UnderWay::begin(self, machine)?;
            let (late, call_time) = {
                let knobs = self.knobs();
                (knobs.late, knobs.call_time)
            };
            let call = call(self.inner.clone(), machine.clone());
            tokio::time::sleep(call_time).await;
            if late.is_zero() {
                return call.await;
            }
            tokio::spawn(async move {
                tokio::time::sleep_until(deadline + late).await;
                call.await
            });
            std::future::pending().await
        })
    }

    fn check_up(&self) -> Result<(), Error> {
        if self.knobs().down {
            return Err(Error::Unavailable("down".to_owned()));
        }
        Ok(())
    }
}

/// shard invariant 4: never two mutations of one machine at once.
struct UnderWay<'a>(&'a Watched, MachineId);

impl<'a> UnderWay<'a> {
    fn begin(watched: &'a Watched, machine: &MachineId) -> Result<Self, Error> {
        watched.check_up()?;
        let mut knobs = watched.knobs();
        if knobs.broken.contains(machine) {
            knobs.refused += 1;
            return Err(Error::Internal("out of order".to_owned()));
        }
        let alone = knobs.under_way.insert(machine.clone());
        knobs.most = knobs.most.max(knobs.under_way.len());
        assert!(alone, "inv 4: a second mutation of {machine} is under way");
        drop(knobs);
        Ok(Self(watched, machine.clone()))
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.knobs().under_way.remove(&self.1);
    }
}

impl Supply for Watched {
    fn create<'a>(&'a self, machine: &'a MachineId, deadline: Instant) -> Answer<'a, Ack> {
        self.mutate(machine, deadline, move |provider, machine| async move {
            Provider::create(&*provider, &machine, None).await
        })
    }

    fn configure<'a>(
        &'a self,
        machine: &'a MachineId,
        request: Configure,
        deadline: Instant,
    ) -> Answer<'a, Ack> {
        self.mutate(machine, deadline, move |provider, machine| async move {
            Provider::configure(&*provider, &machine, request, None).await
        })
    }

    fn drain<'a>(
        &'a self,
        machine: &'a MachineId,
        grace: Duration,
        deadline: Instant,
    ) -> Answer<'a, Ack> {
        self.knobs().graces.insert(machine.clone(), grace);
        self.mutate(machine, deadline, move |provider, machine| async move {
            Provider::drain(&*provider, &machine, grace, None).await
        })
    }

    fn delete<'a>(&'a self, machine: &'a MachineId, deadline: Instant) -> Answer<'a, Ack> {
        self.mutate(machine, deadline, move |provider, machine| async move {
            Provider::delete(&*provider, &machine, None).await
        })
    }

    fn get<'a>(&'a self, machine: &'a MachineId, deadline: Instant) -> Answer<'a, Machine> {
        Box::pin(async move {
            self.check_up()?;
            Provider::get(&*self.inner, machine, Some(deadline)).await
        })
    }

    fn list<'a>(&'a self, filter: &'a ListFilter, deadline: Instant) -> Answer<'a, MachineList> {
        Box::pin(async move {
            self.check_up()?;
            let slow = {
                let mut knobs = self.knobs();
                knobs.lists += 1;
                knobs.slow_list
            };
            let mut list = Provider::list(&*self.inner, filter, Some(deadline)).await?;
            // Read, and on its way for a while.
            tokio::time::sleep(slow).await;
            if let Some(lie) = &mut self.knobs().lie {
                lie(&mut list);
            }
            Ok(list)
        })
    }
}
