//! Names, defaults and refusals.

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Binary {
    #[command(flatten)]
    coordinator: CoordinatorFlags,
}

fn parse(args: &[&str]) -> Result<CoordinatorFlags, clap::Error> {
    let args = std::iter::once("coordinator").chain(args.iter().copied());
    bigfleet_net::flags::try_parse_from(args).map(|binary: Binary| binary.coordinator)
}

/// Every flag of the chapter's table and of the shared ones, with its default.
#[test]
fn flags_are_those_of_the_chapter() {
    let mut expected = [
        ("--listen", ":7790"),
        ("--metrics-addr", ":8790"),
        ("--raft-bind", ":7791"),
        ("--raft-advertise", ""),
        ("--grpc-advertise", ""),
        ("--id", "node-1"),
        ("--data-dir", "./coord-data"),
        ("--bootstrap", "false"),
        ("--join-addr", ""),
        ("--initial-replicas", "3"),
        ("--force-bootstrap", "false"),
        ("--snapshot-export-dir", ""),
        ("--snapshot-export-interval", "5m"),
        ("--snapshot-export-retain", "288"),
        ("--rebalance-interval", "50s"),
        ("--rebalance-max-tier", "3"),
        ("--rebalance-cooldown", "80s"),
        ("--rebalance-donor-margin", "0.10"),
        ("--rebalance-min-benefit", "0.10"),
        ("--rebalance-max-machines", "1000"),
        ("--shard-stale-after", "30s"),
        ("--shard-expire-after", "5m"),
        ("--raft-timer-scale", "1"),
        ("--tls-cert", ""),
        ("--tls-key", ""),
        ("--tls-ca", ""),
        ("--require-tls", "false"),
        ("--log-level", "info"),
        ("--log-format", "text"),
        ("--debug-endpoints", "false"),
        ("--otlp-endpoint", ""),
    ]
    .map(|(name, default)| (name.to_owned(), default.to_owned()));
    let command = <Binary as clap::CommandFactory>::command();
    let mut actual: Vec<(String, String)> = command
        .get_arguments()
        .filter_map(|arg| {
            let default = arg.get_default_values().first();
            let default = default.map(|text| text.to_string_lossy().into_owned());
            Some((format!("--{}", arg.get_long()?), default.unwrap_or_default()))
        })
        .collect();
    actual.sort();
    expected.sort();
    assert_eq!(actual, expected);
    parse(&[]).unwrap().check().unwrap();
}

#[test]
fn values_outside_their_range_are_usage_errors() {
    for (flag, says) in [
        ("--listen=nowhere", "write :7780"),
        ("--raft-bind=nowhere", "write :7780"),
        ("--id=", "name the replica"),
        ("--id=a/b", "A-Z a-z 0-9"),
        ("--initial-replicas=0", "1..=5"),
        ("--initial-replicas=6", "1..=5"),
        ("--raft-timer-scale=0", "1..=20"),
        ("--raft-timer-scale=21", "1..=20"),
        ("--rebalance-max-tier=4", "1..=3"),
        ("--rebalance-cooldown=0", "above 0"),
        ("--rebalance-donor-margin=1.5", "from 0 to 1"),
        ("--rebalance-min-benefit=-1", "from 0 to 1"),
        ("--rebalance-max-machines=0", "above 0"),
        ("--snapshot-export-interval=0", "above 0"),
        ("--snapshot-export-retain=0", "above 0"),
        ("--shard-stale-after=0", "above 0"),
        ("--bootstrap=perhaps", "--bootstrap"),
    ] {
        let refused = parse(&[flag]).unwrap_err();
        assert_eq!(refused.exit_code(), 2, "{flag}");
        assert!(refused.to_string().contains(says), "{flag}: {refused}");
    }
}

#[test]
fn contradictions_name_the_flag_and_what_to_do() {
    const JOINS: &[&str] = &["--join-addr=coordinators:7790", "--raft-advertise=me:7791"];
    let check = |args: &[&str]| parse(args).unwrap().check();
    let with = |args: &[&'static str]| check(&[JOINS, args].concat());
    with(&["--id=coordinator-0"]).unwrap();
    for (args, says) in [
        (&["--id=coordinator"][..], "end in -<ordinal>"),
        (&["--id=coordinator-x"], "end in -<ordinal>"),
        (&["--initial-replicas=2"], "at least 3"),
        (&["--initial-replicas=1"], "has no --join-addr"),
        (&["--grpc-advertise=:7790"], "--grpc-advertise \":7790\": it names no host"),
    ] {
        let refused = with(args).unwrap_err().to_string();
        assert!(refused.contains(says), "{args:?}: {refused}");
    }
    for args in [&["--initial-replicas=1"][..], &["--id=alone"], &["--rebalance-cooldown=61s"]] {
        check(args).unwrap();
    }
    let nowhere = check(&["--join-addr=coordinators:7790"]).unwrap_err().to_string();
    assert!(nowhere.starts_with("--raft-advertise \":7791\": it names no host"), "{nowhere}");
    assert!(check(&["--join-addr=a:1", "--raft-bind=0.0.0.0:7791"]).is_err());
    let nowhere = check(&["--join-addr=a:1,nowhere", JOINS[1]]).unwrap_err().to_string();
    assert!(nowhere.starts_with("--join-addr \"nowhere\": not host:port"), "{nowhere}");
    assert_eq!(check(&["--data-dir="]), Err(Error::NoDataDir));
    let refused = check(&["--rebalance-cooldown=60s"]).unwrap_err();
    assert_eq!(refused, Error::CooldownTooShort { least: Duration::from_secs(60) });
    check(&["--rebalance-cooldown=1s", "--rebalance-interval=0"]).unwrap();
    let refused = check(&["--shard-expire-after=30s"]).unwrap_err();
    assert_eq!(refused, Error::ExpiresTooSoon);
}

#[test]
fn addresses_follow_each_other() {
    let (grpc, raft): (SocketAddr, SocketAddr) =
        ("0.0.0.0:1".parse().unwrap(), "0.0.0.0:2".parse().unwrap());
    for (args, raft_address, grpc_address) in [
        (&[][..], ":2", ":1"),
        (&["--raft-bind=127.0.0.1:0"], "127.0.0.1:2", "127.0.0.1:1"),
        (&["--raft-bind=[::1]:0"], "[::1]:2", "[::1]:1"),
        (&["--raft-advertise=c-0.svc:7791"], "c-0.svc:7791", "c-0.svc:1"),
        (&["--raft-advertise=c-0.svc:7791", "--grpc-advertise=lb:9"], "c-0.svc:7791", "lb:9"),
    ] {
        let config = parse(args).unwrap().consensus(grpc, raft);
        assert_eq!((&*config.raft_address, &*config.grpc_address), (raft_address, grpc_address));
    }
    let scaled = parse(&["--raft-timer-scale=20"]).unwrap().consensus(grpc, raft);
    assert_eq!(scaled.timers.election, Duration::from_secs(10));
}
