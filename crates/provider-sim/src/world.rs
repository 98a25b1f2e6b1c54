//! One simulated cloud, behind its API.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use bigfleet_provider_kit::{CloudError, Handle, Kind, Notice, Offer, Op};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    Error,
    config::CloudConfig,
    dice::Dice,
    forecast::{Due, Event, Forecast},
    freeze::{Answer, Frozen},
    hosts::Hosts,
    price_walk::Prices,
    rate_limit::RateLimit,
    slot::{Slot, born, slots},
    stock::Stock,
    tier::Tier,
};

/// What stays the same, and behind a lock what does not.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) config: CloudConfig,
    pub(crate) slots: Vec<Slot>,
    by_id: HashMap<String, usize>,
    pub(crate) dice: Dice,
    state: Mutex<State>,
    handle: OnceLock<Handle>,
    /// Something thawed, or the forecast changed.
    changed: watch::Sender<()>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) hosts: Hosts,
    pub(crate) stock: Stock,
    pub(crate) frozen: Frozen,
    pub(crate) forecast: Forecast,
    /// By slot.
    pub(crate) nodes: HashMap<usize, Node>,
    api: RateLimit,
    prices: Prices,
    /// Slots whose host is on its way.
    coming: HashSet<usize>,
    /// How often each call was made about each slot.
    calls: HashMap<(usize, Kind), u64>,
}

/// What a bootstrap led to.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) operation: String,
    /// None for one that never becomes Ready.
    pub(crate) ready: Option<Instant>,
}

