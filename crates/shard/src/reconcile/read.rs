//! The calls, and leaving out what is known.

use std::{sync::Arc, time::Duration};

use bigfleet_engine::{Comparison, Seen};
use bigfleet_model::{Class, Machine, MachineId};
use bigfleet_provider::{Error, ListFilter, RefusedRecord};
use foldhash::fast::RandomState;
use hashbrown::HashSet;
use tokio::time::{Instant, timeout_at};

use super::{Batch, Missing};
use crate::{
    live::Begun,
    shard::Shard,
    shared::{InForce, Neighbours},
};

const LIST_DEADLINE: Duration = Duration::from_secs(120);
const GET_DEADLINE: Duration = Duration::from_secs(5);
/// Records compared in one hold of the engine, so that a cycle waits for little, and
/// handed on at once where all of them are new.
const CHUNK: usize = 4096;
/// Machines read one by one in a round.
pub(super) const GETS: usize = 256;

/// What a List has told so far.
struct News {
    begun: Begun,
    /// Only what changed is listed.
    incremental: bool,
    /// No List came before, and the engine is empty: what is read is handed on bit by
    /// bit, so that half a million records are never there at once. No phase runs
    /// before the last of it.
    first: bool,
    records: Vec<Machine>,
    refused: Vec<RefusedRecord>,
    /// Machines that were known and told of.
    seen: Seen,
    /// What was ours when it began, of a shared provider.
    owned: Option<Arc<InForce>>,
    /// What it told of machines that are not.
    neighbours: Neighbours,
    /// Of records that are kept: a decoder gives each record a class of its own.
    classes: HashSet<Arc<Class>, RandomState>,
}

impl News {
    /// What there is, with what is missing if that was all.
    fn batch(&mut self, missing: Option<Missing>, more: bool) -> Batch {
        Batch {
            begun: self.begun,
            records: std::mem::take(&mut self.records),
            refused: std::mem::take(&mut self.refused),
            missing,
            incremental: self.incremental,
            not_found: Vec::new(),
            list: !more,
            more,
            owned: self.owned.clone(),
            neighbours: (!more && self.owned.is_some())
                .then(|| std::mem::take(&mut self.neighbours)),
        }
    }

    fn keep(&mut self, mut record: Machine) {
        match self.classes.get(&record.class) {
            Some(known) => record.class = known.clone(),
            None => {
                self.classes.insert(record.class.clone());
            }
        }
        self.records.push(record);
    }
}

impl Shard {
    /// Lists everything, or what changed after a cursor; the cursor to go on from.
    pub(super) async fn list(&self, cursor: Option<Vec<u8>>) -> Result<Vec<u8>, Error> {
        let (begun, before_all) = {
            let mut live = self.live();
            (live.touches.begin(), !live.is_reconciled())
        };
        let incremental = cursor.is_some();
        let mut news = News {
            begun,
            incremental,
            first: before_all && self.decider.read().await.engine.machines() == 0,
            records: Vec::new(),
            refused: Vec::new(),
            seen: Seen::default(),
            owned: self.shared.as_ref().map(|shared| shared.in_force()),
            neighbours: match incremental {
                true => Neighbours::of_changes(),
                false => Neighbours::default(),
            },
            classes: HashSet::default(),
        };
        self.reconciler.listing.send_replace(true);
        let read = self.read_pages(cursor.unwrap_or_default(), &mut news).await;
        if read.is_ok() {
            warn_of_duplicates(&mut news.records);
            let missing = self.missing(&news).await;
            let batch = news.batch(missing, false);
            self.reconciler.ready().push(batch);
        } else {
            self.live().touches.end(begun);
        }
        self.reconciler.listing.send_replace(false);
        read
    }

    /// One List, or as many pages as it takes; what is known is left out of each
    /// before the next is asked for.
    async fn read_pages(&self, cursor: Vec<u8>, news: &mut News) -> Result<Vec<u8>, Error> {
        let deadline = Instant::now() + LIST_DEADLINE;
        let page = self.options.provider_list_page;
        let mut filter = ListFilter { states: None, max_results: page, since_revision: cursor };
        loop {
            let late = || Error::DeadlineExceeded("the List did not end in time".to_owned());
            let answer = timeout_at(deadline, self.supply.list(&filter, deadline)).await;
            let list = answer.unwrap_or_else(|_| Err(late()))?;
            let told = list.machines.len() + list.refused.len();
            let more = page > 0 && told >= page as usize && list.revision != filter.since_revision;
            self.take_news(list.machines, list.refused, news).await;
            if !more {
                return Ok(list.revision);
            }
            filter.since_revision = list.revision;
        }
    }

