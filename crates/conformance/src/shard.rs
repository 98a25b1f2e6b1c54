//! The shards that the suite plays, and their fencing tokens.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

/// A fencing token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The shard.
    pub shard: Arc<str>,
    /// Its process.
    pub epoch: i64,
    /// Its attempt.
    pub sequence: i64,
}

impl Token {
    /// The token that asks for no fence.
    #[must_use]
    pub fn zero() -> Self {
        Self { shard: "".into(), epoch: 0, sequence: 0 }
    }
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} ({},{})", self.shard, self.epoch, self.sequence)
    }
}

/// A shard with an id that nobody else uses.
#[derive(Debug)]
pub struct Shard {
    id: Arc<str>,
    sequence: AtomicI64,
}

impl Shard {
    /// A shard that has sent nothing yet.
    #[must_use]
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self { id: id.into(), sequence: AtomicI64::new(0) }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The next token of its first process.
    pub fn next(&self) -> Token {
        self.at(1, self.sequence.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// This token, whatever came before.
    #[must_use]
    pub fn at(&self, epoch: i64, sequence: i64) -> Token {
        Token { shard: self.id.clone(), epoch, sequence }
    }
}