impl World {
    pub(crate) fn open(config: CloudConfig, seed: u64, directory: &Path) -> Result<Self, Error> {
        let (dice, now) = (Dice::new(seed).named(&config.name), Instant::now());
        let slots = slots(&config);
        let state = State {
            hosts: Hosts::open(directory, &config.name, born(&config, &slots))?,
            stock: Stock::new(&config.stock, now),
            frozen: Frozen::default(),
            forecast: Forecast::default(),
            nodes: HashMap::new(),
            api: RateLimit::new(config.mishaps.api_rate, now),
            prices: Prices::new(config.price_walk, dice, now),
            coming: HashSet::new(),
            calls: HashMap::new(),
        };
        let by_id = slots.iter().enumerate().map(|(number, slot)| (slot.id.clone(), number));
        Ok(Self {
            by_id: by_id.collect(),
            config,
            slots,
            dice,
            state: Mutex::new(state),
            handle: OnceLock::new(),
            changed: watch::channel(()).0,
        })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn find(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    pub(crate) fn known(&self, id: &str) -> Result<usize, CloudError> {
        self.find(id).ok_or_else(|| CloudError::Fatal(format!("{id} is no slot of this cloud")))
    }

    pub(crate) fn tier(&self, slot: usize) -> &Tier {
        &self.config.tiers[self.slots[slot].tier]
    }

    /// Wakes whoever waits for a thaw or for the weather.
    pub(crate) fn announce(&self) {
        self.changed.send_replace(());
    }

    pub(crate) fn attach(&self, handle: Handle) {
        // Attached once; a second handle would be of another kit.
        let _ = self.handle.set(handle);
        let mut state = self.state();
        let up: Vec<_> = state.hosts.up().map(|(id, number)| (id.to_owned(), number)).collect();
        for (slot, generation) in up {
            // A host whose slot is configured no more has no future.
            if let Some(slot) = self.find(&slot) {
                self.foretell(&mut state, slot, generation);
            }
        }
    }

    pub(crate) fn foretell(&self, state: &mut State, slot: usize, generation: u64) {
        let dice = self.dice.named(&self.slots[slot].id).named("host").numbered(generation);
        let host = (slot, generation);
        state.forecast.host(host, self.tier(slot), &self.config.mishaps, dice, Instant::now());
    }

    /// Lets happen what is due, for ever.
    pub(crate) async fn weather(self: Arc<Self>) {
        let mut changed = self.changed.subscribe();
        loop {
            while let Some(due) = self.due() {
                self.happens(due.slot, due.generation, due.event);
            }
            let wakes = self.state().forecast.wakes();
            tokio::select! {
                _ = changed.changed() => {}
                () = async { sleep_until(wakes.unwrap_or_else(Instant::now)).await },
                    if wakes.is_some() => {}
            }
        }
    }

    fn due(&self) -> Option<Due> {
        self.state().forecast.next(Instant::now())
    }

    fn happens(&self, slot: usize, generation: u64, event: Event) {
        let id = &self.slots[slot].id;
        if self.state().hosts.generation(id) != Some(generation) {
            return;
        }
        match event {
            Event::Rebalance => self.notice(slot, Notice::Rebalance),
            Event::Notice => self.notice(slot, Notice::Termination),
            Event::Take => {
                tracing::info!(machine = %id, "spot host taken");
                self.lose(slot);
                if let Some(handle) = self.handle.get() {
                    handle.sweep();
                }
            }
            Event::Die => {
                tracing::info!(machine = %id, "host died");
                self.lose(slot);
            }
        }
    }

    pub(crate) fn notice(&self, slot: usize, notice: Notice) {
        if let Some(handle) = self.handle.get() {
            handle.notice(&self.slots[slot].id, notice);
        }
    }

    /// Whether there was a host to lose.
    pub(crate) fn lose(&self, slot: usize) -> bool {
        let mut state = self.state();
        state.nodes.remove(&slot);
        let id = &self.slots[slot].id;
        state.hosts.take_away(id).unwrap_or_else(|error| {
            tracing::error!(machine = %id, %error, "cannot lose a host");
            false
        })
    }

    pub(crate) fn describe(&self) -> Result<Vec<Offer>, CloudError> {
        let now = Instant::now();
        let mut state = self.state();
        state.api.take(now)?;
        let mut offers = Vec::with_capacity(self.slots.len());
        for slot in &self.slots {
            let tier = &self.config.tiers[slot.tier];
            let price = state.prices.price(tier, &slot.zone, now);
            offers.push(slot.offer(tier, price, state.hosts.reference(&slot.id)));
        }
        Ok(offers)
    }

    /// The draws of the next call of this kind about this slot.
    pub(crate) fn draw(&self, slot: usize, kind: Kind) -> Dice {
        let mut state = self.state();
        let calls = state.calls.entry((slot, kind)).or_default();
        *calls += 1;
        self.dice.named(&self.slots[slot].id).named(kind.name()).numbered(*calls)
    }

    /// What every call of the API passes.
    pub(crate) async fn admit(&self, slot: usize, op: &Op) -> Result<(), CloudError> {
        self.thawed(slot, op).await?;
        self.state().api.take(Instant::now())
    }

    /// Waits while the machine is frozen.
    pub(crate) async fn thawed(&self, slot: usize, op: &Op) -> Result<(), CloudError> {
        let mut changed = self.changed.subscribe();
        loop {
            let frost = self.state().frozen.of(&self.slots[slot].id, Instant::now());
            let Some(frost) = frost else { return Ok(()) };
            if frost.answer == Answer::Refuse {
                return Err(CloudError::Retry("the API is not available".into()));
            }
            tokio::select! {
                () = op.cancelled.cancelled() => return Err(cancelled()),
                _ = changed.changed() => {}
                () = sleep_until(frost.until.unwrap_or(op.deadline)) => {}
            }
        }
    }

    /// What a reservation needs: room in the account and in the zone.
    pub(crate) fn reserve(self: &Arc<Self>, slot: usize) -> Result<Reservation, CloudError> {
        let tier = self.tier(slot);
        let mut state = self.state();
        if !self.config.quotas.is_empty() {
            let up = state.hosts.up().filter_map(|(id, _)| self.find(id));
            let coming = state.coming.iter().copied();
            let held = up.chain(coming).map(|slot| self.tier(slot));
            self.config.quotas.check(tier, held)?;
        }
        state.stock.take(&tier.instance_type, &self.slots[slot].zone, Instant::now())?;
        state.coming.insert(slot);
        Ok(Reservation { world: self.clone(), slot, used: false })
    }
}

/// Room for one host; given back unless it comes.
#[derive(Debug)]
pub(crate) struct Reservation {
    world: Arc<World>,
    slot: usize,
    used: bool,
}

impl Reservation {
    /// The host's name.
    pub(crate) fn bring(mut self, op: &Op) -> Result<String, CloudError> {
        let id = &self.world.slots[self.slot].id;
        let mut state = self.world.state();
        let generation = state.hosts.bring(id, op.id.as_str())?;
        self.world.foretell(&mut state, self.slot, generation);
        let reference = state.hosts.reference(id);
        state.coming.remove(&self.slot);
        drop(state);
        self.used = true;
        self.world.announce();
        reference.ok_or_else(|| CloudError::Gone(self.world.slots[self.slot].id.clone()))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.used {
            let (kind, zone) = (&self.world.tier(self.slot).instance_type, self.slot);
            let mut state = self.world.state();
            state.coming.remove(&self.slot);
            state.stock.give(kind, &self.world.slots[zone].zone);
        }
    }
}

/// So long, unless the operation ends before.
pub(crate) async fn wait(op: &Op, length: Duration) -> Result<(), CloudError> {
    if length.is_zero() {
        return Ok(());
    }
    tokio::select! {
        () = op.cancelled.cancelled() => Err(cancelled()),
        () = sleep(length) => Ok(()),
    }
}

pub(crate) fn cancelled() -> CloudError {
    CloudError::Retry("cancelled".into())
}
