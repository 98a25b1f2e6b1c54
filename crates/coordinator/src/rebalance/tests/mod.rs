//! The rules of coordinator chapter §9, one by one, on a clock of our own.

mod afterwards;
mod donors;
mod limits;
mod tiers;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bigfleet_wire::v1alpha1 as wire;

use super::*;
use crate::state::{Domain, Transfer, TransferRequest};

/// Where all shards have their provider.
pub(super) const PROVIDER: &str = "provider:9000";

/// A fleet that passes are made over.
pub(super) struct Fleet {
    pub(super) picture: Picture,
    pub(super) rebalancer: Rebalancer,
    pub(super) now: Duration,
    reports: BTreeMap<String, (wire::ShardSummary, Vec<wire::Shortfall>)>,
}

impl Fleet {
    pub(super) fn new(settings: Settings) -> Self {
        let now = Duration::from_secs(1_000);
        Self {
            picture: Picture::default(),
            rebalancer: Rebalancer::new(settings, now, 1),
            now,
            reports: BTreeMap::new(),
        }
    }

    fn report(
        &mut self,
        shard: &str,
        change: impl FnOnce(&mut wire::ShardSummary, &mut Vec<wire::Shortfall>),
    ) {
        let (summary, shortfalls) = self.reports.entry(shard.to_owned()).or_default();
        if summary.provider_address.is_empty() {
            summary.provider_address = PROVIDER.to_owned();
        }
        change(summary, shortfalls);
        let figures = Arc::new(Figures::of(summary, shortfalls));
        self.picture.shards.insert(shard.into(), figures);
    }

    pub(super) fn has(mut self, shard: &str, pool: wire::PoolRow) -> Self {
        self.report(shard, |summary, _| summary.pools.push(pool));
        self
    }

    pub(super) fn lacks(mut self, shard: &str, shortfall: wire::Shortfall) -> Self {
        self.report(shard, |_, shortfalls| shortfalls.push(shortfall));
        self
    }

    pub(super) fn at_provider(mut self, shard: &str, address: &str) -> Self {
        self.report(shard, |summary, _| address.clone_into(&mut summary.provider_address));
        self
    }

    /// A transfer that is under way.
    pub(super) fn under_way(mut self, id: &str, transfer: Transfer) -> Self {
        self.picture.transfers.insert(id.into(), transfer);
        self
    }

    /// What a pass proposes: `donor→recipient count kind type/zone`.
    pub(super) fn pass(&mut self) -> Vec<String> {
        self.outcome().begin.iter().map(text).collect()
    }

    pub(super) fn outcome(&mut self) -> Pass {
        self.rebalancer.pass(&self.picture, self.now)
    }

    pub(super) fn wait(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }
}

pub(super) fn fleet() -> Fleet {
    Fleet::new(Settings::default())
}

fn text(command: &Command) -> String {
    let Command::BeginTransfer { kind, from, to, request, .. } = command else {
        panic!("{command:?} begins nothing");
    };
    let TransferRequest { count, instance_type, zone, .. } = request;
    format!("{from}→{to} {count} {kind:?} {instance_type}/{zone}")
}

pub(super) fn resources(entries: &[(&str, &str)]) -> Option<wire::Resources> {
    let entry = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    Some(wire::Resources { resources: entries.iter().map(entry).collect() })
}

/// Idle machines of 4 cores and 16 GiB.
pub(super) fn idle(instance_type: &str, zone: &str, idle: i32) -> wire::PoolRow {
    wire::PoolRow {
        instance_type: instance_type.to_owned(),
        zone: zone.to_owned(),
        capacity_type: 1,
        idle,
        allocatable: resources(&[("cpu", "4"), ("memory", "16Gi")]),
        ..wire::PoolRow::default()
    }
}

/// So many cores, for so many cycles.
pub(super) fn cores(cores: u32, age_cycles: i32) -> wire::Shortfall {
    wire::Shortfall {
        deficit: resources(&[("cpu", &cores.to_string())]),
        min_unit: resources(&[("cpu", "1")]),
        priority: 100,
        age_cycles,
        interruption_penalty_bucket: 10,
        ..wire::Shortfall::default()
    }
}

pub(super) fn requirement(
    key: &str,
    operator: bigfleet_model::Operator,
    values: &[&str],
) -> wire::NodeSelectorRequirement {
    wire::NodeSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_wire(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    }
}

/// So many idle machines of `m/a` on their way, asked for as [`cores`] asks.
pub(super) fn transfer(from: &str, to: &str, phase: TransferPhase, count: i32) -> Transfer {
    let machines = if phase == TransferPhase::Moved { count } else { 0 };
    Transfer {
        kind: TransferKind::Idle,
        from: from.into(),
        to: to.into(),
        request: TransferRequest {
            capacity_type: 1,
            count,
            instance_type: "m".to_owned(),
            zone: "a".to_owned(),
            min_unit: [("cpu".to_owned(), "1".to_owned())].into(),
            ..TransferRequest::default()
        },
        phase,
        home: (machines > 0).then(|| Domain::new("rack", "1")),
        machine_ids: (0..machines).map(|n| format!("{from}-{n}").as_str().into()).collect(),
    }
}
