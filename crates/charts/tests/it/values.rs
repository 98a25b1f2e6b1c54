//! Values: every one is read, and a wrong one is refused by name.

use std::sync::Mutex;

use bigfleet_charts::{charts::CHARTS, root};
use serde_json::{Value, json};

use crate::helm::{KUBE, helm, print, values};

/// Sets of values that together set every value to something else than its default.
fn sets(chart: &str) -> Vec<&'static str> {
    match chart {
        "bigfleet" => vec!["bigfleet-full", "bigfleet-other", "bigfleet-single"],
        "bigfleet-operator" => vec!["bigfleet-operator-full", "bigfleet-operator-other"],
        _ => vec![
            "bigfleet-unschedulable-pod-controller-full",
            "bigfleet-unschedulable-pod-controller-other",
        ],
    }
}

fn defaults(chart: &str) -> Value {
    let path = root().join("charts").join(chart).join("values.yaml");
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Paths of values that hold no others, as JSON pointers.
fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
    match value.as_object().filter(|map| !map.is_empty()) {
        // These are one value each, whatever is in them.
        Some(map) if !at.ends_with("/labels") && !at.ends_with("/resources") => {
            for (key, value) in map {
                leaves(value, &format!("{at}/{key}"), found);
            }
        }
        _ => found.push(at.to_owned()),
    }
}

fn without(values: &Value, leaf: &str) -> Value {
    let mut values = values.clone();
    let (parent, key) = leaf.rsplit_once('/').unwrap();
    if let Some(map) = values.pointer_mut(parent).and_then(Value::as_object_mut) {
        map.remove(key);
    }
    values
}

/// Renders with each value back at its default: the output must change.
#[test]
fn every_value_is_read() {
    if helm().is_none() {
        return;
    }
    let mut work = Vec::new();
    for chart in CHARTS {
        let defaults = defaults(chart);
        let mut paths = Vec::new();
        leaves(&defaults, "", &mut paths);
        for leaf in paths {
            let set: Vec<&str> = sets(chart)
                .into_iter()
                .filter(|set| {
                    let given = values(set);
                    given.pointer(&leaf).is_some_and(|one| Some(one) != defaults.pointer(&leaf))
                })
                .collect();
            assert!(!set.is_empty(), "{chart}: no file of tests/values sets {leaf}");
            work.push((chart, leaf, set));
        }
    }
    assert!(work.len() > 200, "{}", work.len());
    let (work, unread) = (Mutex::new(work), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((chart, leaf, sets)) = { work.lock().unwrap().pop() } {
                    let read = sets.iter().any(|set| {
                        let given = values(set);
                        let before = print(chart, KUBE[1], &given).unwrap();
                        match print(chart, KUBE[1], &without(&given, &leaf)) {
                            Ok(after) => after != before,
                            // A template asked for it.
                            Err(error) => {
                                assert!(error.contains("execution error"), "{leaf}: {error}");
                                true
                            }
                        }
                    });
                    if !read {
                        unread.lock().unwrap().push(format!("{chart}: {leaf}"));
                    }
                }
            });
        }
    });
    assert_eq!(unread.into_inner().unwrap(), [""; 0], "values that no template reads");
}

/// Sets one value in the chart's own set.
fn with(chart: &str, leaf: &str, value: Value) -> Value {
    let mut values = values(chart);
    let mut at = &mut values;
    for key in leaf.trim_start_matches('/').split('/') {
        if !at.is_object() {
            *at = json!({});
        }
        at = at.as_object_mut().unwrap().entry(key).or_insert(Value::Null);
    }
    *at = value;
    values
}

