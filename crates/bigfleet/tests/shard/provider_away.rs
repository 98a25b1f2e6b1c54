//! A provider that is down, or hangs (§4, §22).

use bigfleet_net::tls::Security;
use bigfleet_scripted::member::{Member, Standing};
use bigfleet_wire::v1alpha1::MachineState;

use crate::{
    process::{PATIENCE, get, until},
    site::{SMALL, Site},
};

async fn served(member: &Member, pods: usize) {
    let served = move |now: &Standing| {
        now.connected && now.live == pods && now.demand_met && now.machines == pods.div_ceil(2)
    };
    member.wait_for("machines as asked for", served, PATIENCE).await.unwrap();
}

/// Longer than three intervals, and cycles go on.
async fn a_while(site: &Site, member: &Member) {
    let steps = member.standing().steps;
    let later = |now: &Standing| now.connected && now.steps > steps + 20;
    member.wait_for("steps", later, PATIENCE).await.unwrap();
    assert_eq!(get(&site.shard_http, "/healthz").await.unwrap().0, 200);
    assert_eq!(site.readyz().await.unwrap().0, 200);
}

/// Nobody is evicted on the word of an old List: it cannot be undone.
async fn nobody_is_evicted(site: &Site, member: &Member) {
    let instructions =
        async || member.operator().await.read(|state| state.received.reclaim_instructions);
    let before = (instructions().await, site.withheld_as_stale().await);
    a_while(site, member).await;
    member.cluster().scale(0, 2);
    until("reclaims that are withheld", async || {
        (site.withheld_as_stale().await > before.1 + 5.0).then_some(())
    })
    .await;
    assert_eq!(instructions().await, before.0);
    assert_eq!(member.standing().machines, 4, "machines keep their state");
}

async fn none_failed(site: &Site) {
    let machines = site.provider_client(&Security::Plaintext).list().await.unwrap();
    let failed = machines.iter().filter(|machine| machine.state() == MachineState::Failed);
    assert_eq!(failed.count(), 0, "{machines:?}");
}

#[tokio::test]
async fn a_provider_that_is_away_costs_nobody_a_machine() {
    let site = Site::new();
    let mut provider = site.boot_provider(SMALL).await;
    let _shard = site.boot_shard(&[]).await;
    let member = site.member("c", 8);
    served(&member, 8).await;

    provider.kill().await;
    nobody_is_evicted(&site, &member).await;
    let provider = site.boot_provider(SMALL).await;
    served(&member, 2).await;
    none_failed(&site).await;

    member.cluster().scale(0, 8);
    served(&member, 8).await;
    provider.signal("STOP").await;
    nobody_is_evicted(&site, &member).await;
    provider.signal("CONT").await;
    served(&member, 2).await;
    none_failed(&site).await;
}
