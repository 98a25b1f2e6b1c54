//! The newest records, and those of one need among them.

use std::{
    collections::{HashMap, VecDeque},
    hash::BuildHasher,
    sync::Arc,
};

use foldhash::fast::FixedState;

use super::record::Record;

/// The last records of this process. Sequence numbers in it have no holes.
#[derive(Debug)]
pub(super) struct Ring {
    capacity: usize,
    entries: VecDeque<Entry>,
    /// Hash of a need → its newest record here. Each entry knows the one before
    /// it, so that nobody searches the ring.
    newest: HashMap<u64, i64>,
}

#[derive(Debug)]
struct Entry {
    record: Arc<Record>,
    need: Option<u64>,
    before: Option<i64>,
}

impl Ring {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, entries: VecDeque::new(), newest: HashMap::new() }
    }

    pub(super) fn push(&mut self, record: Arc<Record>) {
        if self.entries.len() == self.capacity
            && let Some(evicted) = self.entries.pop_front()
            && let Some(need) = evicted.need
            && self.newest.get(&need) == Some(&evicted.record.seq)
        {
            self.newest.remove(&need);
        }
        let named = !record.need.is_empty();
        let need = named.then(|| hash(&record.cluster, &record.need, &record.group));
        let before = need.and_then(|need| self.newest.insert(need, record.seq));
        self.entries.push_back(Entry { record, need, before });
    }

    /// The oldest that is kept.
    pub(super) fn oldest(&self) -> Option<i64> {
        self.entries.front().map(|entry| entry.record.seq)
    }

    /// Up to `limit` records after that one, oldest first.
    pub(super) fn after(&self, seq: i64, limit: usize) -> Vec<Arc<Record>> {
        let from = self.oldest().map_or(0, |oldest| at(seq.saturating_add(1), oldest));
        self.entries.iter().skip(from).take(limit).map(|entry| entry.record.clone()).collect()
    }

    /// Up to `limit` records of a need, newest first.
    pub(super) fn of_need(
        &self,
        cluster: &str,
        fingerprint: &str,
        group: &str,
        limit: usize,
    ) -> Vec<Arc<Record>> {
        let mut next = self.newest.get(&hash(cluster, fingerprint, group)).copied();
        let mut found = Vec::new();
        while let Some(seq) = next
            && let Some(oldest) = self.oldest().filter(|oldest| seq >= *oldest)
            && let Some(entry) = self.entries.get(at(seq, oldest))
            && found.len() < limit
        {
            let record = &entry.record;
            // Another need may share the hash.
            if (&*record.cluster, &*record.need, &*record.group) == (cluster, fingerprint, group) {
                found.push(record.clone());
            }
            next = entry.before;
        }
        found
    }
}

/// Where a sequence number lies, if the first is `oldest`.
fn at(seq: i64, oldest: i64) -> usize {
    usize::try_from(seq.saturating_sub(oldest)).unwrap_or(0)
}

fn hash(cluster: &str, fingerprint: &str, group: &str) -> u64 {
    FixedState::default().hash_one((cluster, fingerprint, group))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(seq: i64, need: &str) -> Arc<Record> {
        let mut record = Record::actuation("active", "", "");
        (record.seq, record.need) = (seq, need.into());
        record.into()
    }

    fn seqs(records: &[Arc<Record>]) -> Vec<i64> {
        records.iter().map(|record| record.seq).collect()
    }

    #[test]
    fn keeps_the_last_and_finds_those_of_a_need() {
        let mut ring = Ring::new(4);
        for (seq, need) in [(11, "a"), (12, "b"), (13, "a"), (14, ""), (15, "a"), (16, "c")] {
            ring.push(record(seq, need));
        }
        assert_eq!(ring.oldest(), Some(13));
        assert_eq!(seqs(&ring.after(0, 9)), [13, 14, 15, 16]);
        assert_eq!(seqs(&ring.after(14, 1)), [15]);
        assert_eq!(seqs(&ring.after(16, 9)), [0; 0]);
        assert_eq!(seqs(&ring.of_need("", "a", "", 9)), [15, 13], "11 has left");
        assert_eq!(seqs(&ring.of_need("", "a", "", 1)), [15]);
        assert_eq!(seqs(&ring.of_need("", "b", "", 9)), [0; 0]);
        assert_eq!(seqs(&ring.of_need("x", "a", "", 9)), [0; 0]);
        assert_eq!(ring.newest.len(), 2, "b went with its only record");
    }
}