#[test]
fn unknown_values_and_wrong_types_are_refused_by_name() {
    if helm().is_none() {
        return;
    }
    for (chart, leaf, value, said) in [
        ("bigfleet-operator", "/clusterId", json!("a"), "additional properties 'clusterId'"),
        ("bigfleet-operator", "/clusterID", json!("a b"), "/clusterID"),
        ("bigfleet-operator", "/qps", json!("many"), "/qps"),
        ("bigfleet-operator", "/replicas", json!("2"), "/replicas"),
        ("bigfleet-operator", "/demandSource", json!("pods"), "/demandSource"),
        ("bigfleet-operator", "/rollupInterval", json!("soon"), "/rollupInterval"),
        ("bigfleet-operator", "/image/tag", json!("latest"), "/image/tag"),
        ("bigfleet-operator", "/extraArgs", json!("--qps=1"), "/extraArgs"),
        ("bigfleet-unschedulable-pod-controller", "/clusterID", json!("a"), "clusterID"),
        ("bigfleet-unschedulable-pod-controller", "/daemonsetPods", json!(true), "/daemonsetPods"),
        (
            "bigfleet-unschedulable-pod-controller",
            "/priorityClassDefaults",
            json!({"critical": {"penalty": 1}}),
            "/priorityClassDefaults/critical",
        ),
        ("bigfleet", "/shard/replica", json!(2), "/shard"),
        ("bigfleet", "/shard/reclaimCapFraction", json!(5), "/shard/reclaimCapFraction"),
        ("bigfleet", "/shard/actuationPaused", json!("no"), "/shard/actuationPaused"),
        ("bigfleet", "/coordinator/replicas", json!(2), "/coordinator/replicas"),
        ("bigfleet", "/coordinator/storage/size", json!("big"), "/coordinator/storage/size"),
        ("bigfleet", "/shard/tls/secretNameTemplate", json!("a"), "/shard/tls/secretNameTemplate"),
        ("bigfleet", "/alerts/slo/target", json!(99), "/alerts/slo/target"),
    ] {
        let error = print(chart, KUBE[1], &with(chart, leaf, value)).unwrap_err();
        assert!(error.contains("schema") && error.contains(said), "{leaf}: {error}");
    }
}

#[test]
fn what_is_missing_or_contradictory_is_said_with_what_to_do() {
    if helm().is_none() {
        return;
    }
    for (chart, changes, said) in [
        ("bigfleet-operator", vec![("/clusterID", json!(""))], "--set clusterID="),
        ("bigfleet-operator", vec![("/shardAddress", json!(""))], "--set shardAddress="),
        (
            "bigfleet-operator",
            vec![("/leaderElect", json!(false))],
            "set replicas=1 or leaderElect=true",
        ),
        (
            "bigfleet-operator",
            vec![("/bootstrapTemplate", json!("x")), ("/bootstrapTemplateSecret/name", json!("y"))],
            "give one of them",
        ),
        (
            "bigfleet-operator",
            vec![("/bootstrapTokens/pool", json!(3))],
            "bootstrapTokens.apiServer",
        ),
        ("bigfleet-operator", vec![("/tls/require", json!(true))], "tls.secretName"),
        ("bigfleet", vec![("/shard/provider/addr", json!(""))], "shard.provider.allowFake=true"),
        ("bigfleet", vec![("/shard/provider/allowFake", json!(true))], "give one of them"),
        (
            "bigfleet",
            vec![("/shard/tls/secretName", json!("a")), ("/shard/replicas", json!(2))],
            "shard.tls.secretNameTemplate",
        ),
        (
            "bigfleet",
            vec![("/coordinator/tls/require", json!(true))],
            "coordinator.tls.secretNameTemplate",
        ),
        (
            "bigfleet",
            vec![("/coordinator/snapshotExport/claim", json!("a"))],
            "coordinator.snapshotExport.dir",
        ),
        (
            "bigfleet",
            vec![("/dashboard/enabled", json!(true)), ("/dashboard/auth/mode", json!("oidc"))],
            "dashboard.auth.oidc.issuer",
        ),
    ] {
        let mut values = values(chart);
        for (leaf, value) in changes {
            let one = with(chart, leaf, value);
            merge(&mut values, one);
        }
        let error = print(chart, KUBE[1], &values).unwrap_err();
        assert!(error.contains("execution error") && error.contains(said), "{error}");
    }
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}
