use super::*;

#[derive(clap::Parser)]
struct Binary {
    #[command(flatten)]
    shard: ShardFlags,
}

fn parse(args: &[&str]) -> Result<ShardFlags, clap::Error> {
    let args = std::iter::once("binary").chain(args.iter().copied());
    bigfleet_net::flags::try_parse_from(args).map(|binary: Binary| binary.shard)
}

/// Every flag of the chapter's table and of the shared ones, with its default.
#[test]
fn flags_are_those_of_the_chapter() {
    let expected = [
        ("--listen", ":7780"),
        ("--metrics-addr", ":8780"),
        ("--id", "shard-0"),
        ("--data-dir", "./data"),
        ("--provider-addr", ""),
        ("--coordinator-addr", ""),
        ("--advertise-addr", ""),
        ("--coordinator-heartbeat-interval", "10s"),
        ("--execute-concurrency", "64"),
        ("--max-actions-per-cycle", "0"),
        ("--incremental-reconcile", "false"),
        ("--reclaim-cap-fraction", "0.05"),
        ("--empty-rollup-guard", "true"),
        ("--idle-hold-on-demand", "10m"),
        ("--idle-hold-spot", "1m"),
        ("--actuation-paused", "false"),
        ("--dry-run", "false"),
        ("--pause-file", ""),
        ("--audit-log", ""),
        ("--available-capacity-interval", "0"),
        ("--metrics-warmup-cycles", "0"),
        ("--phase-attribution-log", "false"),
        ("--local-bootstrap", "false"),
        ("--tls-cert", ""),
        ("--tls-key", ""),
        ("--tls-ca", ""),
        ("--require-tls", "false"),
        ("--log-level", "info"),
        ("--log-format", "text"),
        ("--debug-endpoints", "false"),
        ("--otlp-endpoint", ""),
        ("--cycle-interval", "10s"),
        ("--execute-timeout", "30s"),
        ("--bootstrap-timeout", "30s"),
        ("--provider-max-inflight", ""),
        ("--epoch-floor", "0"),
        ("--provider-list-page", "0"),
        ("--provider-identity", ""),
        ("--shared-provider", "false"),
        ("--seed-machines", "0"),
        ("--seed-speculative", "0"),
        ("--seed-spot", "0"),
        ("--seed-configured-per-cluster", "0"),
        ("--failure-rate-per-sec", "0"),
        ("--speculative-shed-at-seconds", "0"),
        ("--seed-cluster-total", "0"),
        ("--seed-cluster-stride", "0"),
        ("--seed-density-multiplier", "1"),
        ("--speculative-shed-multiplier", "1"),
        ("--archetypes", ""),
    ];
    let command = <Binary as clap::CommandFactory>::command();
    let mut actual: Vec<(String, String)> = command
        .get_arguments()
        .filter_map(|arg| {
            let default = arg.get_default_values().first();
            let default = default.map(|text| text.to_string_lossy().into_owned());
            Some((format!("--{}", arg.get_long()?), default.unwrap_or_default()))
        })
        .collect();
    let mut expected: Vec<(String, String)> =
        expected.map(|(name, default)| (name.to_owned(), default.to_owned())).into();
    actual.sort();
    expected.sort();
    assert_eq!(actual, expected);
}

#[test]
fn rails_are_on_in_the_flags_and_off_in_the_library() {
    let (flags, library) = (parse(&[]).unwrap().options(), Options::default());
    assert_eq!((flags.reclaim_cap_fraction, flags.empty_rollup_guard), (Some(0.05), true));
    assert_eq!((library.reclaim_cap_fraction, library.empty_rollup_guard), (None, false));
    let same = Options { reclaim_cap_fraction: None, empty_rollup_guard: false, ..flags };
    assert_eq!(same, library, "all else is alike");
}

