//! Lists in every form.

use bigfleet_wire::v1alpha1::{
    DomainAssignment, ListDomainAssignmentsResponse, ListProvidersResponse, ListQuotasResponse,
    ListShardReportsResponse, ListShardsResponse, ListTransfersResponse, ProviderEntry,
    QuotaAllocation, ReleasingEntry, Resources, ShardRegistryEntry, ShardReportSnapshot,
    ShardSummary, Shortfall, TransferEntry, TransferSelector,
};

use crate::rig::{Ctl, SECOND, coordinator, leader_status};

#[tokio::test]
async fn shards() {
    let coordinator = coordinator().await;
    let entry = |id: &str, address: &str, heartbeat| ShardRegistryEntry {
        shard_id: id.to_owned(),
        address: address.to_owned(),
        registered_at_unix_ns: 1_700_000_000 * SECOND,
        last_heartbeat_unix_ns: heartbeat,
    };
    let shards =
        vec![entry("s-1", "10.0.0.1:7780", 1_700_000_060 * SECOND + 5), entry("shard-2", "h:1", 0)];
    coordinator.reply(ListShardsResponse { shards, leading_ms: 0 });
    let ctl = Ctl::to(&[coordinator.addr()]);
    assert_eq!(
        ctl.run(&["list-shards"]).await.ok(),
        "SHARD    ADDRESS        REGISTERED            LAST_HEARTBEAT\n\
         s-1      10.0.0.1:7780  2023-11-14T22:13:20Z  2023-11-14T22:14:20Z\n\
         shard-2  h:1            2023-11-14T22:13:20Z  —\n"
    );
    let json: serde_json::Value =
        serde_json::from_str(&ctl.run(&["list-shards", "-o", "json"]).await.ok()).unwrap();
    assert_eq!(json[0]["lastHeartbeat"], "2023-11-14T22:14:20.000000005Z");
    assert_eq!(json[1]["lastHeartbeat"], serde_json::Value::Null);
    let yaml = ctl.run(&["list-shards", "-o", "yaml"]).await.ok();
    let read: Vec<std::collections::BTreeMap<String, Option<String>>> =
        serde_saphyr::from_str(&yaml).unwrap();
    assert_eq!(read[1]["shard"].as_deref(), Some("shard-2"));
}

#[tokio::test]
async fn an_empty_list_has_its_head() {
    let coordinator = coordinator().await;
    coordinator.reply(ListShardsResponse::default());
    let ctl = Ctl::to(&[coordinator.addr()]);
    let head = "SHARD  ADDRESS  REGISTERED  LAST_HEARTBEAT\n";
    assert_eq!(ctl.run(&["list-shards"]).await.ok(), head);
    assert_eq!(ctl.run(&["list-shards", "-o", "json"]).await.ok(), "[]\n");
}

#[tokio::test]
async fn domains() {
    let coordinator = coordinator().await;
    let row = DomainAssignment {
        topology_key: "zone".to_owned(),
        topology_value: "a".to_owned(),
        shard_id: "s-1".to_owned(),
    };
    coordinator.reply(ListDomainAssignmentsResponse {
        assignments: vec![row],
        next_page_token: String::new(),
    });
    let ctl = Ctl::to(&[coordinator.addr()]);
    let table = ctl.run(&["list-domain-assignments"]).await.ok();
    assert_eq!(table, "TOPOLOGY_KEY  TOPOLOGY_VALUE  SHARD\nzone          a               s-1\n");
    let json = ctl.run(&["list-domain-assignments", "-o", "json"]).await.ok();
    // A page that is not the last is followed by the next.
    let first = DomainAssignment { shard_id: "s-0".to_owned(), ..DomainAssignment::default() };
    coordinator.reply_once(ListDomainAssignmentsResponse {
        assignments: vec![first],
        next_page_token: "page 2".to_owned(),
    });
    let both = ctl.run(&["list-domain-assignments", "-o", "json"]).await.ok();
    assert!(both.contains("\"s-0\"") && both.contains("\"s-1\""), "{both}");
    assert!(coordinator.asked().last().unwrap().contains("page_token: \"page 2\""));
    assert!(json.contains("\"topologyKey\": \"zone\""), "{json}");
}

