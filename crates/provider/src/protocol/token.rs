//! Who calls, and how new the call is.

use std::sync::Arc;

/// The fencing token of a mutation. Numbers are compared, never computed with:
/// `i64::MAX` and negative values are ordinary ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// The shard.
    pub shard_id: Arc<str>,
    /// Rises with every process of that shard.
    pub epoch: i64,
    /// Fresh per attempt within an epoch.
    pub sequence: i64,
}

impl Token {
    /// A token of this shard.
    pub fn new(shard_id: impl Into<Arc<str>>, epoch: i64, sequence: i64) -> Self {
        Self { shard_id: shard_id.into(), epoch, sequence }
    }

    /// The token of a caller that does not take part in fencing.
    pub fn unfenced() -> Self {
        Self::new("", 0, 0)
    }

    /// All three fields are zero.
    pub fn is_unfenced(&self) -> bool {
        self.is_valid() && self.shard_id.is_empty()
    }

    /// Numbers without a shard belong to nobody.
    pub fn is_valid(&self) -> bool {
        !self.shard_id.is_empty() || (self.epoch == 0 && self.sequence == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_all_zero_is_unfenced_and_numbers_need_a_shard() {
        for (shard, epoch, sequence, unfenced, valid) in [
            ("", 0, 0, true, true),
            ("", 5, 0, false, false),
            ("", 0, 1, false, false),
            ("", -1, 0, false, false),
            ("a", 0, 0, false, true),
            ("a", -1, -1, false, true),
            ("a", i64::MAX, i64::MIN, false, true),
        ] {
            let token = Token::new(shard, epoch, sequence);
            assert_eq!((token.is_unfenced(), token.is_valid()), (unfenced, valid), "{token:?}");
        }
    }
}
