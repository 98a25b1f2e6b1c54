//! CapacityRequests folded into the needs of a cluster.
