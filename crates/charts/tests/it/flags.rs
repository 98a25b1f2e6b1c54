//! Every flag of each binary can be set by its chart, and no chart sets one that there is not.

use std::{collections::BTreeSet, process::Command};

use bigfleet_coordinator::flags::CoordinatorFlags;
use bigfleet_net::flags::try_parse_from;
use bigfleet_shard::flags::ShardFlags;
use clap::{CommandFactory, Parser};
use serde_json::{Value, json};

use crate::helm::{args, find, helm, objects, values};

#[derive(Debug, Parser)]
struct Shard {
    #[command(flatten)]
    flags: ShardFlags,
}

#[derive(Debug, Parser)]
struct Coordinator {
    #[command(flatten)]
    flags: CoordinatorFlags,
}

/// Flags of both processes inside a cluster, besides their own.
const SHARED: &[&str] = &[
    "kubeconfig",
    "metrics-addr",
    "qps",
    "burst",
    "leader-elect",
    "log-level",
    "log-format",
    "debug-endpoints",
    "otlp-endpoint",
];
/// Kubernetes chapter §1.
const OPERATOR: &[&str] = &[
    "cluster-id",
    "shard-addr",
    "ack-concurrency",
    "rollup-interval",
    "bootstrap-template-file",
    "bootstrap-ttl",
    "tls-cert",
    "tls-key",
    "tls-ca",
    "require-tls",
    "demand-source",
    "node-cleanup",
    "bootstrap-tokens",
    "bootstrap-api-server",
    "bootstrap-ca-file",
    "pod-status",
];
/// Kubernetes chapter §8.
const POD_CONTROLLER: &[&str] = &[
    "priority-class-defaults",
    "max-concurrent-reconciles",
    "resync",
    "unmanaged-node-selector",
    "daemonset-pods",
    "volume-topology",
    "count-pods-resource",
];

fn names(args: &[String]) -> BTreeSet<String> {
    let flags = args.iter().filter_map(|arg| arg.strip_prefix("--"));
    flags.map(|flag| flag.split('=').next().unwrap_or_default().to_owned()).collect()
}

fn of_command<T: CommandFactory>() -> BTreeSet<String> {
    let command = T::command();
    let longs = command.get_arguments().filter_map(|arg| arg.get_long().map(str::to_owned));
    longs.filter(|name| name != "help").collect()
}

/// The arguments that a set of values gives a workload.
fn rendered(chart: &str, set: &Value, kind: &str, name: &str) -> Vec<String> {
    args(find(&objects(chart, set), kind, name))
}

/// The chart reaches the flags that it has no value for by `extraArgs` at `place`.
fn reach_the_rest(chart: &str, kind: &str, name: &str, place: &str, all: &BTreeSet<String>) {
    let mut set = values(chart);
    let given = names(&rendered(chart, &set, kind, name));
    assert!(given.is_subset(all), "unknown flags: {:?}", given.difference(all));
    let rest: BTreeSet<String> = all.difference(&given).cloned().collect();
    let extra: Vec<String> = rest.iter().map(|flag| format!("--{flag}=x")).collect();
    let place = if place.is_empty() { &mut set } else { &mut set[place] };
    place["extraArgs"] = json!(extra);
    assert_eq!(names(&rendered(chart, &set, kind, name)), *all);
}

#[test]
fn shards_take_what_the_chart_gives_and_the_chart_reaches_every_flag() {
    if helm().is_none() {
        return;
    }
    for set in ["bigfleet", "bigfleet-full", "bigfleet-other"] {
        let args = rendered("bigfleet", &values(set), "StatefulSet", "bigfleet-shard");
        assert_eq!(args[0], "shard");
        if let Err(error) = try_parse_from::<Shard>(&args) {
            panic!("{set}: {error}");
        }
    }
    let all = of_command::<Shard>();
    assert!(all.contains("provider-addr"), "{all:?}");
    reach_the_rest("bigfleet", "StatefulSet", "bigfleet-shard", "shard", &all);
}

#[test]
fn coordinators_take_what_the_chart_gives_and_the_chart_reaches_every_flag() {
    if helm().is_none() {
        return;
    }
    for set in ["bigfleet", "bigfleet-full", "bigfleet-single"] {
        let args = rendered("bigfleet", &values(set), "StatefulSet", "bigfleet-coordinator");
        assert_eq!(args[0], "coordinator");
        if let Err(error) = try_parse_from::<Coordinator>(&args) {
            panic!("{set}: {error}");
        }
    }
    let all = of_command::<Coordinator>();
    assert!(all.contains("raft-advertise"), "{all:?}");
    reach_the_rest("bigfleet", "StatefulSet", "bigfleet-coordinator", "coordinator", &all);
}

#[test]
fn charts_of_clusters_reach_every_flag() {
    if helm().is_none() {
        return;
    }
    for (chart, own) in
        [("bigfleet-operator", OPERATOR), ("bigfleet-unschedulable-pod-controller", POD_CONTROLLER)]
    {
        let all: BTreeSet<String> =
            SHARED.iter().chain(own).map(|name| (*name).to_owned()).collect();
        // Only where the kubeconfig is has no value of its own.
        let full = values(&format!("{chart}-full"));
        assert_eq!(names(&rendered(chart, &full, "Deployment", chart)), all, "{chart}");
        reach_the_rest(chart, "Deployment", chart, "", &all);
        if let Some(real) = of_binary(chart) {
            assert_eq!(real, all, "flags of {chart} differ from the list in this test");
        }
    }
}

/// Flags that the binary beside this test prints; none while it is not built or prints none.
fn of_binary(name: &str) -> Option<BTreeSet<String>> {
    let folder = std::env::current_exe().ok()?.parent()?.parent()?.to_owned();
    let output = Command::new(folder.join(name)).arg("--help").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut flags = BTreeSet::new();
    for line in text.lines().map(str::trim_start) {
        // `-h, --help` and `--qps <N>`; not those that a description mentions.
        let Some(word) = line.split(' ').find(|word| !matches!(*word, "-h," | "-V,")) else {
            continue;
        };
        if let Some(flag) = word.strip_prefix("--") {
            flags.insert(flag.split(['=', '[']).next().unwrap_or_default().to_owned());
        }
    }
    flags.remove("help");
    flags.remove("version");
    (!flags.is_empty()).then_some(flags)
}
