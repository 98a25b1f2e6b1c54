//! Commands that change the fleet: what they print, what they ask for, what they refuse.

use bigfleet_scripted::coordinator::Coordinator;
use bigfleet_wire::v1alpha1::{
    AssignDomainResponse, ConfirmRestoreResponse, DomainAssignment, ListDomainAssignmentsResponse,
    ListProvidersResponse, ListQuotasResponse, ListShardReportsResponse, ListShardsResponse,
    MoveClusterResponse, MoveDomainResponse, ProviderEntry, QuotaAllocation,
    RemoveProviderResponse, RemoveRaftServerResponse, RemoveShardResponse, SetQuotaResponse,
    ShardRegistryEntry, ShardReportSnapshot, ShardSummary, UnassignDomainResponse,
    UpsertProviderResponse,
};
use tonic::Code;

use crate::rig::{Ctl, SECOND, coordinator, now};

/// One that accepts everything.
async fn willing() -> Coordinator {
    let coordinator = coordinator().await;
    coordinator.reply(AssignDomainResponse {});
    coordinator.reply(UnassignDomainResponse {});
    coordinator.reply(RemoveShardResponse {});
    coordinator.reply(SetQuotaResponse {});
    coordinator.reply(UpsertProviderResponse {});
    coordinator.reply(RemoveProviderResponse {});
    coordinator.reply(MoveDomainResponse {});
    coordinator.reply(MoveClusterResponse {});
    coordinator.reply(RemoveRaftServerResponse {});
    coordinator.reply(ListShardReportsResponse::default());
    coordinator.reply(ConfirmRestoreResponse { shards: 1, ..ConfirmRestoreResponse::default() });
    coordinator.reply(ListDomainAssignmentsResponse {
        assignments: vec![DomainAssignment {
            topology_key: "zone".to_owned(),
            topology_value: "a".to_owned(),
            shard_id: "s-0".to_owned(),
        }],
        next_page_token: String::new(),
    });
    coordinator.reply(ListQuotasResponse {
        allocations: vec![QuotaAllocation {
            provider: "ec2".to_owned(),
            region: "eu".to_owned(),
            per_shard: [("s-1".to_owned(), 4)].into(),
        }],
    });
    coordinator.reply(ListProvidersResponse {
        providers: vec![ProviderEntry {
            name: "ec2".to_owned(),
            address: "o:1".to_owned(),
            region: "eu".to_owned(),
        }],
    });
    shard(&coordinator, now() - 120 * SECOND);
    coordinator
}

fn shard(coordinator: &Coordinator, heartbeat: i64) {
    shard_led(coordinator, heartbeat, 0);
}

/// Of a leader that has led for so long.
fn shard_led(coordinator: &Coordinator, heartbeat: i64, leading_ms: i64) {
    let entry = ShardRegistryEntry {
        shard_id: "s-0".to_owned(),
        address: "h:1".to_owned(),
        registered_at_unix_ns: SECOND,
        last_heartbeat_unix_ns: heartbeat,
    };
    coordinator.reply(ListShardsResponse { shards: vec![entry], leading_ms });
}

/// Arguments, standard output, the request, and what a dry run says.
type Case = (&'static [&'static str], &'static str, &'static str, &'static str);

