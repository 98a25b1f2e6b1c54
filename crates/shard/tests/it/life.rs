//! A machine's whole life.

use bigfleet_model::MachineState;
use bigfleet_provider::fake::Seed;
use bigfleet_scripted::cluster::{Cluster, Shape};
use bigfleet_shard::Options;

use crate::rig::{Rig, slow};

const GI: i64 = 1 << 30;

#[tokio::test(start_paused = true)]
async fn demand_buys_machines_and_its_end_gives_them_back() {
    let rig =
        Rig::start(Options::default(), slow(), &Seed { speculative: 20, ..Seed::default() }).await;
    let operator = rig.operator("c").await;
    let mut cluster = Cluster::new("c", 1);
    let pods = cluster.deploy(&Shape::new(1000, GI), 3);
    let picture = operator.read(|state| state.picture.clone());
    operator.roll_up(cluster.step(0, &picture).needs).await.expect("accepted");
    rig.until("configured", |rig| rig.count(MachineState::Configured) > 0).await;
    let bought = rig.count(MachineState::Configured);
    rig.pass(600).await;
    assert_eq!(rig.count(MachineState::Configured), bought, "constant demand moves nothing");
    cluster.scale(pods, 0);
    operator.roll_up(vec![]).await.expect("answered");
    rig.until("released", |rig| rig.count(MachineState::Speculative) == 20).await;
    rig.stop().await;
}
