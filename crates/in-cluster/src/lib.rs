//! What the processes inside a cluster share.
