//! The kit's trait over the API (provider chapter §10).

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bigfleet_provider_kit::{Caps, Cloud, CloudError, Handle, Host, Machine, Offer, Op, Ready};
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    api::{Ec2, Instance, InstanceState, Launch, Meaning},
    command::{Commands, Outcome},
    config::{Capacity, Ec2Config},
    lookup::Lookup,
    prices::{self, Cadence, PriceBook, PriceSources},
    queue::{self, Names, Queue},
    slots::{self, CAPACITY, CLUSTER, MACHINE_ID, MANAGED, PROVIDER, Slots},
    standin::StandIn,
};

const FIRST_POLL: Duration = Duration::from_millis(50);
const LAST_POLL: Duration = Duration::from_secs(5);
/// What an orderly drain may take beyond its grace before it is forced.
const DRAIN_MARGIN: Duration = Duration::from_secs(30);
/// What a forced drain may take before the power is cycled.
const FORCE_LIMIT: Duration = Duration::from_secs(60);
/// From this attempt on, a host that cannot be spoken to is not spoken to any more.
const LAST_WORD: u32 = 3;

/// Those that hold a slot; a slot that is used often has many ended ones.
const LIVE: (&str, &[&str]) =
    ("instance-state-name", &["pending", "running", "stopping", "stopped"]);

/// What a cloud is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) provider: String,
    pub(crate) config: Ec2Config,
    pub(crate) ec2: Arc<Ec2>,
    pub(crate) slots: Slots,
    pub(crate) book: PriceBook,
    pub(crate) sources: PriceSources,
    pub(crate) commands: Commands,
    pub(crate) queue: Option<Queue>,
    pub(crate) fake: Option<StandIn>,
}

/// Instances as machines.
#[derive(Debug)]
pub struct Ec2Cloud {
    shared: Arc<Shared>,
    commands: Commands,
    by_id: Arc<Lookup>,
    by_slot: Lookup,
    #[cfg(feature = "node-ready")]
    nodes: Option<bigfleet_provider_kit::node_ready::NodeReady>,
    queue: Mutex<Option<Queue>>,
    tasks: Mutex<Vec<AbortOnDropHandle<()>>>,
    /// Ends with us.
    _fake: Option<StandIn>,
}

/// What background tasks need, too.
#[derive(Debug)]
struct Shared {
    provider: String,
    config: Ec2Config,
    ec2: Arc<Ec2>,
    slots: Slots,
    book: PriceBook,
    sources: PriceSources,
}

