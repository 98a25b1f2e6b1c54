//! Shares of a provider's accounts, at the cycle (§14).

use std::sync::MutexGuard;

use bigfleet_engine::{Engine, HeldBack, MachineView};
use bigfleet_model::{CapacityType, Class, MachineId, MachineState};
use foldhash::fast::RandomState;
use hashbrown::HashSet;
use tokio::time::{Duration, Instant};

use super::{Shared, lock};
use crate::holdings::{Draw, Room};

/// Says in which region of its provider a machine is.
pub(super) const REGION_LABEL: &str = "topology.kubernetes.io/region";
/// Machines are counted at most so often; in between every purchase is.
const COUNTED_EVERY: Duration = Duration::from_secs(1);

/// What may still be bought.
#[derive(Debug, Default)]
pub(crate) struct Quota {
    room: Room,
    counted: Option<Instant>,
    /// Slots past the share. The engine was told so of those that do not fail besides.
    past: HashSet<MachineId, RandomState>,
    /// The last name of an account that no share has: said once.
    unnamed: Option<String>,
}

impl Quota {
    /// Whether a slot must not be lent: it is past the share, or may be as long as it is
    /// not `known` what is drawn.
    pub(super) fn keeps(&self, view: &MachineView<'_>, known: bool) -> bool {
        let counts = !known && !self.room.is_unlimited();
        let slot = counts && view.state() == MachineState::Speculative;
        (slot && is_elastic(view.class())) || self.past.contains(view.id())
    }

    /// A slot is lent, and drawn from now on, whether it is created or not.
    pub(super) fn lend(&mut self, class: &Class) {
        if is_elastic(class) {
            self.room.take(draw(class, None));
        }
    }

    /// What is ours has changed: what is drawn is counted anew.
    pub(super) fn recount(&mut self) {
        self.counted = None;
    }

    /// An account may have a quota under another name than its machines'.
    fn warn_of(&mut self, unnamed: Option<&str>) {
        let Some(provider) = unnamed.filter(|name| self.unnamed.as_deref() != Some(*name)) else {
            return;
        };
        self.unnamed = Some(provider.to_owned());
        tracing::warn!(
            provider,
            "no quota names the provider of these machines, so they count against each; \
             register it, and set quotas, by the name that it is started with (--provider)"
        );
    }
}

fn draw<'a>(class: &'a Class, provider: Option<&'a str>) -> Draw<'a> {
    Draw { provider, region: class.labels.get(REGION_LABEL).map(String::as_str) }
}

/// Whether machines of this class draw on a share.
pub(super) const fn is_elastic(class: &Class) -> bool {
    matches!(class.capacity_type, CapacityType::OnDemand | CapacityType::Spot)
}

impl Shared {
    /// Counts what is drawn, and tells the engine which slots are past the share: those
    /// that fail, for they keep no place from others, then those with the highest ids.
    pub(crate) fn renew_quota(&self, engine: &mut Engine, queued: impl Fn(&str) -> bool) {
        let holdings = self.holdings.load();
        let slices = holdings.slices();
        let mut quota = lock(&self.quota);
        if slices.is_empty() && quota.past.is_empty() {
            quota.room = Room::default();
            return;
        }
        if quota.counted.is_some_and(|at| at.elapsed() < COUNTED_EVERY) {
            return;
        }
        quota.counted = Some(Instant::now());
        let known = slices.is_empty() || self.knows_domains();
        let mut room = Room::of(slices);
        let in_force = self.in_force();
        let home = |view: &MachineView<'_>| {
            is_elastic(view.class()) && in_force.ownership.is_home(view.class())
        };
        let mut unnamed = None;
        self.neighbours().draws().for_each(|drawn| room.drawn(drawn));
        let mut slots = Vec::new();
        for view in engine.views_after(None).filter(home) {
            let provider = view.host().map(|(provider, _)| provider);
            if view.state() != MachineState::Speculative || queued(view.id()) {
                room.drawn(draw(view.class(), provider));
                let is_unnamed = |provider: &&str| !provider.is_empty() && !room.names(provider);
                unnamed = unnamed.or_else(|| provider.filter(is_unnamed));
            } else {
                let fails = view.held_back() == Some(HeldBack::ProviderFailing);
                slots.push((fails, MachineId::from(view.id()), view.class().clone()));
            }
        }
        slots.sort_by_key(|(fails, ..)| *fails);
        quota.warn_of(unnamed.filter(|_| !slices.is_empty()));
        // What may be bought is taken slot by slot, from the lowest id; nothing while it is
        // not known what is drawn.
        quota.room = room.clone();
        let past = slots.into_iter().filter(|(.., class)| !(known && room.take(draw(class, None))));
        let past: HashSet<MachineId, RandomState> = past.map(|(_, machine, _)| machine).collect();
        for machine in quota.past.union(&past) {
            let told = engine.view(machine).and_then(|view| view.held_back());
            // Once its backoff ends it is told of the share (`past_quota`).
            if told != Some(HeldBack::ProviderFailing) {
                engine.hold_back(machine, past.contains(machine).then_some(HeldBack::Quota));
            }
        }
        quota.past = past;
    }

    /// Why a slot is held back although it does not fail.
    pub(crate) fn past_quota(&self, machine: &MachineId) -> Option<HeldBack> {
        lock(&self.quota).past.contains(machine).then_some(HeldBack::Quota)
    }

    /// What may still be bought, and lent.
    pub(super) fn quota(&self) -> MutexGuard<'_, Quota> {
        lock(&self.quota)
    }

    /// Whether one more may be bought; if so, it is.
    pub(crate) fn may_buy(&self, class: &Class) -> bool {
        let of_ours = is_elastic(class) && self.in_force().ownership.is_home(class);
        if !of_ours {
            return true;
        }
        let mut quota = lock(&self.quota);
        let countable = quota.room.is_unlimited() || self.knows_domains();
        countable && quota.room.take(draw(class, None))
    }
}
