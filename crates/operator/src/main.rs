//! `bigfleet-operator`.

fn main() {}
