//! Nodes of clusters on this machine.