#[tokio::test]
async fn quotas_have_a_sorted_line_per_shard() {
    let coordinator = coordinator().await;
    let allocation = |provider: &str, per_shard: &[(&str, i32)]| QuotaAllocation {
        provider: provider.to_owned(),
        region: "eu-1".to_owned(),
        per_shard: per_shard.iter().map(|(shard, n)| ((*shard).to_owned(), *n)).collect(),
    };
    coordinator.reply(ListQuotasResponse {
        allocations: vec![
            allocation("gce", &[("s-1", 5)]),
            allocation("ec2", &[("s-2", 20), ("s-1", 10)]),
            allocation("azure", &[]),
        ],
    });
    let ctl = Ctl::to(&[coordinator.addr()]);
    let json: serde_json::Value =
        serde_json::from_str(&ctl.run(&["list-quotas", "-o", "json"]).await.ok()).unwrap();
    assert_eq!(json[0]["shard"], serde_json::Value::Null);
    assert_eq!(
        ctl.run(&["list-quotas"]).await.ok(),
        "PROVIDER  REGION  SHARD  SLICE\n\
         azure     eu-1    —      0\n\
         ec2       eu-1    s-1    10\n\
         ec2       eu-1    s-2    20\n\
         gce       eu-1    s-1    5\n"
    );
}

#[tokio::test]
async fn providers() {
    let coordinator = coordinator().await;
    let provider = ProviderEntry {
        name: "ec2".to_owned(),
        address: "p:9000".to_owned(),
        region: "eu-1".to_owned(),
    };
    coordinator.reply(ListProvidersResponse { providers: vec![provider] });
    let table = Ctl::to(&[coordinator.addr()]).run(&["list-providers"]).await.ok();
    assert_eq!(table, "NAME  ADDRESS  REGION\nec2   p:9000   eu-1\n");
}

#[tokio::test]
async fn what_is_on_its_way() {
    let coordinator = coordinator().await;
    let selector = TransferSelector {
        count: 4,
        instance_type: "m".to_owned(),
        zone: "a".to_owned(),
        ..TransferSelector::default()
    };
    let transfer = |id: &str, phase: &str, machines: &[&str], overdue_ms| TransferEntry {
        transfer_id: id.to_owned(),
        kind: "idle".to_owned(),
        phase: phase.to_owned(),
        from_shard_id: "s-1".to_owned(),
        to_shard_id: "s-2".to_owned(),
        selector: Some(selector.clone()),
        machine_ids: machines.iter().map(|id| (*id).to_owned()).collect(),
        age_ms: 150_000,
        overdue_ms,
        ..TransferEntry::default()
    };
    let row = ReleasingEntry {
        topology_key: "rack".to_owned(),
        topology_value: "7".to_owned(),
        from_shard_id: "s-1".to_owned(),
        age_ms: 4_000,
        ..ReleasingEntry::default()
    };
    let cluster = ReleasingEntry {
        cluster_id: "c".to_owned(),
        from_shard_id: "s-1".to_owned(),
        to_shard_id: "s-2".to_owned(),
        age_ms: 4_000,
        ..ReleasingEntry::default()
    };
    coordinator.reply(ListTransfersResponse {
        transfers: vec![
            transfer("t1", "releasing", &[], 30_000),
            transfer("t2", "moved", &["m-1", "m-2"], 0),
        ],
        releasing: vec![cluster, row],
    });
    let ctl = Ctl::to(&[coordinator.addr()]);
    assert_eq!(
        ctl.run(&["list-transfers"]).await.ok(),
        "TRANSFER  KIND  PHASE      FROM  TO   MACHINES  TYPE  ZONE  AGE  OVERDUE\n\
         t1        idle  releasing  s-1   s-2  4         m     a     2m   30s\n\
         t2        idle  moved      s-1   s-2  2         m     a     2m   —\n"
    );
    assert!(ctl.run(&["list-transfers", "-o", "wide"]).await.ok().contains("m-1,m-2"));
    assert_eq!(
        ctl.run(&["list-releasing"]).await.ok(),
        "KEY            HELD BY  GOES TO  AGE\n\
         cluster c      s-1      s-2      4s\n\
         domain rack=7  s-1      —        4s\n"
    );
}

