use super::*;

/// One of each kind, as it stands in the log. Frozen: two versions read one log.
fn kinds() -> Vec<(u32, Command, &'static str)> {
    let a = || ShardId::from("a");
    let b = || ShardId::from("b");
    let domain = zone("1");
    let request = TransferRequest {
        count: 2,
        instance_type: "m6i".into(),
        zone: "z".into(),
        requirements: vec![TransferRequirement {
            key: "k".into(),
            operator: 1,
            values: vec!["v".into()],
        }],
        min_unit: [("cpu".to_owned(), "2".to_owned())].into(),
        capacity_type: 3,
        preemptor_priority: 7,
        preemptor_penalty_bucket: 4,
    };
    let machines_in = vec![MachineIn {
        transfer: "t".into(),
        machine: "m".into(),
        home: domain.clone(),
        from: b(),
    }];
    vec![
        (
            1,
            Command::AddShard {
                id: a(),
                address: "a:1".into(),
                registered_at: -5,
                epoch: 2,
                instance: u64::MAX,
                shared: true,
            },
            r#"{"1":{"id":"a","address":"a:1","registered_at":-5,"epoch":2,"instance":18446744073709551615,"shared":true}}"#,
        ),
        (2, remove("a"), r#"{"2":{"id":"a"}}"#),
        (3, bind("k\"\n", "a"), r#"{"3":{"cluster":"k\"\n","shard":"a"}}"#),
        (4, assign("1", "a"), r#"{"4":{"domain":{"key":"zone","value":"1"},"shard":"a"}}"#),
        (
            5,
            Command::UnassignDomain { domain: domain.clone() },
            r#"{"5":{"domain":{"key":"zone","value":"1"}}}"#,
        ),
        (
            6,
            Command::SetQuota {
                provider: "p".into(),
                region: "r".into(),
                per_shard: [(b(), 2), (a(), 1)].into(),
            },
            r#"{"6":{"provider":"p","region":"r","per_shard":{"a":1,"b":2}}}"#,
        ),
        (
            7,
            Command::UpsertProvider { name: "n".into(), address: "x".into(), region: "r".into() },
            r#"{"7":{"name":"n","address":"x","region":"r"}}"#,
        ),
        (
            8,
            Command::UpdateShard {
                id: a(),
                address: String::new(),
                epoch: 1,
                instance: 2,
                shared: false,
            },
            r#"{"8":{"id":"a","address":"","epoch":1,"instance":2,"shared":false}}"#,
        ),
        (
            9,
            Command::Batch { commands: vec![remove("a"), remove("b")] },
            r#"{"9":{"commands":[{"2":{"id":"a"}},{"2":{"id":"b"}}]}}"#,
        ),
        (
            10,
            Command::InitFleet { fleet_id: "u.00000000".into() },
            r#"{"10":{"fleet_id":"u.00000000"}}"#,
        ),
        (
            12,
            Command::UpsertReplica {
                node_id: "n".into(),
                incarnation: 1,
                raft_address: "r".into(),
                grpc_address: "g".into(),
                max_kind: 23,
            },
            r#"{"12":{"node_id":"n","incarnation":1,"raft_address":"r","grpc_address":"g","max_kind":23}}"#,
        ),
        (13, Command::RemoveReplica { node_id: "n".into() }, r#"{"13":{"node_id":"n"}}"#),
        (
            14,
            Command::BeginTransfer {
                id: "t".into(),
                kind: TransferKind::Drain,
                from: a(),
                to: b(),
                request,
            },
            r#"{"14":{"id":"t","kind":"Drain","from":"a","to":"b","request":{"capacity_type":3,"count":2,"instance_type":"m6i","min_unit":{"cpu":"2"},"preemptor_penalty_bucket":4,"preemptor_priority":7,"requirements":[{"key":"k","operator":1,"values":["v"]}],"zone":"z"}}}"#,
        ),
        (
            15,
            release("t", "1", &["m"]),
            r#"{"15":{"id":"t","home":{"key":"zone","value":"1"},"machine_ids":["m"]}}"#,
        ),
        (16, Command::EndTransfer { id: "t".into() }, r#"{"16":{"id":"t"}}"#),
        (17, Command::RemoveProvider { name: "p".into() }, r#"{"17":{"name":"p"}}"#),
        (
            18,
            settle("a", &[("t", "m")]),
            r#"{"18":{"shard":"a","settled":[{"transfer":"t","machine":"m"}]}}"#,
        ),
        (
            19,
            move_domain("1", "a", "b"),
            r#"{"19":{"domain":{"key":"zone","value":"1"},"from":"a","to":"b"}}"#,
        ),
        (
            20,
            Command::Released {
                shard: a(),
                keys: vec![Key::Cluster("k".into()), Key::Domain(domain.clone())],
                version: 7,
            },
            r#"{"20":{"shard":"a","keys":[{"cluster":"k"},{"domain":{"key":"zone","value":"1"}}],"version":7}}"#,
        ),
        (21, Command::ConfirmRestore {}, r#"{"21":{}}"#),
        (
            22,
            Command::AdoptHoldings {
                shard: a(),
                holdings: Holdings {
                    domains: vec![domain],
                    clusters: vec!["k".into()],
                    machines_in,
                },
            },
            r#"{"22":{"shard":"a","holdings":{"domains":[{"key":"zone","value":"1"}],"clusters":["k"],"machines_in":[{"transfer":"t","machine":"m","home":{"key":"zone","value":"1"},"from":"b"}]}}}"#,
        ),
        (
            23,
            Command::MoveCluster { cluster: "k".into(), from: a(), to: b() },
            r#"{"23":{"cluster":"k","from":"a","to":"b"}}"#,
        ),
    ]
}

#[test]
fn the_log_format_is_final() {
    let mut highest = 0;
    for (kind, command, text) in kinds() {
        assert_eq!(command.kind(), kind);
        assert_eq!(String::from_utf8(command.encode()).unwrap(), text);
        assert_eq!(Command::decode(text.as_bytes()).unwrap(), command);
        assert!(kind > highest, "{kind}");
        highest = kind;
    }
    assert_eq!(highest, MAX_KIND);
}

#[test]
fn what_is_not_known_is_not_skipped() {
    for (bytes, why) in [
        (r#"{"11":{}}"#, "reserved"),
        (r#"{"24":{}}"#, "a newer kind"),
        (r#"{"2":{"id":"a","force":true}}"#, "an unknown field"),
        (
            r#"{"14":{"id":"t","kind":"Idle","from":"a","to":"b","request":{"count":2,"new":1}}}"#,
            "deeper",
        ),
        (
            r#"{"14":{"id":"t","kind":"Swap","from":"a","to":"b","request":{"count":2}}}"#,
            "unknown value",
        ),
        (r#"{"4":{"domain":{"key":"zone","value":"1","x":1},"shard":"a"}}"#, "in a domain"),
        (r#"{"2":{}}"#, "a missing field"),
        (r#"{"2":{"id":"a","id":"a"}}"#, "a field twice"),
        (r#"{"6":{"provider":"p","region":"r","per_shard":{"a":1,"a":2}}}"#, "an entry twice"),
        (r#"{"6":{"provider":"p","region":"r","per_shard":{"b":1,"a":2}}}"#, "another order"),
        (r#"{"2": {"id":"a"}}"#, "another text"),
        (r#"{"2":{"id":"a"}} "#, "more bytes"),
        (r#"{"2":{"id":"a"},"3":{}}"#, "two commands"),
        (r#"{"9":{"commands":[{"24":{}}]}}"#, "a newer kind in a batch"),
        ("", "nothing"),
        ("\u{0}", "not a command"),
    ] {
        assert!(Command::decode(bytes.as_bytes()).is_err(), "{why}");
    }
}
