use std::io::Write;

use bigfleet_net::flags::try_parse_from;

use super::*;

fn parse(args: &[&str]) -> Result<Flags, clap::Error> {
    try_parse_from(std::iter::once("upc").chain(args.iter().copied()))
}

#[test]
fn defaults_are_those_of_the_specification() {
    let flags = parse(&[]).unwrap();
    assert_eq!(flags.metrics.metrics_addr.to_string(), ":8080");
    assert_eq!((flags.cluster.qps, flags.cluster.burst), (50, 100));
    assert!(flags.cluster.leader_elect && flags.volume_topology && !flags.count_pods_resource);
    assert_eq!(flags.max_concurrent_reconciles, 16);
    assert_eq!(flags.resync, Duration::from_secs(600));
    assert_eq!(flags.daemonset_pods, DaemonSetPods::Count);
    assert_eq!(
        flags.unmanaged_node_selector.text().as_deref(),
        Some("node-role.kubernetes.io/control-plane")
    );
    assert_eq!(flags.options().unwrap().settings.class_defaults, ClassDefaults::default());
}

#[test]
fn every_flag_is_read() {
    let flags = parse(&[
        "--metrics-addr=0",
        "--qps=0",
        "--burst=7",
        "--leader-elect=false",
        "--max-concurrent-reconciles=3",
        "--resync=1m",
        "--unmanaged-node-selector=",
        "--daemonset-pods=skip",
        "--volume-topology=false",
        "--count-pods-resource",
        "--kubeconfig=/k",
        "--log-format=json",
    ])
    .unwrap();
    assert!(!flags.cluster.leader_elect && !flags.volume_topology && flags.count_pods_resource);
    assert_eq!((flags.max_concurrent_reconciles, flags.resync.as_secs()), (3, 60));
    assert_eq!(flags.unmanaged_node_selector.text(), None);
    assert_eq!(flags.daemonset_pods, DaemonSetPods::Skip);
}

#[test]
fn values_that_do_not_parse_are_usage_errors() {
    for bad in [
        "--max-concurrent-reconciles=0",
        "--resync=0",
        "--resync=10",
        "--daemonset-pods=some",
        "--unmanaged-node-selector=a in b",
        "--qps=-1",
        "--unknown",
    ] {
        let error = parse(&[bad]).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{bad}");
    }
}

#[test]
fn a_bad_file_of_defaults_is_bad_configuration() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "prod: {{interruptionPenalty: $5}}").unwrap();
    let flag = format!("--priority-class-defaults={}", file.path().display());
    let error = parse(&[&flag]).unwrap().options().unwrap_err().to_string();
    assert!(error.starts_with("--priority-class-defaults: "), "{error}");
}
