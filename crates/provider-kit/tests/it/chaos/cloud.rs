//! A cloud that does anything but call back.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bigfleet_provider_kit::{
    CapacityType, Caps, Cloud, CloudError, Host, Machine, Offer, Op, Ready,
};
use tokio::time::sleep;

use super::Random;

/// What really is, whatever the provider believes.
pub(super) struct Truth {
    inner: Mutex<Inner>,
}

struct Inner {
    random: Random,
    sane: bool,
    seeded: bool,
    slots: u64,
    hosts: BTreeMap<String, BTreeSet<String>>,
    busy: BTreeSet<String>,
    /// Operations whose node was seen Ready.
    ready: BTreeSet<String>,
    /// A panic here would be the kit's to survive, so it is noted instead.
    violation: Option<String>,
}

impl Truth {
    pub(super) fn new(seed: u64, slots: u64) -> Self {
        Self {
            inner: Mutex::new(Inner {
                random: Random::new(seed),
                sane: false,
                seeded: false,
                slots,
                hosts: BTreeMap::new(),
                busy: BTreeSet::new(),
                ready: BTreeSet::new(),
                violation: None,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn be_sane(&self) {
        self.lock().sane = true;
    }

    pub(super) fn hosts(&self, slot: &str) -> Vec<String> {
        self.lock().hosts.get(slot).into_iter().flatten().cloned().collect()
    }

    pub(super) fn violation(&self) -> Option<String> {
        self.lock().violation.clone()
    }

    pub(super) fn was_ready(&self, operation: &str) -> bool {
        self.lock().ready.contains(operation)
    }
}

/// One call of the cloud on one machine; two at once break invariant 2.
struct Busy {
    truth: Arc<Truth>,
    slot: String,
}

impl Busy {
    fn enter(truth: &Arc<Truth>, machine: &Machine) -> Self {
        let slot = machine.id.to_string();
        let mut inner = truth.lock();
        if !inner.busy.insert(slot.clone()) {
            inner.violation = Some(format!("two cloud operations on {slot}"));
        }
        drop(inner);
        Self { truth: truth.clone(), slot }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.truth.lock().busy.remove(&self.slot);
    }
}

pub(super) struct ChaosCloud(pub(super) Arc<Truth>);

/// Whether the call also took effect.
enum Mood {
    Works,
    Fails(CloudError),
    /// It works, and says that it failed.
    Lies(CloudError),
}

impl ChaosCloud {
    /// Waits for anything up to twice the timeouts, minding the cancellation or not.
    async fn mood(&self, op: &Op) -> Mood {
        let (dice, delay, deaf, sane) = {
            let mut inner = self.0.lock();
            let (dice, delay) = (inner.random.below(16), inner.random.below(30));
            (dice, delay, inner.random.below(4) == 0, inner.sane)
        };
        if sane {
            return Mood::Works;
        }
        let delay = Duration::from_millis(delay * delay * delay * 25);
        if deaf {
            sleep(delay).await;
        } else {
            tokio::select! {
                () = sleep(delay) => {}
                () = op.cancelled.cancelled() => {
                    return Mood::Fails(CloudError::Retry("cancelled".into()));
                }
            }
        }
        let error = |dice| match dice % 5 {
            0 => CloudError::Retry("not now".into()),
            1 => CloudError::OutOfStock("none left".into()),
            2 => CloudError::Quota("too many".into()),
            3 => CloudError::Gone("no such host".into()),
            _ => CloudError::Fatal("never".into()),
        };
        match dice {
            0 => panic!("chaos on purpose"),
            1..=5 => Mood::Fails(error(dice)),
            6 => Mood::Lies(CloudError::Fatal("half-way".into())),
            _ => Mood::Works,
        }
    }
}

impl Cloud for ChaosCloud {
    fn caps(&self) -> Caps {
        Caps { destroy: true, fixed: false, resumable: true, observes_ready: true }
    }

    async fn describe(&self) -> Result<Vec<Offer>, CloudError> {
        let mut inner = self.0.lock();
        let throttled = inner.random.below(4) == 0;
        // The very first one seeds the store.
        if std::mem::replace(&mut inner.seeded, true) && throttled && !inner.sane {
            return Err(CloudError::Retry("throttled".into()));
        }
        let price = 1.0 + inner.random.below(2) as f64;
        let offer = |number| {
            let id = format!("m-{number}");
            Offer {
                host: inner.hosts.get(&id).and_then(|hosts| hosts.last().cloned()),
                id,
                instance_type: "chaos.large".into(),
                zone: "zone-a".into(),
                capacity_type: CapacityType::Spot,
                price_per_hour: price,
                interruption_probability: 0.1,
                resources: BTreeMap::from([("cpu".into(), "8".into())]),
                allocatable: BTreeMap::new(),
                labels: BTreeMap::new(),
            }
        };
        Ok((0..inner.slots).map(offer).collect())
    }

    async fn create(&self, op: &Op, machine: &Machine) -> Result<Host, CloudError> {
        let _busy = Busy::enter(&self.0, machine);
        let mood = self.mood(op).await;
        if let Mood::Fails(error) = mood {
            return Err(error);
        }
        let reference = format!("chaos://{}", op.id);
        let mut inner = self.0.lock();
        let hosts = inner.hosts.entry(machine.id.to_string()).or_default();
        hosts.insert(reference.clone());
        if hosts.len() > 1 {
            inner.violation = Some(format!("two hosts for {}", machine.id));
        }
        drop(inner);
        if let Mood::Lies(error) = mood { Err(error) } else { Ok(Host::new(reference)) }
    }

    async fn bootstrap(
        &self,
        op: &Op,
        machine: &Machine,
        _: &str,
        _: &[u8],
    ) -> Result<(), CloudError> {
        let _busy = Busy::enter(&self.0, machine);
        match self.mood(op).await {
            Mood::Works => Ok(()),
            Mood::Fails(error) | Mood::Lies(error) => Err(error),
        }
    }

    async fn ready(&self, op: &Op, machine: &Machine, _: &str) -> Result<Ready, CloudError> {
        let _busy = Busy::enter(&self.0, machine);
        match self.mood(op).await {
            Mood::Works => {
                self.0.lock().ready.insert(op.id.to_string());
                Ok(Ready::Yes)
            }
            Mood::Lies(_) => Ok(Ready::NotYet),
            Mood::Fails(error) => Err(error),
        }
    }

    async fn drain(&self, op: &Op, machine: &Machine, _: Duration) -> Result<(), CloudError> {
        let _busy = Busy::enter(&self.0, machine);
        match self.mood(op).await {
            Mood::Works => Ok(()),
            Mood::Fails(error) | Mood::Lies(error) => Err(error),
        }
    }

    async fn destroy(&self, op: &Op, machine: &Machine) -> Result<(), CloudError> {
        let _busy = Busy::enter(&self.0, machine);
        let mood = self.mood(op).await;
        match mood {
            // "Gone" must be true where it is said of a host.
            Mood::Fails(error @ (CloudError::Retry(_) | CloudError::Fatal(_))) => {
                return Err(error);
            }
            Mood::Fails(_) | Mood::Works | Mood::Lies(_) => {}
        }
        self.0.lock().hosts.remove(machine.id.as_str());
        if let Mood::Lies(error) = mood { Err(error) } else { Ok(()) }
    }
}
