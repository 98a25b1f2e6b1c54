//! Machines of an EC2-like query API.