const CASES: &[Case] = &[
    (
        &["assign-domain", "--key", "zone", "--value", "a", "--shard", "s-1"],
        "assigned zone=a → s-1\n",
        "AssignDomainRequest { topology_key: \"zone\", topology_value: \"a\", shard_id: \"s-1\" }",
        "would assign zone=a to s-1; it belongs to s-0 now\n",
    ),
    (
        &["unassign-domain", "--key", "zone", "--value", "b"],
        "unassigned zone=b\n",
        "UnassignDomainRequest { topology_key: \"zone\", topology_value: \"b\" }",
        "would unassign zone=b; it belongs to nobody now\n",
    ),
    (
        &["remove-shard", "--shard", "s-0"],
        "removed shard s-0\nEmpty its data volume before a shard of this id starts again: the old one \
         still believes in what it held.\n",
        "RemoveShardRequest { shard_id: \"s-0\" }",
        "would remove shard s-0 (h:1, last heartbeat ",
    ),
    (
        &["set-quota", "--provider", "ec2", "--region", "eu", "--slice", "s-1=5", "s-2=6"],
        "set quota of ec2 eu: s-1=5 s-2=6\n",
        "per_shard: {\"s-1\": 5, \"s-2\": 6}",
        "would set quota of ec2 eu: s-1 4 → 5\nwould set quota of ec2 eu: s-2 none → 6\n",
    ),
    (
        &["set-quota", "--provider", "ec2", "--region", "eu", "--remove"],
        "removed quota of ec2 eu\n",
        "region: \"eu\", per_shard: {}",
        "would remove quota of ec2 eu (s-1=4); no shard is limited there any more\n",
    ),
    (
        &["upsert-provider", "--name", "ec2", "--address", "p:9000", "--region", "eu"],
        "upserted provider ec2\n",
        "name: \"ec2\", address: \"p:9000\", region: \"eu\"",
        "would change provider ec2: o:1 eu → p:9000 eu\n",
    ),
    (
        &["remove-provider", "--name", "ec2"],
        "removed provider ec2\n",
        "RemoveProviderRequest { name: \"ec2\" }",
        "would remove provider ec2 from the registry; shards keep their own flags\n",
    ),
    (
        &["move-domain", "--key", "zone", "--value", "a", "--from", "s-0", "--to", "s-1"],
        "moved zone=a: s-0 → s-1\n",
        "from_shard_id: \"s-0\", to_shard_id: \"s-1\"",
        "would move zone=a from s-0 to s-1; s-1 waits until s-0 lets go\n",
    ),
    (
        &["move-cluster", "--cluster", "c", "--from", "s-0", "--to", "s-1"],
        "moved cluster c: s-0 → s-1\n",
        "MoveClusterRequest { cluster_id: \"c\", from_shard_id: \"s-0\", to_shard_id: \"s-1\" }",
        "would move cluster c from s-0 to s-1; its operator must be pointed at s-1 too\n",
    ),
    (
        &["raft-remove", "--node-id", "node-4"],
        "removed replica node-4\n",
        "RemoveRaftServerRequest { node_id: \"node-4\" }",
        "would remove replica node-4 from the consensus group; it must not come back\n",
    ),
    (
        &["confirm-restore"],
        "confirmed the restore of a backup made at an unknown time; assignments flow with the next \
         reports\n1 shards, 0 domains, 0 clusters, 0 machines on loan\nnothing changed hands since \
         the backup\n",
        "ConfirmRestoreRequest",
        "would end the recovery: what 1 registered shards hold becomes theirs",
    ),
];

#[tokio::test]
async fn each_is_done_with_yes_shown_with_dry_run_and_refused_unasked() {
    for (args, out, request, plan) in CASES {
        let coordinator = willing().await;
        let ctl = Ctl::to(&[coordinator.addr()]);
        let mutated = || coordinator.asked().iter().any(|asked| asked.contains(request));

        let refused = ctl.run_with(args, "y\n").await.failed(2);
        assert!(refused.contains("--yes") && refused.contains("--dry-run"), "{refused}");
        assert!(!mutated(), "{args:?} without consent");

        let shown = ctl.run(&[args, &["--dry-run"][..]].concat()).await.ok();
        assert!(shown.starts_with(plan), "{args:?}: {shown}");
        assert!(!mutated(), "{args:?} in a dry run");

        let done = ctl.run(&[args, &["--yes"][..]].concat()).await.ok();
        assert_eq!(done, *out, "{args:?}");
        assert!(mutated(), "{args:?}: {:?}", coordinator.asked());
    }
}

#[tokio::test]
async fn a_shard_that_lives_is_removed_by_force_only() {
    let coordinator = willing().await;
    shard(&coordinator, now() - 10 * SECOND);
    let ctl = Ctl::to(&[coordinator.addr()]);
    let error = ctl.run(&["remove-shard", "--shard", "s-0", "--yes"]).await.failed(1);
    assert!(error.contains("reported 1") && error.contains("--force"), "{error}");
    assert!(!coordinator.asked().iter().any(|asked| asked.starts_with("RemoveShard")));
    ctl.run(&["remove-shard", "--shard", "s-0", "--yes", "--force"]).await.ok();
}

/// A leader that was just elected has heard nobody, whoever lives.
#[tokio::test]
async fn a_shard_that_was_not_heard_yet_is_removed_by_force_only() {
    let coordinator = willing().await;
    let ctl = Ctl::to(&[coordinator.addr()]);
    let remove = ["remove-shard", "--shard", "s-0", "--yes"];
    for leading_ms in [0, 59_000] {
        shard_led(&coordinator, 0, leading_ms);
        let error = ctl.run(&remove).await.failed(1);
        assert!(error.contains("has not heard it yet") && error.contains("--force"), "{error}");
        assert!(!coordinator.asked().iter().any(|asked| asked.starts_with("RemoveShard")));
    }
    shard_led(&coordinator, 0, 60_000);
    ctl.run(&remove).await.ok();
    shard_led(&coordinator, 0, 1_000);
    ctl.run(&[&remove[..], &["--force"]].concat()).await.ok();
}

