//! What clusters could have (§13): a hint per cluster and profile in its demand,
//! never a reservation.
//!
//! What a profile could get is computed once for all clusters that want it, and at
//! most once in an interval, for nobody may be told sooner. A cluster is looked at
//! only if that changed, or if it has something to hear that the others have heard.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use bigfleet_engine::{Available, Engine};
use bigfleet_model::{ClusterId, Fingerprint, Profile};
use bigfleet_wire::v1alpha1::{
    self as wire, available_capacity_update::Confidence, shard_message::Payload,
};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tokio::time::Instant;

use crate::{
    session::Sessions,
    shard::Shard,
    views::{Changes, NeedSnapshot, wire::count},
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

/// A profile that somebody wants.
#[derive(Debug)]
struct Wanted {
    profile: Arc<Profile>,
    value: Option<Told>,
    /// Some cluster has not heard the value.
    unsettled: bool,
    clusters: Map<ClusterId, Hearer>,
}

/// A cluster that wants a profile, or did a moment ago.
#[derive(Clone, Copy, Debug, Default)]
struct Hearer {
    /// Needs of this profile; none once it is out of demand.
    needs: usize,
    told: Option<(Told, Instant)>,
}

/// All hints.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    wanted: Map<Fingerprint, Wanted>,
    /// Clusters to look at before the next round: new ones, and those that have
    /// still to hear that a profile they do not want any more has nothing for them.
    special: Vec<(ClusterId, Fingerprint)>,
    next_round: Option<Instant>,
}

impl Hints {
    /// After a cycle: tells whoever has something to hear and may hear it.
    pub(crate) fn tell(
        &mut self,
        shard: &Shard,
        engine: &Engine,
        rows: &NeedSnapshot,
        changes: &Changes,
        sessions: &[ClusterId],
    ) {
        self.follow_demand(changes);
        sessions.iter().for_each(|cluster| self.forget(cluster, rows));
        let interval = shard.options.available_capacity_interval;
        let now = Instant::now();
        let round = self.next_round.is_none_or(|next| next <= now);
        if round {
            self.next_round = Some(now + interval);
        }
        if !round && self.special.is_empty() {
            return;
        }
        let mut values = Values { supply: engine.hints(), known: Map::default() };
        let pace = Pace { sessions: &shard.sessions, now, interval };
        for (cluster, fingerprint) in std::mem::take(&mut self.special) {
            let Some(wanted) = self.wanted.get_mut(&fingerprint) else { continue };
            let value = values.of(&wanted.profile);
            if wanted.tell(&cluster, value, &pace) == Heard::NotYet {
                self.special.push((cluster.clone(), fingerprint.clone()));
            }
            wanted.unsettled |= wanted.value != Some(value);
            if wanted.clusters.is_empty() {
                self.wanted.remove(&fingerprint);
            }
        }
        for wanted in self.wanted.values_mut().filter(|_| round) {
            let value = values.of(&wanted.profile);
            if wanted.value.replace(value) != Some(value) || wanted.unsettled {
                wanted.unsettled = wanted.tell_all(value, &pace);
            }
        }
    }

    fn follow_demand(&mut self, changes: &Changes) {
        for row in changes.appeared() {
            let (cluster, profile) = (&row.need.cluster, &row.need.profile);
            let fingerprint = profile.fingerprint();
            let wanted = self.wanted.entry_ref(fingerprint).or_insert_with(|| Wanted {
                profile: profile.clone(),
                value: None,
                unsettled: true,
                clusters: Map::default(),
            });
            let hearer = wanted.clusters.entry_ref(cluster).or_default();
            hearer.needs += 1;
            if hearer.needs == 1 {
                self.special.push((cluster.clone(), fingerprint.clone()));
            }
        }
        for need in &changes.vanished {
            let wanted = self.wanted.get_mut(&need.fingerprint);
            let hearer = wanted.and_then(|wanted| wanted.clusters.get_mut(&need.cluster));
            if let Some(hearer) = hearer {
                hearer.needs -= 1;
                if hearer.needs == 0 {
                    self.special.push((need.cluster.clone(), need.fingerprint.clone()));
                }
            }
        }
    }

    /// A session began or ended: its operator knows nothing yet, or any more.
    fn forget(&mut self, cluster: &ClusterId, rows: &NeedSnapshot) {
        for row in rows.of(cluster) {
            let fingerprint = row.need.profile.fingerprint();
            let wanted = self.wanted.get_mut(fingerprint);
            let hearer = wanted.and_then(|wanted| wanted.clusters.get_mut(cluster));
            if let Some(hearer) = hearer {
                hearer.told = None;
                self.special.push((cluster.clone(), fingerprint.clone()));
            }
        }
    }
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

/// Who may be told now.
struct Pace<'a> {
    sessions: &'a Sessions,
    now: Instant,
    interval: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    /// Knows.
    Yes,
    /// Was told something else a moment ago.
    NotYet,
    /// Nobody is there to hear.
    Nobody,
}

impl Wanted {
    /// Tells all clusters; whether one is left that has not heard.
    fn tell_all(&mut self, value: Told, pace: &Pace<'_>) -> bool {
        let (profile, mut left) = (&self.profile, false);
        for (cluster, hearer) in &mut self.clusters {
            // Who has left demand is told apart from the others.
            if hearer.needs > 0 {
                left |= hearer.tell(profile, cluster, value, pace) == Heard::NotYet;
            }
        }
        left
    }

    fn tell(&mut self, cluster: &ClusterId, value: Told, pace: &Pace<'_>) -> Heard {
        let Some(hearer) = self.clusters.get_mut(cluster) else { return Heard::Nobody };
        if hearer.needs > 0 {
            return hearer.tell(&self.profile, cluster, value, pace);
        }
        let never = hearer.told.is_none();
        let heard = if never {
            Heard::Nobody
        } else {
            hearer.tell(&self.profile, cluster, Told::NOTHING, pace)
        };
        // It is kept for as long as the next hint of this key must wait.
        let recent = hearer.told.is_some_and(|(_, at)| pace.now < at + pace.interval);
        if heard == Heard::Nobody || !recent {
            self.clusters.remove(cluster);
            return Heard::Nobody;
        }
        Heard::NotYet
    }
}

impl Hearer {
    fn tell(
        &mut self,
        profile: &Profile,
        cluster: &ClusterId,
        value: Told,
        pace: &Pace<'_>,
    ) -> Heard {
        match self.told {
            Some((told, _)) if told == value => return Heard::Yes,
            Some((_, at)) if pace.now < at + pace.interval => return Heard::NotYet,
            _ => {}
        }
        if !pace.sessions.is_connected(cluster) {
            return Heard::Nobody;
        }
        let (key, message) = frame(profile, value);
        if !pace.sessions.put_state(cluster, key, message) {
            return Heard::Nobody;
        }
        self.told = Some((value, pace.now));
        Heard::Yes
    }
}

/// A hint as it travels (wire chapter §4).
fn frame(profile: &Profile, told: Told) -> (String, wire::ShardMessage) {
    let key = format!("available:{}", profile.fingerprint());
    let update = wire::AvailableCapacityUpdate {
        supersedes_key: key.clone(),
        requirements: profile.requirements().iter().map(Into::into).collect(),
        // A profile has no single shape.
        resources: None,
        available_count: told.count,
        confidence: told.confidence.into(),
        cost_per_hour: told.cost,
    };
    (key, wire::ShardMessage { payload: Some(Payload::AvailableCapacity(update)) })
}
