//! One CapacityRequest per pod, for the pod's whole life.

pub mod request;