/// A share reaches only shards that dial its provider's address: whoever changes that is
/// told which quotas limit nobody then.
#[tokio::test]
async fn quotas_that_stop_binding_are_named_in_the_plan() {
    let coordinator = willing().await;
    coordinator.reply(ListShardReportsResponse {
        reports: vec![ShardReportSnapshot {
            shard_id: "s-0".to_owned(),
            summary: Some(ShardSummary {
                provider_address: "o:1".to_owned(),
                ..ShardSummary::default()
            }),
            ..ShardReportSnapshot::default()
        }],
    });
    let ctl = Ctl::to(&[coordinator.addr()]);
    let told = "would leave the quota of ec2 eu without effect: ";
    let plan = ctl.run(&["remove-provider", "--name", "ec2", "--dry-run"]).await.ok();
    assert!(plan.contains(told), "{plan}");
    let plan = ctl.run(&["remove-provider", "--name", "other", "--dry-run"]).await.ok();
    assert!(!plan.contains(told), "{plan}");
    let upsert = ["upsert-provider", "--name", "ec2", "--dry-run", "--address"];
    let plan = ctl.run(&[&upsert[..], &["o.svc:1"]].concat()).await.ok();
    assert!(plan.contains(told) && plan.contains("no shard dials o.svc:1"), "{plan}");
    assert!(plan.contains("dial the address of its provider, spelt the same"), "{plan}");
    let plan = ctl.run(&[&upsert[..], &["o:1"]].concat()).await.ok();
    assert!(!plan.contains(told), "{plan}");
}

#[tokio::test]
async fn who_had_the_last_share_leaves_a_row_that_bars_everybody() {
    let coordinator = willing().await;
    let row = |per_shard: &[&str]| ListQuotasResponse {
        allocations: vec![QuotaAllocation {
            provider: "ec2".to_owned(),
            region: "eu".to_owned(),
            per_shard: per_shard.iter().map(|shard| ((*shard).to_owned(), 4)).collect(),
        }],
    };
    let ctl = Ctl::to(&[coordinator.addr()]);
    let told = "would leave the quota of ec2 eu without shares";
    coordinator.reply(row(&["s-0", "s-1"]));
    let plan = ctl.run(&["remove-shard", "--shard", "s-0", "--dry-run"]).await.ok();
    assert!(!plan.contains(told), "{plan}");
    coordinator.reply(row(&["s-0"]));
    let plan = ctl.run(&["remove-shard", "--shard", "s-0", "--dry-run"]).await.ok();
    assert!(plan.contains(told), "{plan}");
    // What it left can be seen and taken away.
    coordinator.reply(row(&[]));
    let remove = ["set-quota", "--provider", "ec2", "--region", "eu", "--remove", "--dry-run"];
    let plan = ctl.run(&remove).await.ok();
    assert!(plan.starts_with("would remove quota of ec2 eu (no shares);"), "{plan}");
}

/// The list of shards does not tell who has said what it holds: no word of who is missing.
#[tokio::test]
async fn a_plan_to_confirm_accuses_nobody() {
    let coordinator = willing().await;
    let ctl = Ctl::to(&[coordinator.addr()]);
    let plan = async || ctl.run(&["confirm-restore", "--dry-run"]).await.ok();
    let heard = plan().await;
    let says =
        "would be refused while a shard that shares its provider has not said what it holds\n";
    assert!(heard.ends_with(says), "{heard}");
    shard(&coordinator, 0);
    let silent = plan().await;
    assert!(silent.ends_with("what it holds; these were not heard so far: s-0\n"), "{silent}");
}

#[tokio::test]
async fn refusals_say_what_the_coordinator_said() {
    let coordinator = willing().await;
    let ctl = Ctl::to(&[coordinator.addr()]);
    coordinator.refuse::<AssignDomainResponse>(Code::AlreadyExists, "zone=a belongs to s-0");
    let error = ctl.run(&[CASES[0].0, &["--yes"][..]].concat()).await.failed(1);
    assert_eq!(error, "bigfleetctl: assign-domain: zone=a belongs to s-0 (ALREADY_EXISTS)\n");
    coordinator
        .refuse::<ConfirmRestoreResponse>(Code::FailedPrecondition, "s-2, s-3 have not reported");
    let error = ctl.run(&["confirm-restore", "--yes"]).await.failed(1);
    assert!(error.contains("s-2, s-3 have not reported"), "{error}");
}