    /// Leaves out what is known, a little at a time.
    async fn take_news(
        &self,
        machines: Vec<Machine>,
        refused: Vec<RefusedRecord>,
        news: &mut News,
    ) {
        let mut machines = machines.into_iter();
        let mut is_news = Vec::with_capacity(CHUNK);
        while !machines.as_slice().is_empty() {
            let chunk = &machines.as_slice()[..CHUNK.min(machines.len())];
            is_news.clear();
            {
                let desk = self.desk().await;
                let live = &desk.live;
                let mut comparer = desk.decider.engine.comparer();
                is_news.extend(chunk.iter().map(|machine| {
                    comparer.see(&machine.id, &mut news.seen);
                    let compared = comparer.compare(machine);
                    let moves = live.entries.contains_key(&machine.id)
                        || live.holds.contains_key(&machine.id)
                        || live.unsaid.contains(&machine.id);
                    let Some(owned) = &news.owned else {
                        return compared != Comparison::Same || moves;
                    };
                    let ours = owned.owns(machine);
                    news.neighbours.note(&owned.ownership, machine, ours);
                    // What is not ours is nothing to us, but that it must leave.
                    let known = compared != Comparison::Unknown;
                    moves || if ours { compared != Comparison::Same } else { known }
                }));
            }
            // Records that go are dropped here, where nobody waits for it.
            for (is_news, machine) in is_news.iter().zip(machines.by_ref()) {
                if *is_news {
                    news.keep(machine);
                }
            }
            if news.first && news.records.len() >= CHUNK {
                let batch = news.batch(None, true);
                self.reconciler.ready().push(batch);
                self.wake();
            }
        }
        if !refused.is_empty() {
            let desk = self.desk().await;
            let mut comparer = desk.decider.engine.comparer();
            refused.iter().for_each(|refused| comparer.see(&refused.id, &mut news.seen));
        }
        news.refused.extend(refused);
    }

    /// Machines that are known and that a full List did not tell of.
    async fn missing(&self, news: &News) -> Option<Missing> {
        if news.incremental || news.first {
            return None;
        }
        let (mut ids, known) = self.decider.read().await.engine.unseen(&news.seen);
        if !ids.is_empty() {
            // New when they were compared, and taken in since.
            let told: HashSet<&str, RandomState> =
                news.records.iter().map(|record| record.id.as_str()).collect();
            ids.retain(|id| !told.contains(id.as_str()));
        }
        Some(Missing { ids, known })
    }

    /// Reads some machines one by one.
    pub(super) async fn get_some(&self, machines: Vec<MachineId>) {
        if machines.is_empty() {
            return;
        }
        let begun = self.live().touches.begin();
        let deadline = Instant::now() + GET_DEADLINE;
        let gets = machines.iter().map(|machine| async move {
            let answer = timeout_at(deadline, self.supply.get(machine, deadline)).await;
            (machine, answer)
        });
        let mut batch = Batch {
            begun,
            records: Vec::new(),
            refused: Vec::new(),
            missing: None,
            // What is skipped is asked for again.
            incremental: true,
            not_found: Vec::new(),
            list: false,
            more: false,
            owned: self.shared.as_ref().map(|shared| shared.in_force()),
            neighbours: None,
        };
        for (machine, answer) in futures_util::future::join_all(gets).await {
            match answer {
                Ok(Ok(record)) if record.id == *machine => batch.records.push(record),
                Ok(Err(Error::NotFound(_))) => batch.not_found.push(machine.clone()),
                _ => {}
            }
        }
        self.reconciler.ready().push(batch);
    }
}

/// The last of several records of one machine counts.
fn warn_of_duplicates(records: &mut Vec<Machine>) {
    let mut last: HashSet<MachineId, RandomState> = HashSet::default();
    let before = records.len();
    records.reverse();
    records.retain(|record| last.insert(record.id.clone()));
    records.reverse();
    if records.len() < before {
        tracing::warn!(
            machines = before - records.len(),
            "the provider listed machines twice; the last record of each counts"
        );
    }
}
