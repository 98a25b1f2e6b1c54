//! Machines as Nodes and UpcomingNodes; drains.
