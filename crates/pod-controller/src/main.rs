//! `bigfleet-unschedulable-pod-controller`.

fn main() {}
