use bigfleet_model::FleetId;

use super::*;

/// Something in every table.
fn full() -> World {
    let mut world = World::new();
    world.ok(&Command::InitFleet { fleet_id: "u.00000000".into() });
    world.ok(&assign("1", "a"));
    world.ok(&assign("2", "b"));
    world.ok(&assign("3", "own"));
    world.ok(&assign("4", "a"));
    world.ok(&move_domain("4", "a", "b"));
    world.ok(&assign("5", "a"));
    world.ok(&Command::UnassignDomain { domain: zone("5") });
    world.ok(&bind("k", "a"));
    world.ok(&bind("l", "a"));
    world.ok(&Command::MoveCluster { cluster: "l".into(), from: "a".into(), to: "c".into() });
    world.ok(&bind("m", "own"));
    world.ok(&Command::SetQuota {
        provider: "ec2".into(),
        region: "eu".into(),
        per_shard: [("a".into(), 3)].into(),
    });
    world.ok(&Command::UpsertProvider {
        name: "ec2".into(),
        address: "p:9000".into(),
        region: "eu".into(),
    });
    world.ok(&Command::UpsertReplica {
        node_id: "node-1".into(),
        incarnation: u64::MAX,
        raft_address: "n:7791".into(),
        grpc_address: "n:7790".into(),
        max_kind: 23,
    });
    world.ok(&begin("t", "a", "b"));
    world.ok(&begin("u", "a", "c"));
    world.ok(&release("u", "1", &["m-2", "m-1"]));
    world
}

fn text(state: &State) -> String {
    String::from_utf8(state.to_payload()).unwrap()
}

fn load(text: &str) -> Result<State, String> {
    State::from_payload(text.as_bytes()).map_err(|error| error.to_string())
}

const FULL: &str = concat!(
    r#"{"FormatVersion":1,"adopted":{"keys":[],"shards":[]},"applied_index":22,"#,
    r#""cluster_to_shard":{"k":"a","l":"c","m":"own"},"#,
    r#""domain_to_shard":[{"domain":{"Key":"zone","Value":"1"},"shard":"a"},"#,
    r#"{"domain":{"Key":"zone","Value":"2"},"shard":"b"},"#,
    r#"{"domain":{"Key":"zone","Value":"3"},"shard":"own"},"#,
    r#"{"domain":{"Key":"zone","Value":"4"},"releasing_from":"a","shard":"b","since":10}],"#,
    r#""fleet_id":"u.00000000","kind_in_use":23,"ownership_key":"zone","#,
    r#""providers":[{"Address":"p:9000","Name":"ec2","Region":"eu"}],"#,
    r#""quotas":[{"key":{"Provider":"ec2","Region":"eu"},"per_shard":{"a":3}}],"#,
    r#""recovering":false,"releasing":[{"cluster":"l","releasing_from":"a","since":15},"#,
    r#"{"domain":{"Key":"zone","Value":"5"},"releasing_from":"a","since":12}],"#,
    r#""replicas":{"node-1":{"grpc_address":"n:7790","incarnation":18446744073709551615,"#,
    r#""max_kind":23,"raft_address":"n:7791"}},"shards":["#,
    r#"{"Address":"a:7780","ID":"a","LastHeartbeat":"0001-01-01T00:00:00Z","#,
    r#""RegisteredAt":"1970-01-01T00:00:00.000000007Z","changed_at":22,"shared":true},"#,
    r#"{"Address":"b:7780","ID":"b","LastHeartbeat":"0001-01-01T00:00:00Z","#,
    r#""RegisteredAt":"1970-01-01T00:00:00.000000007Z","changed_at":18,"shared":true},"#,
    r#"{"Address":"c:7780","ID":"c","LastHeartbeat":"0001-01-01T00:00:00Z","#,
    r#""RegisteredAt":"1970-01-01T00:00:00.000000007Z","changed_at":22,"shared":true},"#,
    r#"{"Address":"own:7780","ID":"own","LastHeartbeat":"0001-01-01T00:00:00Z","#,
    r#""RegisteredAt":"1970-01-01T00:00:00.000000007Z","changed_at":18}],"transfers":{"#,
    r#""t":{"from":"a","kind":"Idle","machine_ids":[],"phase":"Releasing","request":{"#,
    r#""capacity_type":0,"count":2,"instance_type":"","min_unit":{},"#,
    r#""preemptor_penalty_bucket":0,"preemptor_priority":0,"requirements":[],"zone":""},"to":"b"},"#,
    r#""u":{"from":"a","home":{"Key":"zone","Value":"1"},"kind":"Idle","#,
    r#""machine_ids":["m-1","m-2"],"phase":"Moved","request":{"#,
    r#""capacity_type":0,"count":2,"instance_type":"","min_unit":{},"#,
    r#""preemptor_penalty_bucket":0,"preemptor_priority":0,"requirements":[],"zone":""},"to":"c"}}}"#,
);

