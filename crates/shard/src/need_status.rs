//! How needs stand, for operators that want to know (wire chapter §6.1).

use std::{sync::Arc, time::Duration};

use bigfleet_engine::{Detail, NeedKey, Reason};
use bigfleet_model::{ClusterId, Fingerprint, Group};
use bigfleet_wire::v1alpha1::{self as wire, shard_message::Payload};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tokio::time::Instant;

use crate::{
    shard::{Decider, Shard},
    views::{
        Changes, NeedRow, NeedSnapshot,
        wire::{count, cycle_number, detail, reason, resources},
    },
};

/// Two frames of one need are at least so far apart.
const APART: Duration = Duration::from_secs(5);

/// What a frame is sent for when it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standing {
    unmet: Option<(Reason, Option<Detail>)>,
    coming: bool,
}

impl Standing {
    fn of(row: &NeedRow) -> Self {
        let unmet = row.short.as_ref().map(|short| (short.reason, short.detail));
        Self { unmet, coming: row.coming > 0 }
    }

    /// What an operator takes for granted of a need that it has heard nothing of.
    const fn is_quiet(self) -> bool {
        self.unmet.is_none() && !self.coming
    }
}

/// What an operator knows of a need.
#[derive(Clone, Copy, Debug)]
struct Known {
    standing: Standing,
    /// When it was told; none if it takes it for granted.
    at: Option<Instant>,
}

type Needs = HashMap<(Fingerprint, Group), Known, RandomState>;

/// All operators that want to know, with what they know.
#[derive(Debug, Default)]
pub(crate) struct Statuses {
    clusters: HashMap<ClusterId, Needs, RandomState>,
    /// Rows of needs whose last frame is too young for the next.
    waiting: HashMap<NeedKey, Arc<NeedRow>, RandomState>,
}

/// What a cycle left to tell.
pub(crate) struct Told<'a> {
    pub(crate) rows: &'a NeedSnapshot,
    pub(crate) changes: &'a Changes,
    /// Clusters whose session began, ended or is complete.
    pub(crate) sessions: &'a [ClusterId],
}

impl Statuses {
    /// After a cycle: tells every operator what changed for its needs.
    pub(crate) fn tell(&mut self, shard: &Shard, decider: &Decider, told: &Told<'_>) {
        let teller = Teller { shard, decider, cycle: told.rows.cycle, now: Instant::now() };
        for cluster in told.sessions {
            self.begin(&teller, cluster, told.rows);
        }
        for need in &told.changes.vanished {
            self.waiting.remove(need);
            if let Some(needs) = self.clusters.get_mut(&need.cluster) {
                needs.remove(&(need.fingerprint.clone(), need.group.clone()));
            }
        }
        if self.clusters.is_empty() {
            self.waiting.clear();
            return;
        }
        for refreshed in &told.changes.refreshed {
            self.consider(&teller, &refreshed.row);
        }
        for row in std::mem::take(&mut self.waiting).into_values() {
            self.consider(&teller, &row);
        }
    }

    /// A session is complete, or there is another one or none.
    fn begin(&mut self, teller: &Teller<'_>, cluster: &ClusterId, rows: &NeedSnapshot) {
        if !teller.shard.sessions.takes_need_status(cluster) {
            self.clusters.remove(cluster);
            return;
        }
        let needs = self.clusters.entry_ref(cluster).or_default();
        needs.clear();
        for row in rows.of(cluster) {
            let standing = Standing::of(row);
            let told = !standing.is_quiet() && teller.send(row);
            needs.insert(name(row), Known { standing, at: told.then_some(teller.now) });
        }
    }

    fn consider(&mut self, teller: &Teller<'_>, row: &Arc<NeedRow>) {
        let Some(needs) = self.clusters.get_mut(&row.need.cluster) else { return };
        let standing = Standing::of(row);
        let known = needs.get(&name(row)).copied();
        if known.is_some_and(|known| known.standing == standing) {
            return;
        }
        let last = known.and_then(|known| known.at);
        if last.is_some_and(|last| teller.now < last + APART) {
            self.waiting.insert(row.key(), row.clone());
        } else if teller.send(row) {
            needs.insert(name(row), Known { standing, at: Some(teller.now) });
        }
    }
}

fn name(row: &NeedRow) -> (Fingerprint, Group) {
    (row.need.profile.fingerprint().clone(), row.need.group.clone())
}

/// What frames are made of.
struct Teller<'a> {
    shard: &'a Shard,
    decider: &'a Decider,
    cycle: u64,
    now: Instant,
}

impl Teller<'_> {
    fn send(&self, row: &NeedRow) -> bool {
        let (fingerprint, group) = name(row);
        let key = format!("need:{fingerprint}\0{group}");
        let mut update = wire::NeedStatusUpdate {
            supersedes_key: key.clone(),
            profile_fingerprint: fingerprint.to_string(),
            group: group.to_string(),
            satisfied: row.short.is_none(),
            age_cycles_unmet: count(row.age(self.cycle)),
            machines_coming: count(row.coming),
            cycle: cycle_number(self.cycle),
            ..wire::NeedStatusUpdate::default()
        };
        if let Some(short) = &row.short {
            update.set_unmet_reason(reason(short.reason));
            update.set_unmet_detail(detail(short.detail));
            update.residual_deficit = Some(resources(&short.deficit));
            update.detail_text = self.shard.detail_text(&self.decider.engine, row);
        }
        let message = wire::ShardMessage { payload: Some(Payload::NeedStatus(update)) };
        self.shard.sessions.put_state(&row.need.cluster, key, message)
    }
}