#[tokio::test]
async fn reports() {
    let coordinator = coordinator().await;
    let ctl = Ctl::to(&[coordinator.addr()]);
    coordinator.reply(ListShardReportsResponse::default());
    let done = ctl.run(&["list-shard-reports"]).await;
    assert!(done.err.contains("change of leaders"), "{done:?}");
    let shortfall = |age_cycles| Shortfall {
        deficit: Some(Resources { resources: [("cpu".to_owned(), "8".to_owned())].into() }),
        priority: 1000,
        age_cycles,
        interruption_penalty_bucket: 13,
        ..Default::default()
    };
    let summary = ShardSummary {
        total_machines: 12,
        free_machines: 3,
        per_zone_counts: [("a".to_owned(), 12)].into(),
        provider_address: "p:9000".to_owned(),
        ..Default::default()
    };
    coordinator.reply(ListShardReportsResponse {
        reports: vec![ShardReportSnapshot {
            shard_id: "s-1".to_owned(),
            cycle: 9,
            received_at_unix_ns: 1_700_000_000 * SECOND,
            summary: Some(summary),
            shortfalls: vec![shortfall(5), shortfall(6)],
        }],
    });
    assert_eq!(
        ctl.run(&["list-shard-reports", "--shard", "s-1"]).await.ok(),
        "SHARD  REPORT  RECEIVED              MACHINES  FREE  SHORTFALLS  ESCALATED\n\
         s-1    9       2023-11-14T22:13:20Z  12        3     2           1\n"
    );
    assert!(coordinator.asked().last().unwrap().contains("shard_id: \"s-1\""));
    let wide = ctl.run(&["list-shard-reports", "-o", "wide"]).await.ok();
    assert!(wide.contains("p:9000    —      a=12"), "{wide}");
    let json = ctl.run(&["list-shard-reports", "-o", "json"]).await.ok();
    assert!(json.contains("\"penaltyBucket\": \"PENALTY_BUCKET_1024\""), "{json}");
}

#[tokio::test]
async fn replicas_answer_each_for_itself() {
    let (leader, follower) = (coordinator().await, coordinator().await);
    leader.reply(leader_status("node-1"));
    let mut status = leader_status("node-2");
    (status.role, status.leader_id) = ("follower".to_owned(), "node-1".to_owned());
    follower.reply(status);
    let dead = "127.0.0.1:1";
    let ctl = Ctl::to(&[leader.addr(), follower.addr(), dead]);
    let table = ctl.run(&["raft-status"]).await.ok();
    let lines: Vec<&str> = table.lines().collect();
    assert!(
        lines[0].starts_with("NODE    ROLE      PHASE  TERM  LEADER  COMMIT  APPLIED  ADDRESS"),
        "{table}"
    );
    assert!(
        lines[1].starts_with("node-1  leader    open   7     node-1  40      40       127.0.0.1:"),
        "{table}"
    );
    assert!(lines[2].starts_with("node-2  follower  open   7     node-1"), "{table}");
    assert!(lines[3].starts_with("—") && lines[3].contains("127.0.0.1:1 ("), "{table}");
    Ctl::to(&[dead]).run(&["raft-status"]).await.failed(3);
}