impl Ec2Cloud {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { provider, config, ec2, slots, book, sources, commands, queue, fake } = parts;
        let by_id = Lookup::new(ec2.clone(), ("instance-id", &[]), |instance| &instance.id);
        let slot = ("tag:bigfleet:machine-id", &[LIVE] as &[_]);
        let by_slot =
            Lookup::new(ec2.clone(), slot, |instance| instance.tag(MACHINE_ID).unwrap_or_default());
        Self {
            #[cfg(feature = "node-ready")]
            nodes: (!config.kubeconfigs.is_empty()).then(|| {
                bigfleet_provider_kit::node_ready::NodeReady::new(config.kubeconfigs.clone())
            }),
            shared: Arc::new(Shared { provider, config, ec2, slots, book, sources }),
            commands,
            by_id: Arc::new(by_id),
            by_slot,
            queue: Mutex::new(queue),
            tasks: Mutex::default(),
            _fake: fake,
        }
    }

    /// Live instances that were launched for this machine by us.
    async fn instances_of(&self, machine: &str) -> Result<Vec<Instance>, CloudError> {
        let mut found = self.by_slot.find(machine).await?;
        found.retain(|instance| {
            let ours = instance.tag(PROVIDER) == Some(self.shared.provider.as_str());
            ours && instance.tag(MANAGED) == Some("true") && instance.state.is_live()
        });
        Ok(found)
    }

    /// Instances that earlier operations left over must not stand beside the new one.
    async fn clear(&self, op: &Op, machine: &str) -> Result<(), CloudError> {
        for instance in self.instances_of(machine).await? {
            if instance.client_token == op.id.as_str() {
                continue;
            }
            if let Some(cluster) = instance.tag(CLUSTER) {
                let id = &instance.id;
                let text = format!("instance {id} serves cluster {cluster:?} in this slot");
                return Err(CloudError::Fatal(text));
            }
            tracing::warn!(machine, instance = instance.id, "left over from an earlier operation");
            self.terminate(op, &instance.id).await?;
        }
        Ok(())
    }

    async fn launch(&self, op: &Op, machine: &Machine) -> Result<Instance, CloudError> {
        let shared = &*self.shared;
        let Some(offering) = shared.slots.offering(&machine.id) else {
            return Err(CloudError::Fatal("the slot is configured no more".to_owned()));
        };
        let mut tags = vec![
            (MANAGED, "true"),
            (MACHINE_ID, machine.id.as_str()),
            (CAPACITY, offering.capacity.name()),
            (PROVIDER, shared.provider.as_str()),
        ];
        let more = &shared.config.account.tags;
        tags.extend(more.iter().map(|(key, value)| (key.as_str(), value.as_str())));
        let launch = Launch {
            client_token: op.id.as_str(),
            instance_type: &offering.instance_type,
            zone: &offering.zone,
            spot: offering.capacity == Capacity::Spot,
            tags: &tags,
            account: &shared.config.account.params(&offering.zone),
        };
        match shared.ec2.run(&launch).await {
            Ok(instance) => Ok(instance),
            // Launched before the configuration changed: the token still finds it.
            Err(error) if error.meaning() == Meaning::TokenReused => {
                let found = shared.ec2.describe(&[("client-token", &[op.id.as_str()])]).await?;
                let problem = || CloudError::Retry(format!("{error}; its instance is not visible"));
                found.into_iter().next().ok_or_else(problem)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A new instance may be invisible for a while: that is no loss, and no reason to
    /// launch another.
    async fn await_running(&self, op: &Op, mut instance: Instance) -> Result<Host, CloudError> {
        let mut pause = FIRST_POLL;
        // The launch's own answer says pending; only a description counts.
        let mut described = false;
        loop {
            match instance.state {
                InstanceState::Running if described => {
                    return Ok(Host::new(slots::reference(&instance)));
                }
                InstanceState::Terminated => return Err(ended(&instance)),
                InstanceState::Stopped => {
                    let text = format!("instance {} stopped before it ran", instance.id);
                    return Err(CloudError::Fatal(text));
                }
                _ => {}
            }
            tokio::select! {
                // Past the deadline the host still costs money: the kit destroys it.
                () = op.cancelled.cancelled() => {
                    return if Instant::now() >= op.deadline {
                        Ok(Host::new(slots::reference(&instance)))
                    } else {
                        Err(CloudError::Retry("given up before the instance ran".to_owned()))
                    };
                }
                () = sleep(pause) => {}
            }
            pause = (pause * 2).min(LAST_POLL);
            if let Some(found) = self.by_id.find(&instance.id).await?.into_iter().next() {
                (instance, described) = (found, true);
            }
        }
    }

    /// Ends an instance and waits until nobody sees it alive: a stale description of a
    /// live one would look like a host without a record.
    async fn terminate(&self, op: &Op, id: &str) -> Result<(), CloudError> {
        match self.shared.ec2.terminate(id).await {
            Ok(()) => {}
            Err(error) if error.meaning() == Meaning::NotFound => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let mut pause = FIRST_POLL;
        while self.by_id.find(id).await?.iter().any(|instance| instance.state.is_live()) {
            tokio::select! {
                () = op.cancelled.cancelled() => {
                    return Err(CloudError::Retry(format!("instance {id} is still alive")));
                }
                () = sleep(pause) => {}
            }
            pause = (pause * 2).min(LAST_POLL);
        }
        Ok(())
    }

    /// Orderly, then by force, then by the switch.
    async fn leave(
        &self,
        op: &Op,
        id: &str,
        cluster: &str,
        grace: Duration,
    ) -> Result<(), CloudError> {
        if !grace.is_zero() {
            // Time is kept for the force, also where an operator allows little.
            let left = op.deadline.saturating_duration_since(Instant::now());
            let orderly = (grace + DRAIN_MARGIN).min(left - FORCE_LIMIT.min(left / 4));
            let until = Instant::now() + orderly;
            match self.commands.drain(op, id, cluster, grace, until).await {
                Ok(Outcome::Done(_)) => return Ok(()),
                Ok(Outcome::Failed(problem)) => tracing::warn!(instance = id, problem, "forced"),
                Err(error) if op.attempt < LAST_WORD => return Err(error),
                Err(error) => tracing::warn!(instance = id, %error, "forced"),
            }
        }
        let until = Instant::now() + FORCE_LIMIT;
        match self.commands.drain(op, id, cluster, Duration::ZERO, until).await {
            Ok(Outcome::Done(_)) => return Ok(()),
            Ok(Outcome::Failed(problem)) => tracing::warn!(instance = id, problem, "rebooted"),
            Err(error) if op.attempt < LAST_WORD => return Err(error),
            Err(error) => tracing::warn!(instance = id, %error, "rebooted"),
        }
        Ok(self.shared.ec2.reboot(id).await?)
    }

    fn keep(&self, task: impl Future<Output = ()> + Send + 'static) {
        let task = AbortOnDropHandle::new(tokio::spawn(task));
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(task);
    }
}

impl Cloud for Ec2Cloud {
    fn caps(&self) -> Caps {
        Caps { destroy: true, fixed: false, resumable: true, observes_ready: true }
    }

    fn attach(&self, handle: Handle) {
        let (shared, told) = (self.shared.clone(), handle.clone());
        self.keep(async move { shared.follow_prices(&told).await });
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(queue) = queue {
            let names = Arc::new(Owners { by_id: self.by_id.clone(), shared: self.shared.clone() });
            self.keep(queue::listen(queue, names, handle));
        }
    }

    async fn describe(&self) -> Result<Vec<Offer>, CloudError> {
        let shared = &*self.shared;
        let filters: [(&str, &[&str]); 3] = [
            ("tag:bigfleet:managed", &["true"]),
            ("tag:bigfleet:provider", &[&shared.provider]),
            LIVE,
        ];
        let instances = shared.ec2.describe(&filters).await?;
        shared.price_strangers(&instances).await;
        Ok(shared.slots.offers(&instances, &shared.book))
    }

    async fn create(&self, op: &Op, machine: &Machine) -> Result<Host, CloudError> {
        self.clear(op, &machine.id).await?;
        let instance = self.launch(op, machine).await?;
        self.await_running(op, instance).await
    }

    async fn bootstrap(
        &self,
        op: &Op,
        machine: &Machine,
        cluster: &str,
        blob: &[u8],
    ) -> Result<(), CloudError> {
        let id = host_of(machine)?;
        // Marked first: a host that half joined is not taken for a free one.
        self.shared.ec2.tag(id, CLUSTER, cluster).await?;
        match self.commands.bootstrap(op, id, cluster, blob).await? {
            Outcome::Done(_) => Ok(()),
            Outcome::Failed(problem) => Err(CloudError::Fatal(problem)),
        }
    }

    async fn ready(&self, op: &Op, machine: &Machine, cluster: &str) -> Result<Ready, CloudError> {
        #[cfg(feature = "node-ready")]
        if let (Some(nodes), Some(host)) = (&self.nodes, &machine.host) {
            let key =
                bigfleet_provider_kit::node_ready::NodeKey::ProviderId(host.reference.clone());
            return nodes.check(cluster, &key).await;
        }
        let joined = self.commands.ready(op, host_of(machine)?, cluster).await?;
        Ok(if joined { Ready::Yes } else { Ready::NotYet })
    }

    async fn drain(&self, op: &Op, machine: &Machine, grace: Duration) -> Result<(), CloudError> {
        let id = host_of(machine)?;
        let cluster = machine.cluster.as_deref().unwrap_or_default();
        if !self.by_id.find(id).await?.iter().any(|instance| instance.state.is_live()) {
            return Err(CloudError::Gone(format!("instance {id}")));
        }
        self.leave(op, id, cluster, grace).await?;
        Ok(self.shared.ec2.untag(id, CLUSTER).await?)
    }

    async fn destroy(&self, op: &Op, machine: &Machine) -> Result<(), CloudError> {
        if machine.host.is_some() {
            return self.terminate(op, host_of(machine)?).await;
        }
        // A Create that failed half-way may have brought one all the same.
        for instance in self.instances_of(&machine.id).await? {
            if instance.tag(CLUSTER).is_none() {
                self.terminate(op, &instance.id).await?;
            }
        }
        Ok(())
    }
}

impl Shared {
    /// Refreshes for ever; a change is shown by a sweep, not by a List.
    async fn follow_prices(&self, handle: &Handle) {
        let types: Vec<_> = self.config.types().into_iter().collect();
        let changed = || handle.sweep();
        let Self { ec2, sources, book, .. } = self;
        prices::follow(ec2, sources, &types, book, Cadence::default(), changed).await;
    }

    /// Instances without a slot may be of a type that is offered no more.
    async fn price_strangers(&self, instances: &[Instance]) {
        let known = |instance: &Instance| {
            let Instance { instance_type, zone, .. } = instance;
            self.book.price(slots::capacity(instance), instance_type, zone).is_some()
        };
        let live = instances.iter().filter(|instance| instance.state.is_live());
        let mut types: Vec<_> =
            live.filter(|one| !known(one)).map(|one| one.instance_type.as_str()).collect();
        types.sort_unstable();
        types.dedup();
        if !types.is_empty() {
            self.sources.refresh_on_demand(&types, &self.book).await;
            prices::refresh_spot(&self.ec2, &types, &self.book).await;
        }
    }
}

/// For events, which name instances.
struct Owners {
    by_id: Arc<Lookup>,
    shared: Arc<Shared>,
}

impl Names for Owners {
    async fn machine(&self, instance: &str) -> Option<String> {
        let found = self.by_id.find(instance).await.ok()?.into_iter().next()?;
        let ours = found.tag(PROVIDER) == Some(self.shared.provider.as_str());
        found.tag(MACHINE_ID).filter(|_| ours).map(str::to_owned)
    }
}

fn host_of(machine: &Machine) -> Result<&str, CloudError> {
    let host = machine.host.as_ref().map(|host| slots::instance_id(&host.reference));
    host.ok_or_else(|| CloudError::Gone("the machine has no host".to_owned()))
}

/// Why an instance ended before it ran.
fn ended(instance: &Instance) -> CloudError {
    let Instance { id, reason, .. } = instance;
    let text = format!("instance {id} ended before it ran: {reason}");
    match reason.as_str() {
        "Server.InsufficientInstanceCapacity"
        | "Server.SpotInstanceTermination"
        | "Server.SpotInstanceShutdown" => CloudError::OutOfStock(text),
        "Client.InstanceLimitExceeded" | "Client.VolumeLimitExceeded" => CloudError::Quota(text),
        _ => CloudError::Fatal(text),
    }
}
