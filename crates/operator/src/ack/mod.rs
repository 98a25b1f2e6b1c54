//! Pending → Acknowledged, once, after the shard said so (§4).

mod pool;
mod settle;

pub use pool::{Job, Pool};
pub use settle::{Settle, UNANSWERED, Unanswered, Verdict};
