//! The shard: the process around the decision engine (`docs/spec/shard.md`).
