//! A real control plane for tests, on loopback: etcd and kube-apiserver, and for a whole cluster
//! kube-controller-manager and kube-scheduler. Nodes are the test's to bring.
//!
//! ```no_run
//! use bigfleet_testkit::kube::ControlPlane;
//!
//! // In a test: no binaries, no test.
//! let Some(cluster) = ControlPlane::start_or_skip() else { return };
//! let output = cluster.kubectl().args(["get", "namespaces"]).output();
//! ```
//!
//! Binaries are looked for in `KUBEBUILDER_ASSETS`, then in `PATH`. Without
//! them the test is skipped with a message; `BIGFLEET_REQUIRE_KUBE=1` turns
//! the skip into a failure, so that CI cannot go green by skipping.

mod audit;
mod binaries;
mod certificates;
mod component;
mod control_plane;
mod error;
mod kubeconfig;
mod process;

pub use audit::Removal;
pub use control_plane::ControlPlane;
pub use error::Error;
