//! Nodes on a laptop (provider chapter §10 (2)): a machine is a slot on this computer,
//! and a bound one is a Node in the API server of its cluster. Nothing is bought and
//! nothing runs, so a whole fleet fits beside an editor.
//!
//! | Step | Effect |
//! |---|---|
//! | Create | reserves the slot, in `<state>/hosts` |
//! | Configure | makes the Node, with `spec.providerID` = `bigfleet-local://<id>` |
//! | Drain | cordons, evicts within the grace, deletes the Node |
//! | Delete | frees the slot |
//!
//! # Flags
//!
//! Those of every provider, and:
//!
//! - `--clusters ID=KUBECONFIG`, repeated or separated by commas; or a file of such
//!   lines. A cluster that is not named here is refused at Configure.
//! - `--default-cluster KUBECONFIG` takes all other cluster ids, which the conformance
//!   suite makes up as it goes.
//! - `--slot-prefix TEXT` begins the ids of slots, and with them the names of Nodes; the
//!   provider's name unless given. Providers that share a cluster need different ones.
//! - `--kubelet self` (the default) posts status and Leases every 10 s by itself;
//!   `--kubelet kwok` leaves that to kwok.
//! - `--use-fake-backend` simulates the clusters: no API server is asked anything.
//!
//! The rights that a kubeconfig needs are in `rbac.yaml`.
//!
//! # Ownership
//!
//! This provider alone makes and deletes its Nodes; a Node of the same name and another
//! `providerID` is left alone. A Node deleted by somebody else is a lost host. Its own
//! cordon ends with the Node; it never lifts one, and it never touches the annotations
//! by which the operator knows its own.

mod cloud;
mod clusters;
mod error;
mod flags;
mod hosts;
mod names;
mod slots;

pub use cloud::LocalCloud;
pub use error::Error;
pub use flags::{Kubelet, LocalFlags};
pub use names::{node_name, provider_id};
