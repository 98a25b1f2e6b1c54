use bigfleet_wire::v1alpha1::MachineState;

use crate::rig::{Rig, until};

const RELOADS: &str = "bigfleet_provider_inventory_reloads_total";

#[tokio::test]
async fn a_changed_file_is_followed_and_a_wrong_one_is_not() {
    let mut rig = Rig::new().flag("--sweep-interval=500ms");
    rig.inventory(&["m-1", "m-2"]);
    rig.start().await;
    rig.configure("m-1", "").await;
    rig.reaches("m-1", MachineState::Configured).await;

    let refused = format!("{RELOADS}{{outcome=\"refused\"}}");
    rig.write_inventory("provider: metal-test\nmachines: [{bmc: {password: hunter2}}]\n");
    until(|| rig.metric(&refused) == 1.0).await;
    assert_eq!(rig.list().await.len(), 2);
    let stderr = rig.stderr();
    assert_eq!(stderr.matches("inventory refused").count(), 1, "{stderr}");
    assert!(stderr.contains("machines[0].bmc.password: ") && !stderr.contains("hunter2"));

    // m-1 is at work: it goes when it is IDLE again, and its board is still known.
    rig.hook("drain", r#"echo "$INPUT" | grep -q '"bmc":{"address":"h","secret":"s"}'"#);
    rig.inventory(&["m-3"]);
    let loaded = format!("{RELOADS}{{outcome=\"loaded\"}}");
    until(|| rig.metric(&loaded) == 1.0).await;
    wait_for(&mut rig, &["m-1", "m-3"]).await;
    assert_eq!(rig.get("m-1").await.unwrap().state(), MachineState::Configured);
    rig.drain("m-1", 0).await;
    wait_for(&mut rig, &["m-3"]).await;
    assert_eq!(rig.get("m-1").await.unwrap_err().code(), tonic::Code::NotFound);
    assert_eq!(rig.metric(&refused), 1.0);
}

async fn wait_for(rig: &mut Rig, ids: &[&str]) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let mut listed: Vec<_> = rig.list().await.into_iter().map(|machine| machine.id).collect();
        listed.sort();
        if listed == ids {
            return;
        }
        assert!(std::time::Instant::now() < end, "{listed:?}\n{}", rig.stderr());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
