//! Tells clusters what they could have, beside the cycle. A cluster is looked at only
//! if what its profiles could get changed, or if it has something to hear that the
//! others have heard.

use std::{sync::Arc, time::Duration};

use bigfleet_engine::NeedKey;
use bigfleet_model::{ClusterId, Fingerprint, Profile};
use bigfleet_wire::v1alpha1::{self as wire, shard_message::Payload};
use tokio::{
    sync::mpsc::UnboundedReceiver,
    time::{Instant, sleep},
};

use super::{Map, Told};
use crate::{session::Sessions, shard::Shard, views::NeedRow};

/// So many clusters are told at once, and the next after a pause: fifty thousand
/// frames in one go would make roll-ups wait for their answers.
const AT_ONCE: usize = 256;
const PAUSE: Duration = Duration::from_millis(10);

/// What a cycle left to tell.
#[derive(Debug)]
pub(super) struct News {
    /// What profiles could get: all that are wanted in a round, else those that
    /// nobody wanted before.
    pub(super) values: Vec<(Arc<Profile>, Told)>,
    /// Everybody may hear of a change.
    pub(super) round: bool,
    pub(super) appeared: Vec<Arc<NeedRow>>,
    pub(super) vanished: Vec<NeedKey>,
    /// Clusters whose session began or ended.
    pub(super) sessions: Vec<ClusterId>,
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

/// All clusters, with what they were told.
#[derive(Debug)]
pub(crate) struct Crier {
    news: UnboundedReceiver<News>,
    wanted: Map<Fingerprint, Wanted>,
    /// Clusters to look at before the next round: new ones, and those that have
    /// still to hear that a profile they do not want any more has nothing for them.
    special: Vec<(ClusterId, Fingerprint)>,
}

impl Crier {
    pub(super) fn new(news: UnboundedReceiver<News>) -> Self {
        Self { news, wanted: Map::default(), special: Vec::new() }
    }

    /// Tells until there are no more cycles.
    pub(crate) async fn run(mut self, shard: Arc<Shard>) {
        let mut several = Vec::new();
        while self.news.recv_many(&mut several, usize::MAX).await > 0 {
            let mut round = false;
            for news in several.drain(..) {
                self.take_in(&shard, &news);
                round |= news.round;
            }
            self.tell(&shard, round).await;
        }
    }

    fn take_in(&mut self, shard: &Shard, news: &News) {
        self.follow_demand(news);
        news.sessions.iter().for_each(|cluster| self.forget(shard, cluster));
        for (profile, value) in &news.values {
            if let Some(wanted) = self.wanted.get_mut(profile.fingerprint()) {
                wanted.unsettled |= wanted.value.replace(*value) != Some(*value);
            }
        }
    }

    /// Tells whoever has something to hear and may hear it.
    async fn tell(&mut self, shard: &Shard, round: bool) {
        let interval = shard.options.available_capacity_interval;
        let pace = Pace { sessions: &shard.sessions, now: Instant::now(), interval };
        for (cluster, fingerprint) in std::mem::take(&mut self.special) {
            let Some(wanted) = self.wanted.get_mut(&fingerprint) else { continue };
            if wanted.tell(&cluster, &pace) == Heard::NotYet {
                self.special.push((cluster.clone(), fingerprint.clone()));
            }
            if wanted.clusters.is_empty() {
                self.wanted.remove(&fingerprint);
            }
        }
        if round {
            for wanted in self.wanted.values_mut().filter(|wanted| wanted.unsettled) {
                wanted.unsettled = wanted.tell_all(&pace).await;
            }
        }
    }

    fn follow_demand(&mut self, news: &News) {
        for row in &news.appeared {
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
        for need in &news.vanished {
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
    fn forget(&mut self, shard: &Shard, cluster: &ClusterId) {
        for row in shard.needs_read.load().of(cluster) {
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
    async fn tell_all(&mut self, pace: &Pace<'_>) -> bool {
        let Some(value) = self.value else { return true };
        let (profile, mut left) = (&self.profile, false);
        for (at, (cluster, hearer)) in self.clusters.iter_mut().enumerate() {
            // Who has left demand is told apart from the others.
            if hearer.needs > 0 {
                left |= hearer.tell(profile, cluster, value, pace) == Heard::NotYet;
            }
            if (at + 1).is_multiple_of(AT_ONCE) {
                sleep(PAUSE).await;
            }
        }
        left
    }

    fn tell(&mut self, cluster: &ClusterId, pace: &Pace<'_>) -> Heard {
        let Some(value) = self.value else { return Heard::NotYet };
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
