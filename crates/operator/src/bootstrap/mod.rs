//! What a machine is told to join the cluster.

pub mod template;
