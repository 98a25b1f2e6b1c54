//! The exposition says what the specification says, and nothing changes
//! unnoticed: `metrics.txt` was transcribed from the chapter.

#![allow(clippy::expect_used, reason = "helpers of tests fail by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use bigfleet_engine::Reason;
use bigfleet_model::{
    CapacityType, ClusterId, MachineState, PenaltyBucket, gate::inventory::RejectReason,
};
use bigfleet_shard::{
    metrics::{Metrics, Phase, PriorityClass, ReportOutcome, SessionEvent, WatchMethod},
    outcome::{Kind, Outcome},
};
use prometheus_client::{encoding::text, registry::Registry};

const TABLE: &str = include_str!("metrics.txt");
const PREFIX: &str = "bigfleet_shard_";

/// One metric: type, labels, and for a histogram the bounds that must be there.
#[derive(Debug, Default, PartialEq)]
struct Metric {
    r#type: String,
    labels: BTreeSet<String>,
    bounds: Vec<f64>,
}

fn table() -> BTreeMap<String, Metric> {
    let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut metrics = BTreeMap::new();
    for line in lines {
        let mut words: Vec<&str> = line.split(' ').collect();
        let mut bounds = Vec::new();
        if words[1] == "histogram" {
            let count: i32 = words.pop().expect("a count").parse().expect("a number");
            let first: f64 = words.pop().expect("a first bound").parse().expect("a number");
            bounds = (0..count).map(|power| first * 2f64.powi(power)).collect();
        }
        let labels = words[2..].iter().map(|&label| label.to_owned()).collect();
        let metric = Metric { r#type: words[1].to_owned(), labels, bounds };
        assert!(metrics.insert(words[0].to_owned(), metric).is_none(), "twice: {line}");
    }
    metrics
}

/// The metrics of an exposition, by the name that the chapter gives them.
fn exposed(exposition: &str) -> BTreeMap<String, Metric> {
    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    let mut family = String::new();
    for line in exposition.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, r#type) = rest.split_once(' ').expect("name and type");
            let total = if r#type == "counter" { "_total" } else { "" };
            family = format!("{}{total}", name.strip_prefix(PREFIX).expect("our prefix"));
            metrics.entry(family.clone()).or_default().r#type = r#type.to_owned();
        } else if !line.starts_with('#') {
            let metric = metrics.get_mut(&family).expect("a type before its samples");
            let Some((_, rest)) = line.split_once('{') else { continue };
            let (labels, _) = rest.rsplit_once('}').expect("a closing brace");
            for pair in labels.split("\",") {
                let (label, value) = pair.split_once("=\"").expect("label and value");
                let value = value.trim_end_matches('"');
                match (label, value) {
                    ("le", "+Inf") => {}
                    ("le", bound) => metric.bounds.push(bound.parse().expect("a bound")),
                    _ => drop(metric.labels.insert(label.to_owned())),
                }
            }
        }
    }
    metrics
}

/// Every labelled metric gets a sample: an empty family has no labels to see.
fn touch_all(metrics: &Metrics) {
    let (cluster, second) = (ClusterId::from("a"), Duration::from_secs(1));
    metrics.phase(Phase::Phase1, second);
    let combination = (MachineState::Idle, CapacityType::Spot, PenaltyBucket::ZERO);
    metrics.inventory([(combination, 3)]);
    metrics.demand([(PenaltyBucket::PINNED, 2)]);
    metrics.cost([((CapacityType::OnDemand, MachineState::Configured), 1.5)]);
    metrics.need_waited(PriorityClass::Batch, second);
    metrics.needs_unmet(|reason| usize::from(reason == Reason::PriorityStarved));
    metrics.action(Kind::Preempt);
    metrics.executed(Kind::Reclaim, Outcome::BlobTimeout);
    metrics.suppressed(Kind::Delete);
    metrics.dryrun(Kind::Delete);
    metrics.machine_rejected(RejectReason::Price);
    metrics.session_counter(SessionEvent::Replaced).inc();
    metrics.reconcile_forced(MachineState::Configured, MachineState::Failed);
    metrics.coordinator_report(ReportOutcome::NotLeader);
    metrics.watchers(WatchMethod::WatchDecisions).inc();
    metrics.watcher_dropped(WatchMethod::WatchDecisions);
    metrics.rollup_quarantined(&cluster, 2);
    metrics.rollup_rejected(&cluster);
    metrics.rollup_age(&cluster, second);
}

fn exposition(metrics: &Metrics) -> String {
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let mut text = String::new();
    text::encode(&mut text, &registry).expect("an exposition");
    text
}

#[test]
fn exposition_equals_the_table() {
    let metrics = Metrics::default();
    touch_all(&metrics);
    let text = exposition(&metrics);
    println!("{text}");
    let (expected, actual) = (table(), exposed(&text));
    let names = |metrics: &BTreeMap<String, Metric>| -> BTreeSet<String> {
        metrics.keys().cloned().collect()
    };
    assert_eq!(names(&actual), names(&expected));
    for (name, expected) in &expected {
        let actual = &actual[name];
        assert_eq!(actual.r#type, expected.r#type, "{name}");
        assert_eq!(actual.labels, expected.labels, "{name}");
        for bound in &expected.bounds {
            assert!(actual.bounds.contains(bound), "{name} lacks the bound {bound}");
        }
    }
}

#[test]
fn values_stand_under_the_labels_of_the_chapter() {
    let metrics = Metrics::default();
    touch_all(&metrics);
    let text = exposition(&metrics);
    for line in [
        "inventory_machines{state=\"idle\",capacity_type=\"spot\",interruption_penalty_bucket=\"0\"} 3",
        "demand_machines{interruption_penalty_bucket=\"pinned\"} 2",
        "cost_dollars_per_hour{capacity_type=\"on_demand\",state=\"configured\"} 1.5",
        "needs_unmet{reason=\"priority_starved\"} 1",
        "needs_unmet{reason=\"no_matching_supply\"} 0",
        "action_execute_outcomes_total{kind=\"Reclaim\",outcome=\"blob_timeout\"} 1",
        "actions_total{kind=\"Preempt\"} 1",
        "actions_total{kind=\"Bootstrap\"} 0",
        "reconcile_forced_total{from=\"configured\",to=\"failed\"} 1",
        "shortfalls_aged{bucket=\"300+\"} 0",
        "rollup_age_seconds{cluster=\"a\"} 1.0",
        "rollup_quarantined{cluster=\"a\"} 2",
    ] {
        assert!(text.contains(&format!("{PREFIX}{line}\n")), "{line}\n{text}");
    }
    metrics.inventory([]);
    let drained = "interruption_penalty_bucket=\"0\"} 0\n";
    assert!(exposition(&metrics).contains(drained), "a drained combination goes to 0");
}

#[test]
fn a_gone_cluster_leaves_no_series() {
    let metrics = Metrics::default();
    touch_all(&metrics);
    let now = Instant::now();
    metrics.retire_clusters(now, |_| false);
    assert!(exposition(&metrics).contains("cluster=\"a\""));
    metrics.retire_clusters(now + Duration::from_secs(3600), |_| false);
    assert!(!exposition(&metrics).contains("cluster=\"a\""));
}