#[test]
fn the_payload_is_final_and_returns() {
    let world = full();
    assert_eq!(text(&world.state), FULL);
    assert_eq!(load(FULL).unwrap(), world.state);
    assert_eq!(load(&text(&State::default())).unwrap(), State::default());
}

const RECOVERING: &str = concat!(
    r#"{"FormatVersion":1,"adopted":{"backup_unix_ms":1700000000000,"changed":["#,
    r#"{"from":"c","key":{"cluster":"l"}},"#,
    r#"{"from":"a","key":{"domain":{"Key":"zone","Value":"1"}}},"#,
    r#"{"key":{"domain":{"Key":"zone","Value":"7"}}}],"#,
    r#""keys":[{"cluster":"l"},{"domain":{"Key":"zone","Value":"1"}},"#,
    r#"{"domain":{"Key":"zone","Value":"7"}}],"shards":["b"]},"#,
);

#[test]
fn a_recovering_state_returns() {
    let mut world = full();
    world.state.begin_recovery(&FleetId::new("u", 9), 1_700_000_000_000);
    let holdings = Holdings {
        domains: vec![zone("1"), zone("7")],
        clusters: vec!["l".into()],
        ..Holdings::default()
    };
    world.ok(&Command::AdoptHoldings { shard: "b".into(), holdings });
    let written = text(&world.state);
    assert!(written.starts_with(RECOVERING), "{written}");
    assert_eq!(load(&written).unwrap(), world.state);
    let twice = written.replacen(
        r#"{"from":"c","key":{"cluster":"l"}}"#,
        r#"{"from":"c","key":{"cluster":"l"}},{"key":{"cluster":"l"}}"#,
        1,
    );
    assert_ne!(twice, written);
    assert!(load(&twice).unwrap_err().contains("cluster l is there twice"));
}

/// What a coordinator of the base contract wrote.
#[test]
fn a_base_payload_is_loaded() {
    let base = r#"{
        "shards": [{"ID":"a","Address":"a:1","RegisteredAt":"2026-01-02T03:04:05.5Z","LastHeartbeat":"2026-01-02T03:04:06Z"}],
        "cluster_to_shard": {"k":"a"},
        "domain_to_shard": [{"domain":{"Key":"zone","Value":"1"},"shard":"a"}],
        "quotas": [{"key":{"Provider":"p","Region":"r"},"per_shard":{"a":1}}],
        "providers": [{"Name":"p","Address":"x","Region":"r"}],
        "later": 1
    }"#;
    let state = load(base).unwrap();
    assert_eq!(state.shard("a").unwrap().registered_at, 1_767_323_045_500_000_000);
    assert_eq!(state.counts(), Counts { clusters: 1, domains: 1, ..Counts::default() });
    assert_eq!(state.ownership_key(), Some(&"zone".into()));
    assert_eq!(load(&text(&state)).unwrap(), state);
    assert_eq!(load("{}").unwrap(), State::default());
    let nothing = r#"{"shards":null,"cluster_to_shard":null,"domain_to_shard":null,"quotas":null,"providers":null}"#;
    assert_eq!(load(nothing).unwrap(), State::default());
}

