//! The cloud behind the fault target.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use bigfleet_model::{CapacityType, Machine};
use tokio::time::{sleep, sleep_until};

use super::{CREATE_LABEL, HOSTS_LABEL, hosts::Hosts};
use crate::{
    cloud::{Caps, Cloud, CloudError, Host, Offer, Op, Ready},
    handle::{Handle, Notice},
};

/// What a sound call takes.
const LATENCY: Duration = Duration::from_millis(50);
/// After success, a host that is to vanish stays so long.
const VANISHES_AFTER: Duration = Duration::from_millis(300);
/// How late a late success is.
const LATE: Duration = Duration::from_secs(1);
/// Slots of each fault.
const FAULTY: usize = 8;
/// Values of the label.
const FAULTS: [&str; 7] = ["error", "late", "vanish", "slow", "stock-out", "panic", "ok"];

/// Slots, and what exists of them.
#[derive(Debug)]
pub struct FaultCloud {
    slots: Vec<Offer>,
    hosts: Arc<Mutex<Hosts>>,
    timeout: Duration,
    handle: OnceLock<Handle>,
}

impl FaultCloud {
    /// With so many sound slots, for transitions of this timeout; the truth is kept
    /// under `state`, or in memory if that is empty.
    pub fn open(seed_count: usize, timeout: Duration, state: &Path) -> io::Result<Self> {
        let sound = (0..seed_count).map(|number| offer(format!("spec-{number:06}"), number, None));
        let faulty = FAULTS.into_iter().flat_map(|fault| {
            (0..FAULTY)
                .map(move |number| offer(format!("fault-{fault}-{number}"), number, Some(fault)))
        });
        let slots = sound.chain(faulty).collect();
        let hosts = Arc::new(Mutex::new(Hosts::open(state)?));
        Ok(Self { slots, hosts, timeout, handle: OnceLock::new() })
    }

    fn hosts(&self) -> MutexGuard<'_, Hosts> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sound calls take a moment, slow ones most of the timeout.
    async fn latency(&self, machine: &Machine) {
        let slow = fault(machine) == "slow";
        sleep(if slow { self.timeout / 4 * 3 } else { LATENCY }).await;
    }

    /// Behind everybody's back.
    fn vanish(&self, machine: &Machine) {
        let (hosts, slot) = (self.hosts.clone(), machine.id.clone());
        tokio::spawn(async move {
            sleep(VANISHES_AFTER).await;
            let mut hosts = hosts.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = hosts.take_away(&slot) {
                tracing::error!(machine = %slot, %error, "cannot vanish");
            }
        });
    }

    fn notice(&self, machine: &Machine, notice: Notice) {
        if let Some(handle) = self.handle.get() {
            handle.notice(&machine.id, notice);
        }
    }

    fn bring(&self, op: &Op, machine: &Machine) -> Result<Host, CloudError> {
        self.hosts().bring(&machine.id, op.id.as_str()).map(Host::new).map_err(broken)
    }
}

impl Cloud for FaultCloud {
    fn caps(&self) -> Caps {
        Caps { destroy: true, fixed: false, resumable: true, observes_ready: true }
    }

    fn attach(&self, handle: Handle) {
        // Attached once; a second handle would be of another kit.
        let _ = self.handle.set(handle);
    }

    async fn describe(&self) -> Result<Vec<Offer>, CloudError> {
        let hosts = self.hosts();
        let mut offers = self.slots.clone();
        for offer in &mut offers {
            offer.host = hosts.name(&offer.id);
            if offer.labels.contains_key(CREATE_LABEL) {
                let count = hosts.count(&offer.id).to_string();
                offer.labels.insert(HOSTS_LABEL.to_owned(), count);
            }
        }
        Ok(offers)
    }

    async fn create(&self, op: &Op, machine: &Machine) -> Result<Host, CloudError> {
        match fault(machine) {
            "error" => return Err(CloudError::Fatal("this slot cannot be created".into())),
            "stock-out" => return Err(CloudError::OutOfStock("no such machine left".into())),
            "panic" => panic_on_purpose(),
            "late" => sleep_until(op.deadline + LATE).await,
            _ => self.latency(machine).await,
        }
        if fault(machine) == "vanish" {
            self.vanish(machine);
        }
        self.bring(op, machine)
    }

    async fn bootstrap(
        &self,
        op: &Op,
        machine: &Machine,
        cluster: &str,
        _: &[u8],
    ) -> Result<(), CloudError> {
        match cluster {
            "fault-error" => Err(CloudError::Fatal("the bootstrap was refused".into())),
            "fault-panic" => panic_on_purpose(),
            "fault-timeout" => {
                op.cancelled.cancelled().await;
                Err(CloudError::Retry("cancelled".into()))
            }
            _ => {
                self.latency(machine).await;
                Ok(())
            }
        }
    }

    async fn ready(&self, op: &Op, machine: &Machine, cluster: &str) -> Result<Ready, CloudError> {
        match cluster {
            "fault-readiness-block" => return Ok(Ready::NotYet),
            "fault-slow-ok" => sleep_until(op.deadline + LATE).await,
            "fault-vanish" => self.vanish(machine),
            "fault-notice" => self.notice(machine, Notice::Termination),
            "fault-rebalance" => self.notice(machine, Notice::Rebalance),
            _ => {}
        }
        Ok(Ready::Yes)
    }

    async fn drain(&self, _: &Op, machine: &Machine, _: Duration) -> Result<(), CloudError> {
        let cluster = machine.cluster.as_deref().unwrap_or_default();
        if cluster == "fault-drain-error" {
            return Err(CloudError::Retry("the drain was refused".into()));
        }
        match cluster.strip_prefix("fault-drain-slow-").and_then(|seconds| seconds.parse().ok()) {
            Some(seconds) => sleep(Duration::from_secs(seconds)).await,
            None => self.latency(machine).await,
        }
        Ok(())
    }

    async fn destroy(&self, _: &Op, machine: &Machine) -> Result<(), CloudError> {
        self.latency(machine).await;
        self.hosts().take_away(&machine.id).map_err(broken)
    }
}

fn fault(machine: &Machine) -> &str {
    machine.class.labels.get(CREATE_LABEL).map_or("", String::as_str)
}

#[allow(clippy::panic, reason = "the fault that a test asks for")]
fn panic_on_purpose() -> ! {
    panic!("on purpose: the conformance suite asked for it")
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn broken(error: io::Error) -> CloudError {
    CloudError::Fatal(error.to_string())
}

fn offer(id: String, number: usize, fault: Option<&str>) -> Offer {
    let spot = fault.is_none() && number % 4 == 3;
    let zone = ["zone-a", "zone-b", "zone-c"][number % 3];
    let rack = ("topology.bigfleet/rack".to_owned(), format!("{zone}-rack-{}", number % 10));
    let mut labels = BTreeMap::from([rack]);
    labels.extend(fault.map(|fault| (CREATE_LABEL.to_owned(), fault.to_owned())));
    let quantities = |pairs: [(&str, &str); 2]| {
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    };
    Offer {
        id,
        host: None,
        instance_type: "fault.large".to_owned(),
        zone: zone.to_owned(),
        capacity_type: if spot { CapacityType::Spot } else { CapacityType::OnDemand },
        price_per_hour: if spot { 0.12 } else { 0.38 },
        interruption_probability: if spot { 0.3 } else { 0.05 },
        resources: quantities([("cpu", "8"), ("memory", "32Gi")]),
        allocatable: quantities([("cpu", "7500m"), ("memory", "28Gi")]),
        labels,
    }
}
