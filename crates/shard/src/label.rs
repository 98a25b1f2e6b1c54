//! Values that have a name on metrics and in logs.

pub(crate) use bigfleet_net::labels;
