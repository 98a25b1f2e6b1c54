//! What clusters could have (§13): a hint per cluster and profile in its demand,
//! never a reservation.
//!
//! What a profile could get is computed once for all clusters that want it, and at
//! most once in an interval, for nobody may be told sooner. That is the cycle's part,
//! for only the engine knows; telling thousands of clusters is the [`Crier`]'s, beside
//! the cycle.

mod crier;

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use bigfleet_engine::{Available, Engine};
use bigfleet_model::{ClusterId, Fingerprint, Profile};
use bigfleet_wire::v1alpha1::available_capacity_update::Confidence;
use foldhash::fast::RandomState;
use hashbrown::{HashMap, hash_map::EntryRef};
use tokio::{
    sync::mpsc::{UnboundedSender, unbounded_channel},
    time::Instant,
};

pub(crate) use self::crier::Crier;
use self::crier::News;
use crate::{
    shard::Shard,
    views::{Changes, wire::count},
};

type Map<K, V> = HashMap<K, V, RandomState>;

/// What is told of a profile.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Told {
    count: i32,
    confidence: Confidence,
    cost: f64,
}

impl Told {
    /// Nothing, any more.
    const NOTHING: Self = Self { count: 0, confidence: Confidence::None, cost: 0.0 };

    fn of(available: &Available) -> Self {
        let confidence = match (available.idle, available.speculative) {
            (0, 0) => Confidence::None,
            (0, _) => Confidence::Medium,
            _ => Confidence::High,
        };
        let cost = available.cheapest_idle.or(available.cheapest_speculative);
        let all = available.idle.saturating_add(available.speculative);
        Self { count: count(all), confidence, cost: cost.unwrap_or(0.0) }
    }
}

/// What profiles could get, as the cycle sees it.
#[derive(Debug)]
pub(crate) struct Hints {
    /// Profiles in demand, and how many needs are of each.
    wanted: Map<Fingerprint, (Arc<Profile>, usize)>,
    next_round: Option<Instant>,
    crier: UnboundedSender<News>,
}

impl Hints {
    /// And who tells them.
    pub(crate) fn new() -> (Self, Crier) {
        let (crier, news) = unbounded_channel();
        let hints = Self { wanted: Map::default(), next_round: None, crier };
        (hints, Crier::new(news))
    }

    /// After a cycle: what the crier needs to know of it.
    pub(crate) fn tell(
        &mut self,
        shard: &Shard,
        engine: &Engine,
        changes: &Changes,
        sessions: &[ClusterId],
    ) {
        let fresh = self.follow_demand(changes);
        let now = Instant::now();
        let round = self.next_round.is_none_or(|next| next <= now);
        if round {
            self.next_round = Some(now + shard.options.available_capacity_interval);
        }
        let asked = match round {
            true => self.wanted.values().map(|(profile, _)| profile.clone()).collect(),
            false => fresh,
        };
        let news = News {
            values: values_of(engine, asked),
            round,
            appeared: changes.appeared().cloned().collect(),
            vanished: changes.vanished.clone(),
            sessions: sessions.to_vec(),
        };
        // A crier that is gone took the shard with it.
        drop(self.crier.send(news));
    }

    /// Profiles that nobody wanted before.
    fn follow_demand(&mut self, changes: &Changes) -> Vec<Arc<Profile>> {
        let mut fresh = Vec::new();
        for row in changes.appeared() {
            let profile = &row.need.profile;
            match self.wanted.entry_ref(profile.fingerprint()) {
                EntryRef::Occupied(mut known) => known.get_mut().1 += 1,
                EntryRef::Vacant(unknown) => {
                    unknown.insert((profile.clone(), 1));
                    fresh.push(profile.clone());
                }
            }
        }
        for need in &changes.vanished {
            if let Some((_, needs)) = self.wanted.get_mut(&need.fingerprint) {
                *needs -= 1;
                if *needs == 0 {
                    self.wanted.remove(&need.fingerprint);
                }
            }
        }
        fresh
    }
}

/// What profiles could get. Supply is counted only if somebody asks: that is a pass over
/// all classes of machines, and most cycles have no question.
fn values_of(engine: &Engine, profiles: Vec<Arc<Profile>>) -> Vec<(Arc<Profile>, Told)> {
    if profiles.is_empty() {
        return Vec::new();
    }
    let mut values = Values { supply: engine.hints(), known: Map::default() };
    let told = |profile: Arc<Profile>| {
        let value = values.of(&profile);
        (profile, value)
    };
    profiles.into_iter().map(told).collect()
}

/// What profiles could get. Many differ only in priority or penalties, which
/// machines know nothing of.
struct Values<'e> {
    supply: bigfleet_engine::Hints<'e>,
    known: Map<ByRequirements, Told>,
}

impl Values<'_> {
    fn of(&mut self, profile: &Arc<Profile>) -> Told {
        let known = self.known.entry(ByRequirements(profile.clone()));
        *known.or_insert_with(|| Told::of(&self.supply.available(profile)))
    }
}

/// Equal if the requirements are.
struct ByRequirements(Arc<Profile>);

impl PartialEq for ByRequirements {
    fn eq(&self, other: &Self) -> bool {
        self.0.requirements() == other.0.requirements()
    }
}

impl Eq for ByRequirements {}

impl Hash for ByRequirements {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.requirements().hash(state);
    }
}
