//! Probes (§19) and a provider that is not there (§22).

use bigfleet_net::{grpc::connect, rule::Rule, tls::Security};
use tonic::Code;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::{
    process::{PATIENCE, get, until},
    site::{SMALL, Site},
};

async fn health(site: &Site, service: &str) -> Result<ServingStatus, Code> {
    let channel = connect(&site.shard, &Security::Plaintext, Rule::any_shard()).await.unwrap();
    let request = HealthCheckRequest { service: service.to_owned() };
    let answer = HealthClient::new(channel).check(request).await;
    answer.map(|answer| answer.into_inner().status()).map_err(|status| status.code())
}

#[tokio::test]
async fn a_shard_is_ready_once_it_has_seen_its_machines_and_stays_so() {
    const SHARD: &str = "bigfleet.v1alpha1.Shard";
    let site = Site::new();
    let mut shard = site.spawn_shard(&[]);
    let (status, text) = until("probes", async || {
        assert!(shard.is_running(), "{}", shard.tail());
        site.readyz().await
    })
    .await;
    assert_eq!((status, &*text), (503, "the provider has not been listed yet"));
    assert_eq!(get(&site.shard_http, "/healthz").await.unwrap().0, 200);
    assert_eq!(health(&site, "").await, Ok(ServingStatus::Serving));
    assert_eq!(health(&site, SHARD).await, Ok(ServingStatus::NotServing));
    assert_eq!(health(&site, "nobody").await, Err(Code::NotFound));

    // Operators are welcome meanwhile, and told nothing that would make them prune.
    let member = site.member("c", 2);
    member.wait_for("a session", |now| now.connected, PATIENCE).await.unwrap();
    let steps = member.standing().steps;
    member.wait_for("some cycles", |now| now.steps > steps + 10, PATIENCE).await.unwrap();
    assert!(!member.operator().await.read(|state| state.picture.resynced), "inv 21");
    assert_eq!(site.readyz().await.unwrap().0, 503);

    let mut provider = site.boot_provider(SMALL).await;
    site.until_ready(&mut shard).await;
    assert_eq!(health(&site, SHARD).await, Ok(ServingStatus::Serving));
    member.wait_for("met demand", |now| now.demand_met, PATIENCE).await.unwrap();

    provider.kill().await;
    let steps = member.standing().steps;
    member.wait_for("some cycles", |now| now.steps > steps + 10, PATIENCE).await.unwrap();
    assert_eq!(site.readyz().await.unwrap().0, 200, "latched");
    assert_eq!(get(&site.shard_http, "/healthz").await.unwrap().0, 200);
    assert!(member.standing().demand_met, "machines keep their state");
    // It recovers without a restart.
    let _provider = site.boot_provider(SMALL).await;
    member.cluster().scale(0, 8);
    let grown = |now: &bigfleet_scripted::member::Standing| now.demand_met && now.machines == 4;
    member.wait_for("more machines", grown, PATIENCE).await.unwrap();
}
