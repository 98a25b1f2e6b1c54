//! Every flag of each binary can be set by its chart, and no chart sets one that there is not.

use std::collections::BTreeSet;

use bigfleet_coordinator::flags::CoordinatorFlags;
use bigfleet_dashboard::flags::Flags as DashboardFlags;
use bigfleet_net::flags::try_parse_from;
use bigfleet_operator::flags::OperatorFlags;
use bigfleet_shard::flags::ShardFlags;
use bigfleet_unschedulable_pod_controller::flags::Flags as PodControllerFlags;
use clap::{CommandFactory, FromArgMatches, Parser};
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

fn names(args: &[String]) -> BTreeSet<String> {
    let flags = args.iter().filter_map(|arg| arg.strip_prefix("--"));
    flags.map(|flag| flag.split('=').next().unwrap_or_default().to_owned()).collect()
}

fn of_command<T: CommandFactory>() -> BTreeSet<String> {
    let command = T::command();
    let longs = command.get_arguments().filter_map(|arg| arg.get_long().map(str::to_owned));
    longs.filter(|name| name != "help" && name != "version").collect()
}

/// The arguments that a set of values gives a workload.
fn rendered(chart: &str, set: &Value, kind: &str, name: &str) -> Vec<String> {
    args(find(&objects(chart, set), kind, name))
}

/// The chart reaches the flags that it has no value for by `extraArgs` at `place`.
fn reach_the_rest(chart: &str, kind: &str, name: &str, place: &str, all: &BTreeSet<String>) {
    reach_the_rest_of(values(chart), chart, kind, name, place, all);
}

fn reach_the_rest_of(
    mut set: Value,
    chart: &str,
    kind: &str,
    name: &str,
    place: &str,
    all: &BTreeSet<String>,
) {
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
fn dashboards_take_what_the_chart_gives_and_the_chart_reaches_every_flag() {
    if helm().is_none() {
        return;
    }
    let name = "bigfleet-web-dashboard";
    let mut alone = values("bigfleet");
    alone["dashboard"] = json!({"enabled": true});
    for set in [alone.clone(), values("bigfleet-full"), values("bigfleet-other")] {
        let mut args = rendered("bigfleet", &set, "Deployment", name);
        args.insert(0, name.to_owned());
        if let Err(error) = try_parse_from::<DashboardFlags>(&args) {
            panic!("{args:?}: {error}");
        }
    }
    let all = of_command::<DashboardFlags>();
    assert!(all.contains("cluster-scope-claim"), "{all:?}");
    reach_the_rest_of(alone, "bigfleet", "Deployment", name, "dashboard", &all);
}

/// Whatever the chart's values are, the binary takes its arguments, and the fullest set of them
/// sets every flag there is.
fn reach_every_flag<T: CommandFactory + FromArgMatches>(chart: &str) {
    let all = of_command::<T>();
    for set in [chart.to_owned(), format!("{chart}-full"), format!("{chart}-other")] {
        let mut args = rendered(chart, &values(&set), "Deployment", chart);
        args.insert(0, chart.to_owned());
        if let Err(error) = try_parse_from::<T>(&args) {
            panic!("{set}: {error}");
        }
    }
    // Only where the kubeconfig is has no value of its own.
    let full = values(&format!("{chart}-full"));
    assert_eq!(names(&rendered(chart, &full, "Deployment", chart)), all, "{chart}");
    reach_the_rest(chart, "Deployment", chart, "", &all);
}

#[test]
fn operators_take_what_the_chart_gives_and_the_chart_reaches_every_flag() {
    if helm().is_some() {
        reach_every_flag::<OperatorFlags>("bigfleet-operator");
    }
}

#[test]
fn pod_controllers_take_what_the_chart_gives_and_the_chart_reaches_every_flag() {
    if helm().is_some() {
        reach_every_flag::<PodControllerFlags>("bigfleet-unschedulable-pod-controller");
    }
}
