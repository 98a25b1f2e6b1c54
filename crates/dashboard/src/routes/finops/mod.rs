//! Where the money goes (experience chapter §3.5).

mod flag;
mod ledger;
mod savings;
mod shard;
mod snapshot;
mod trend;

pub(crate) use self::shard::Money;
pub(super) use self::{savings::savings, shard::shard, snapshot::snapshot, trend::trend};
