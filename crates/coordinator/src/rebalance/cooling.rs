//! Pairs of shards that rest.

use std::{collections::BTreeMap, time::Duration};

use crate::state::{ShardId, TransferRequest};

/// What rests: nothing of one type and zone moves between two shards, either way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Resting {
    pub(super) instance_type: Box<str>,
    pub(super) zone: Box<str>,
    /// The lesser first.
    pub(super) pair: [ShardId; 2],
}

/// Since when. Until then what moved last may not show in the reports of both.
#[derive(Clone, Debug)]
pub(super) struct Cooling {
    cooldown: Duration,
    since: BTreeMap<Resting, Duration>,
}

impl Cooling {
    pub(super) const fn new(cooldown: Duration) -> Self {
        Self { cooldown, since: BTreeMap::new() }
    }

    pub(super) fn start(
        &mut self,
        (from, to): (&ShardId, &ShardId),
        request: &TransferRequest,
        now: Duration,
    ) {
        let mut pair = [from.clone(), to.clone()];
        pair.sort();
        let instance_type = request.instance_type.as_str().into();
        let zone = request.zone.as_str().into();
        self.since.insert(Resting { instance_type, zone, pair }, now);
    }

    /// What still rests.
    pub(super) fn at(&mut self, now: Duration) -> impl Iterator<Item = &Resting> {
        let cooldown = self.cooldown;
        self.since.retain(|_, since| now.saturating_sub(*since) < cooldown);
        self.since.keys()
    }
}
