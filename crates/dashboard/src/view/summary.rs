//! What one cycle of a shard came to.

use std::collections::BTreeMap;

use bigfleet_wire::v1alpha1::CycleSummary;
use serde::{Serialize, Serializer, ser::SerializeMap as _};

use super::{capacity_type, finite, instant, state};

/// One frame of `WatchSummary`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary<'a> {
    shard: &'a str,
    cycle: i64,
    computed_at_unix_nanos: Option<i64>,
    shard_epoch: i64,
    phase_micros: &'a BTreeMap<String, i64>,
    machines: Vec<Count>,
    #[serde(serialize_with = "finite_values")]
    dollars_per_hour: &'a BTreeMap<String, f64>,
    actions: &'a BTreeMap<String, i32>,
    shortfalls: &'a BTreeMap<String, i32>,
    sessions: i32,
    needs: i32,
    needs_unmet: i32,
    queue_depth: i32,
    actuation_paused: bool,
    dry_run: bool,
    fenced: bool,
    last_reconcile_unix_nanos: Option<i64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Count {
    state: &'static str,
    capacity_type: &'static str,
    count: i32,
}

fn finite_values<S: Serializer>(
    map: &&BTreeMap<String, f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut out = serializer.serialize_map(Some(map.len()))?;
    for (key, value) in *map {
        out.serialize_entry(key, &finite(*value))?;
    }
    out.end()
}

impl<'a> Summary<'a> {
    /// Of this shard.
    #[must_use]
    pub(crate) fn new(shard: &'a str, wire: &'a CycleSummary) -> Self {
        let count = |one: &bigfleet_wire::v1alpha1::MachineCount| Count {
            state: state(one.state),
            capacity_type: capacity_type(one.capacity_type),
            count: one.count,
        };
        Self {
            shard,
            cycle: wire.cycle,
            computed_at_unix_nanos: instant(wire.computed_at_unix_nanos),
            shard_epoch: wire.shard_epoch,
            phase_micros: &wire.phase_micros,
            machines: wire.machines.iter().map(count).collect(),
            dollars_per_hour: &wire.dollars_per_hour,
            actions: &wire.actions,
            shortfalls: &wire.shortfalls,
            sessions: wire.sessions,
            needs: wire.needs,
            needs_unmet: wire.needs_unmet,
            queue_depth: wire.queue_depth,
            actuation_paused: wire.actuation_paused,
            dry_run: wire.dry_run,
            fenced: wire.fenced,
            last_reconcile_unix_nanos: instant(wire.last_reconcile_unix_nanos),
        }
    }
}

/// A notice that the needs of a shard were judged again.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NeedsNotice<'a> {
    shard: &'a str,
    cycle: i64,
    computed_at_unix_nanos: Option<i64>,
    needs: i32,
    needs_unmet: i32,
}

impl<'a> NeedsNotice<'a> {
    /// Of this shard.
    #[must_use]
    pub(crate) fn new(shard: &'a str, wire: &CycleSummary) -> Self {
        Self {
            shard,
            cycle: wire.cycle,
            computed_at_unix_nanos: instant(wire.computed_at_unix_nanos),
            needs: wire.needs,
            needs_unmet: wire.needs_unmet,
        }
    }
}