#[test]
fn a_newer_format_is_refused() {
    let newer = FULL.replacen(r#""FormatVersion":1"#, r#""FormatVersion":2"#, 1);
    assert!(load(&newer).unwrap_err().contains("format 2"));
    assert!(
        load(r#"{"FormatVersion":2,"shards":"of another shape"}"#)
            .unwrap_err()
            .contains("format 2")
    );
}

#[test]
fn what_no_log_could_have_made_is_refused() {
    let zone_3 = r#"{"domain":{"Key":"zone","Value":"3"},"shard":"own"}"#;
    let machines = r#""machine_ids":["m-1","m-2"]"#;
    for (from, to, wanted) in [
        (r#""k":"a""#, r#""k":"z""#, "shard z is not registered"),
        (
            zone_3,
            r#"{"domain":{"Key":"zone","Value":"3"},"shard":"z"}"#,
            "shard z is not registered",
        ),
        (zone_3, r#"{"domain":{"Key":"zone","Value":"1"},"shard":"a"}"#, "zone=1 is there twice"),
        (zone_3, r#"{"domain":{"Key":"zone","Value":"1"},"shard":"b"}"#, "is assigned to shard a"),
        (r#""ID":"b""#, r#""ID":"a""#, "shard a is registered already"),
        (r#""ID":"own""#, r#""ID":"""#, "shard_id is empty"),
        (r#"{"a":3}"#, r#"{"z":3}"#, "shard z is not registered"),
        (r#"{"a":3}"#, r#"{"a":-3}"#, "a slice is 0 or more"),
        (
            r#""releasing_from":"a","shard":"b""#,
            r#""releasing_from":"z","shard":"b""#,
            "names shard z",
        ),
        (
            r#""releasing_from":"a","shard":"b""#,
            r#""releasing_from":"b","shard":"b""#,
            "has not let go",
        ),
        (r#""since":10"#, r#""since":23"#, "not applied"),
        (r#""cluster":"l","#, "", "neither of a cluster nor of a domain"),
        (r#""Value":"5"},"releasing"#, r#""Value":"4"},"releasing"#, "zone=4 is there twice"),
        (r#""ownership_key":"zone""#, r#""ownership_key":"rack""#, "names a domain of that key"),
        (r#""to":"b""#, r#""to":"z""#, "names shard z"),
        (r#""t":{"from":"a""#, r#""t":{"from":"z""#, "names shard z"),
        (machines, r#""machine_ids":[]"#, "do not fit its phase"),
        (r#""home":{"Key":"zone","Value":"1"},"#, "", "do not fit its phase"),
        (r#""keys":[]"#, r#""keys":[{"cluster":"zz"}]"#, "cluster zz names"),
        (r#""shards":[]}"#, r#""shards":["z"]}"#, "adopted: z names"),
        (r#""Name":"ec2""#, r#""Name":"""#, "provider.name is empty"),
        ("1970-01-01T00:00:00.000000007Z", "soon", "RegisteredAt"),
        (r#""applied_index":22"#, r#""applied_index":-1"#, "cannot be read"),
    ] {
        let broken = FULL.replacen(from, to, 1);
        assert_ne!(broken, FULL, "{from}");
        let refused = load(&broken).expect_err(to);
        assert!(refused.contains(wanted), "{to}: {refused}");
    }
    // Once it has moved, who gave it may be gone.
    let gave = FULL.replacen(r#""u":{"from":"a""#, r#""u":{"from":"z""#, 1);
    assert!(load(&gave).is_ok());
}

#[test]
fn a_cut_payload_is_refused() {
    for end in 0..FULL.len() {
        assert!(load(&FULL[..end]).is_err(), "{end}");
    }
}