#[test]
fn values_arrive() {
    let flags = parse(&[
        "--id=a.B_9-",
        "--listen=127.0.0.1:1",
        "--coordinator-addr=one:7790,two:7790",
        "--execute-concurrency=8",
        "--reclaim-cap-fraction=0",
        "--empty-rollup-guard=false",
        "--dry-run",
        "--pause-file=/run/pause",
        "--audit-log=/var/log/audit",
        "--available-capacity-interval=1s",
        "--epoch-floor=9",
        "--shared-provider",
        "--provider-addr=p:9000",
        "--provider-identity=bigfleet://provider/ec2",
    ])
    .unwrap();
    flags.check().unwrap();
    let options = flags.options();
    assert_eq!(options.id, "a.B_9-");
    assert_eq!((options.provider_max_inflight, options.reclaim_cap_fraction), (8, None));
    assert!(!options.empty_rollup_guard && options.actuation.dry_run && options.shared_provider);
    assert_eq!(options.actuation.pause_file, Some("/run/pause".into()));
    assert_eq!(options.available_capacity_interval, Duration::from_secs(1));
    assert_eq!(options.provider_identity, Some(Identity::Provider("ec2".into())));
    assert_eq!(flags.audit_log(), Some("/var/log/audit".into()));
    assert_eq!(flags.coordinators().collect::<Vec<_>>(), ["one:7790", "two:7790"]);
    assert_eq!((flags.opening().epoch_floor, flags.opening().shared_provider), (9, true));
    assert_eq!(flags.advertised(), "127.0.0.1:1");
    assert_eq!(parse(&["--advertise-addr=me:1"]).unwrap().advertised(), "me:1");
    let inflight = parse(&["--provider-max-inflight=1"]).unwrap().options();
    assert_eq!((inflight.execute_concurrency, inflight.provider_max_inflight), (64, 1));
}

#[test]
fn empty_means_none() {
    let flags = parse(&["--coordinator-addr=", "--audit-log=", "--pause-file="]).unwrap();
    assert_eq!(flags.coordinators().count(), 0);
    assert_eq!((flags.audit_log(), flags.options().actuation.pause_file), (None, None));
}

#[test]
fn refusals_say_what_to_do() {
    let long = format!("--id={}", "x".repeat(254));
    for (flag, text) in [
        ("--listen=", "write :7780"),
        ("--id=", "must not be empty"),
        ("--id=a/b", "A-Z a-z 0-9"),
        ("--id=ä", "A-Z a-z 0-9"),
        (&*long, "shorten it to 253"),
        ("--reclaim-cap-fraction=1.5", "from 0 to 1"),
        ("--reclaim-cap-fraction=NaN", "from 0 to 1"),
        ("--execute-concurrency=0", "above 0"),
        ("--provider-max-inflight=0", "above 0"),
        ("--cycle-interval=0", "above 0"),
        ("--cycle-interval=10", "needs a unit"),
        ("--epoch-floor=1700000000", "highest epoch"),
        ("--epoch-floor=-1", "highest epoch"),
        ("--failure-rate-per-sec=inf", "from 0 up"),
        ("--provider-identity=bigfleet://shard/a", "bigfleet://provider/NAME"),
    ] {
        let refused = parse(&[flag]).unwrap_err();
        assert_eq!(refused.exit_code(), 2);
        assert!(refused.to_string().contains(text), "{flag}: {refused}");
    }
    parse(&[&long[..long.len() - 1]]).unwrap();
}

#[test]
fn a_shared_provider_is_elsewhere_and_has_a_coordinator() {
    let shared = |more: &[&str]| {
        let mut args = vec!["--shared-provider"];
        args.extend(more);
        parse(&args).unwrap().check()
    };
    let (provider, coordinator) = ("--provider-addr=p:9000", "--coordinator-addr=c:7790");
    assert_eq!(shared(&[coordinator]), Err(Error::SharedFake));
    assert_eq!(shared(&[provider]), Err(Error::SharedWithoutCoordinator));
    assert_eq!(shared(&[provider, "--coordinator-addr="]), Err(Error::SharedWithoutCoordinator));
    assert_eq!(shared(&[provider, coordinator]), Ok(()));
}

#[test]
fn the_fakes_flags_need_the_fake() {
    for flag in [
        "--seed-machines=1",
        "--seed-speculative=1",
        "--seed-spot=1",
        "--seed-configured-per-cluster=1",
        "--failure-rate-per-sec=0.5",
        "--speculative-shed-at-seconds=1",
    ] {
        parse(&[flag]).unwrap().check().unwrap();
        let refused = parse(&[flag, "--provider-addr=p:9000"]).unwrap().check().unwrap_err();
        let (name, _) = flag.split_once('=').unwrap();
        assert!(refused.to_string().starts_with(name), "{refused}");
        assert!(refused.to_string().contains("remove --provider-addr"), "{refused}");
    }
    parse(&["--provider-addr=p:9000", "--archetypes=x"]).unwrap().check().unwrap();
    assert_eq!(parse(&["--data-dir="]).unwrap().check(), Err(Error::NoDataDir));
}
