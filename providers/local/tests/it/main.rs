//! The binary as its users run it: over the wire, against a real API server, with the
//! rights of `rbac.yaml` and no others.
//!
//! One control plane serves all checks, since each would cost several seconds.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cluster;
mod drain;
mod lifecycle;
mod loss;
mod process;
mod start;

use cluster::Cluster;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_in_a_real_api_server() {
    let Some(cluster) = Cluster::start_or_skip() else {
        return;
    };
    let admin = cluster.try_kubectl(&["auth", "can-i", "*", "*", cluster::AS_PROVIDER]);
    assert!(admin.is_err(), "rbac.yaml makes the provider an administrator: {admin:?}");

    lifecycle::a_machine_is_a_node_from_configure_to_drain(&cluster).await;
    lifecycle::a_node_of_another_owner_is_left_alone(&cluster).await;
    drain::a_budget_holds_until_the_grace_is_over(&cluster).await;
    loss::a_node_deleted_by_hand_is_a_lost_host(&cluster).await;
    loss::a_restart_goes_on_with_heartbeats(&cluster).await;
    loss::a_node_outlives_its_state(&cluster).await;
}
