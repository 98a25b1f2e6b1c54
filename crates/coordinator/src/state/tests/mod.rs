//! A table test for each row of coordinator chapter §5: what is checked and what it does.

mod codec;
mod ownership;
mod payload;
mod recovery;
mod registry;
mod transfers;

use super::*;

/// A state and the log that made it.
#[derive(Clone, Default)]
pub(super) struct World {
    pub(super) state: State,
    pub(super) index: u64,
}

impl World {
    /// Shards `a`, `b`, `c` in shared scope and `own` with a scope of its own.
    pub(super) fn new() -> Self {
        let mut world = Self::default();
        for id in ["a", "b", "c", "own"] {
            world.ok(&add_shard(id, id != "own"));
        }
        world
    }

    /// A valid command.
    pub(super) fn ok(&mut self, command: &Command) -> Effect {
        self.index += 1;
        let outcome = self.state.apply(self.index, command);
        assert_eq!(self.state.applied_index, self.index);
        outcome.unwrap_or_else(|refused| panic!("{command:?}: {refused}"))
    }

    /// One that is refused, and then changes no table.
    pub(super) fn refused(&mut self, command: &Command) -> Refused {
        let before = self.state.clone();
        self.index += 1;
        let outcome = self.state.apply(self.index, command);
        let refused = outcome.err().unwrap_or_else(|| panic!("{command:?} is accepted"));
        assert_eq!(self.state.applied_index, self.index, "the entry is applied");
        assert_eq!(self.state.kind_in_use, before.kind_in_use.max(command.kind()));
        let (applied_index, kind_in_use) = (self.state.applied_index, self.state.kind_in_use);
        assert_eq!(self.state, State { applied_index, kind_in_use, ..before }, "{command:?}");
        refused
    }

    /// One that finds all as it wants it.
    pub(super) fn no_op(&mut self, command: &Command) {
        let before = self.state.clone();
        assert_eq!(self.ok(command), Effect::Unchanged, "{command:?}");
        let (applied_index, kind_in_use) = (self.state.applied_index, self.state.kind_in_use);
        assert_eq!(self.state, State { applied_index, kind_in_use, ..before }, "{command:?}");
    }

    /// Applies one and tells whose Assignments are due after it.
    pub(super) fn touches(&mut self, command: &Command) -> Vec<String> {
        self.ok(command);
        let index = self.index;
        let touched = self.state.shards.iter().filter(|(_, shard)| shard.changed_at == index);
        touched.map(|(id, _)| id.to_string()).collect()
    }

    /// A row as `owner<mark`.
    pub(super) fn row(&self, key: &Key) -> String {
        let Some(row) = self.state.row(key) else { return "none".to_owned() };
        let owner = row.owner.as_ref().map_or("-", ShardId::as_str);
        let mark = row.releasing.as_ref().map(|mark| format!("<{}", mark.from));
        format!("{owner}{}", mark.unwrap_or_default())
    }
}

pub(super) fn add_shard(id: &str, shared: bool) -> Command {
    Command::AddShard {
        id: id.into(),
        address: format!("{id}:7780"),
        registered_at: 7,
        epoch: 0,
        instance: 0,
        shared,
    }
}

pub(super) fn zone(value: &str) -> Domain {
    Domain::new("zone", value)
}

pub(super) fn zone_key(value: &str) -> Key {
    Key::Domain(zone(value))
}

pub(super) fn assign(value: &str, shard: &str) -> Command {
    Command::AssignDomain { domain: zone(value), shard: shard.into() }
}

pub(super) fn move_domain(value: &str, from: &str, to: &str) -> Command {
    Command::MoveDomain { domain: zone(value), from: from.into(), to: to.into() }
}

pub(super) fn bind(cluster: &str, shard: &str) -> Command {
    Command::BindCluster { cluster: cluster.into(), shard: shard.into() }
}

pub(super) fn remove(shard: &str) -> Command {
    Command::RemoveShard { id: shard.into() }
}

pub(super) fn begin(id: &str, from: &str, to: &str) -> Command {
    Command::BeginTransfer {
        id: id.into(),
        kind: TransferKind::Idle,
        from: from.into(),
        to: to.into(),
        request: TransferRequest { count: 2, ..TransferRequest::default() },
    }
}

pub(super) fn release(id: &str, home: &str, machines: &[&str]) -> Command {
    Command::ReleaseTransfer {
        id: id.into(),
        home: zone(home),
        machine_ids: machines.iter().map(|&machine| machine.into()).collect(),
    }
}

pub(super) fn settle(shard: &str, settled: &[(&str, &str)]) -> Command {
    let settled = settled
        .iter()
        .map(|&(transfer, machine)| Settled { transfer: transfer.into(), machine: machine.into() })
        .collect();
    Command::Settle { shard: shard.into(), settled }
}
