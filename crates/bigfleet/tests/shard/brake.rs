//! The kill switch and shadow mode (§10, invariant 13): decisions are made, and
//! nothing is done.

use std::{fs, path::Path};

use bigfleet_net::{grpc::connect, rule::Rule, tls::Security};
use bigfleet_scripted::member::{Member, Standing};
use bigfleet_wire::v1alpha1::{
    ActuationMode, ActuationState, GetActuationRequest, SetActuationRequest,
    shard_admin_client::ShardAdminClient,
};

use crate::{
    judge::{inv_22, records},
    process::{PATIENCE, until},
    site::{SMALL, Site},
};

fn withheld(audit: &Path, outcome: &str) -> usize {
    records(audit).iter().filter(|record| record.outcome == outcome).count()
}

/// The shard decides again and again, and neither provider nor operator hears of it.
async fn inv_13(site: &Site, member: &Member, outcome: &str) {
    let told = async || {
        let received = member.operator().await.read(|state| state.received);
        (received.bootstrap_requests, received.reclaim_instructions)
    };
    let audit = site.audit_log();
    let (mutations, before) = (site.mutations().await, told().await);
    let known = withheld(&audit, outcome);
    until("decisions that are withheld", async || {
        (withheld(&audit, outcome) > known + 10).then_some(())
    })
    .await;
    assert_eq!(site.mutations().await, mutations, "mutations while {outcome}");
    assert_eq!(told().await, before, "requests and instructions while {outcome}");
}

/// What is withheld is done once the brake is off: machines come and go.
async fn works(member: &Member, pods: usize) {
    member.cluster().scale(0, pods);
    let served = move |now: &Standing| {
        now.connected && now.live == pods && now.demand_met && now.machines == pods.div_ceil(2)
    };
    member.wait_for("machines as asked for", served, PATIENCE).await.unwrap();
}

async fn set(site: &Site, mode: ActuationMode) -> ActuationState {
    let request = SetActuationRequest { mode: mode.into(), reason: "a test".to_owned() };
    admin(site).await.set_actuation(request).await.unwrap().into_inner()
}

async fn admin(site: &Site) -> ShardAdminClient<tonic::transport::Channel> {
    let channel = connect(&site.shard, &Security::Plaintext, Rule::any_shard()).await;
    ShardAdminClient::new(channel.unwrap())
}

#[tokio::test]
async fn shard_inv_13_by_flag() {
    let site = Site::new();
    let _provider = site.boot_provider(SMALL).await;
    for (flag, outcome) in [("--actuation-paused", "suppressed"), ("--dry-run", "dryrun")] {
        let mut shard = site.boot_shard(&[flag]).await;
        let member = site.member("c", 4);
        inv_13(&site, &member, outcome).await;
        let paused = site.metric("bigfleet_shard_actuation_paused").await;
        assert_eq!(paused, Some(f64::from(u8::from(outcome == "suppressed"))));
        shard.kill().await;
    }
    let _shard = site.boot_shard(&[]).await;
    works(&site.member("c", 0), 4).await;
    inv_22(&site.audit_log());
}

#[tokio::test]
async fn shard_inv_13_by_file_for_what_comes_and_what_goes() {
    let site = Site::new();
    let _provider = site.boot_provider(SMALL).await;
    let file = site.path("pause");
    let flag = format!("--pause-file={}", file.display());
    let _shard = site.boot_shard(&[&flag]).await;
    let member = site.member("c", 0);
    works(&member, 4).await;
    for pods in [8, 2] {
        fs::write(&file, "").unwrap();
        until("the brake", async || {
            site.metric("bigfleet_shard_actuation_paused").await.filter(|paused| *paused == 1.0)
        })
        .await;
        member.cluster().scale(0, pods);
        inv_13(&site, &member, "suppressed").await;
        let state = admin(&site).await.get_actuation(GetActuationRequest {}).await.unwrap();
        assert_eq!(state.get_ref().forced_by, "file");
        fs::remove_file(&file).unwrap();
        works(&member, pods).await;
    }
    inv_22(&site.audit_log());
}

#[tokio::test]
async fn shard_inv_13_by_call_over_a_restart() {
    let site = Site::new();
    let _provider = site.boot_provider(SMALL).await;
    let mut shard = site.boot_shard(&[]).await;
    let member = site.member("c", 0);
    works(&member, 4).await;
    assert_eq!(set(&site, ActuationMode::Paused).await.mode(), ActuationMode::Paused);
    shard.kill().await;
    let _shard = site.boot_shard(&[]).await;
    member
        .wait_for("a second session", |now| now.connected && now.sessions > 1, PATIENCE)
        .await
        .unwrap();
    member.cluster().scale(0, 8);
    inv_13(&site, &member, "suppressed").await;
    assert_eq!(set(&site, ActuationMode::DryRun).await.mode(), ActuationMode::DryRun);
    inv_13(&site, &member, "dryrun").await;
    assert_eq!(set(&site, ActuationMode::Active).await.mode(), ActuationMode::Active);
    works(&member, 8).await;
    inv_22(&site.audit_log());
}
