//! What can be read.

use bigfleet_wire::v1alpha1::{self as wire, snapshot_save_chunk::Payload};
use tonic::Code;

use crate::rig::{Rig, assign, report};

#[tokio::test]
async fn lists_are_sorted_and_complete() {
    let rig = Rig::plaintext().await;
    let mut client = rig.client().await;
    for shard in ["b", "a", "c"] {
        client.report_shard(report(shard, 4)).await.unwrap();
    }
    let shards = client.list_shards(wire::ListShardsRequest {}).await.unwrap().into_inner().shards;
    let ids: Vec<_> = shards.iter().map(|shard| shard.shard_id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    assert!(shards.iter().all(|shard| shard.last_heartbeat_unix_ns > 0));
    assert_eq!(shards[0].address, "a:7780");
    let all = wire::ListShardReportsRequest::default();
    assert_eq!(client.list_shard_reports(all).await.unwrap().into_inner().reports.len(), 3);
    for (shard, count) in [("b", 1), ("z", 0)] {
        let one = wire::ListShardReportsRequest { shard_id: shard.into() };
        let reports = client.list_shard_reports(one).await.unwrap().into_inner().reports;
        assert_eq!(reports.len(), count, "{shard}");
        assert!(reports.iter().all(|report| report.cycle == 4 && report.received_at_unix_ns > 0));
    }
    for (name, region) in [("q", "eu"), ("p", "us"), ("p", "eu")] {
        let per_shard = [("a".to_owned(), 1)].into();
        let (provider, region) = (name.to_owned(), region.to_owned());
        let allocation = Some(wire::QuotaAllocation { provider, region, per_shard });
        client.set_quota(wire::SetQuotaRequest { allocation }).await.unwrap();
        let (name, address, region) = (name.to_owned(), "p:1".to_owned(), String::new());
        let provider = Some(wire::ProviderEntry { name, address, region });
        client.upsert_provider(wire::UpsertProviderRequest { provider }).await.unwrap();
    }
    let quotas = client.list_quotas(wire::ListQuotasRequest {}).await.unwrap().into_inner();
    let keys: Vec<_> =
        quotas.allocations.iter().map(|row| format!("{}/{}", row.provider, row.region)).collect();
    assert_eq!(keys, ["p/eu", "p/us", "q/eu"]);
    let providers =
        client.list_providers(wire::ListProvidersRequest {}).await.unwrap().into_inner();
    let names: Vec<_> = providers.providers.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["p", "q"]);
    rig.stop().await;
}

#[tokio::test]
async fn domains_come_in_pages() {
    let rig = Rig::plaintext().await;
    let mut client = rig.client().await;
    for shard in ["a", "b"] {
        client.report_shard(report(shard, 1)).await.unwrap();
    }
    for number in 0..7 {
        let shard = if number % 2 == 0 { "b" } else { "a" };
        client.assign_domain(assign(&number.to_string(), shard)).await.unwrap();
    }
    let mut list = async |page_size: i32, page_token: &str| {
        let page_token = page_token.to_owned();
        let request = wire::ListDomainAssignmentsRequest { page_size, page_token };
        client.list_domain_assignments(request).await.map(tonic::Response::into_inner)
    };
    let all = list(0, "").await.unwrap();
    assert_eq!(all.next_page_token, "");
    let texts: Vec<_> = all
        .assignments
        .iter()
        .map(|one| format!("{}{}", one.shard_id, one.topology_value))
        .collect();
    assert_eq!(texts, ["a1", "a3", "a5", "b0", "b2", "b4", "b6"]);
    for size in 1..9 {
        let (mut pages, mut token) = (Vec::new(), String::new());
        loop {
            let page = list(size, &token).await.unwrap();
            assert!(page.assignments.len() <= usize::try_from(size).unwrap());
            pages.extend(page.assignments);
            token = page.next_page_token;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(pages, all.assignments, "in pages of {size}");
    }
    assert_eq!(list(0, "none of ours").await.unwrap(), all, "a broken token begins anew");
    assert_eq!(list(-1, "").await.unwrap_err().code(), Code::InvalidArgument);
    rig.stop().await;
}

#[tokio::test]
async fn a_snapshot_is_meta_then_data() {
    let rig = Rig::plaintext().await;
    let mut client = rig.client().await;
    for number in 0..3_000 {
        let id = format!("shard-{number:04}-{}", "x".repeat(230));
        client.report_shard(report(&id, 1)).await.unwrap();
    }
    let mut frames = client.snapshot_save(wire::SnapshotSaveRequest {}).await.unwrap().into_inner();
    let first = frames.message().await.unwrap().unwrap().payload;
    assert!(matches!(first, Some(Payload::MetaJson(_))), "{first:?}");
    let (mut state, mut count) = (Vec::new(), 0);
    while let Some(frame) = frames.message().await.unwrap() {
        let Some(Payload::Data(bytes)) = frame.payload else { panic!("{frame:?}") };
        assert!(bytes.len() <= 1 << 20);
        state.extend(bytes);
        count += 1;
    }
    assert!(count > 1, "{count}");
    assert_eq!(String::from_utf8(state).unwrap(), rig.replica.payload());
    rig.replica.bare.store(true, std::sync::atomic::Ordering::SeqCst);
    let none = client.snapshot_save(wire::SnapshotSaveRequest {}).await.unwrap_err();
    assert_eq!(none.code(), Code::NotFound);
    rig.stop().await;
}
