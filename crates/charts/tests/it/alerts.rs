//! Every alert fires on series that it is for, and not on others.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_charts::{
    promql::{Labels, Store, Value, evaluate, parse},
    source::{Alert, Source},
};
use serde::Deserialize;

/// Planted series for one rule.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    alert: String,
    #[serde(default = "bigfleet")]
    chart: String,
    /// Where one alert has two.
    level: Option<String>,
    /// Seconds between two samples.
    #[serde(default = "minute")]
    step: i64,
    /// Series on which it fires at the end, each set by itself.
    fires: Vec<BTreeMap<String, String>>,
    /// Series on which it does not.
    quiet: Vec<BTreeMap<String, String>>,
}

fn bigfleet() -> String {
    "bigfleet".to_owned()
}

fn minute() -> i64 {
    60
}

fn cases() -> Vec<Case> {
    serde_saphyr::from_str(include_str!("../alerts.yaml")).unwrap()
}

/// Whether the rule would have fired at the end of the series: the same labels, for so long.
fn fires(source: &Source, rule: &Alert, case: &Case, series: &BTreeMap<String, String>) -> bool {
    let expr = parse(&source.sampled(&rule.expr).unwrap()).unwrap();
    let mut store = Store { step: case.step, ..Store::default() };
    // Rules that are repeated for each class have one case.
    let class = rule.labels.get("priority_class").map_or("", String::as_str);
    let late = match class {
        "critical" => "60",
        "service" => "300.0",
        _ => "1800",
    };
    for (name, values) in series {
        store.plant(&name.replace("@class", class).replace("@late", late), values).unwrap();
    }
    let minutes = rule.r#for.as_deref().map_or(0, seconds) / 60;
    let mut firing: Option<BTreeSet<Labels>> = None;
    for minute in (0..=minutes).rev() {
        let Value::Vector(found) = evaluate(&expr, &store, store.end() - minute * 60).unwrap()
        else {
            panic!("{} is a number", rule.alert);
        };
        let found: BTreeSet<Labels> = found.into_iter().map(|one| one.0).collect();
        firing = Some(match firing {
            Some(before) => before.intersection(&found).cloned().collect(),
            None => found,
        });
    }
    firing.is_some_and(|labels| !labels.is_empty())
}

fn seconds(duration: &str) -> i64 {
    let (number, unit) = duration.split_at(duration.len() - 1);
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => panic!("{duration}"),
    };
    number.parse::<i64>().unwrap() * unit
}

#[test]
fn every_alert_fires_when_it_should_and_only_then() {
    let source = Source::load().unwrap();
    let cases = cases();
    let mut used = BTreeSet::new();
    for group in &source.alerts {
        for rule in &group.rules {
            let case = cases.iter().enumerate().find(|(_, case)| {
                case.alert == rule.alert
                    && case.chart == group.chart
                    && case.level.as_deref().is_none_or(|level| level == rule.level.name())
            });
            let (at, case) = case.unwrap_or_else(|| panic!("no case for {}", rule.alert));
            used.insert(at);
            assert!(!case.fires.is_empty() && !case.quiet.is_empty(), "{}", rule.alert);
            for series in &case.fires {
                assert!(
                    fires(&source, rule, case, series),
                    "{} keeps quiet: {series:?}",
                    rule.alert
                );
            }
            for series in &case.quiet {
                assert!(!fires(&source, rule, case, series), "{} fires: {series:?}", rule.alert);
            }
        }
    }
    assert_eq!(used.len(), cases.len(), "cases without an alert");
}

#[test]
fn recorded_series_are_recorded() {
    let source = Source::load().unwrap();
    let mut store = Store { step: 60, ..Store::default() };
    for (le, values) in [("0.008", "0+1x20"), ("0.016", "0+100x20"), ("+Inf", "0+100x20")] {
        let series = format!(
            "bigfleet_shard_cycle_phase_duration_seconds_bucket{{pod=\"a\",phase=\"phase1\",le=\"{le}\"}}"
        );
        store.plant(&series, values).unwrap();
    }
    let [record] = &source.records[..] else { panic!("another record needs its own lines here") };
    let found = evaluate(&parse(&record.expr).unwrap(), &store, store.end()).unwrap();
    let Value::Vector(found) = found else { panic!("{found:?}") };
    let [(labels, p99)] = &found[..] else { panic!("{found:?}") };
    assert_eq!(labels.keys().collect::<BTreeSet<_>>(), record.labels.iter().collect());
    assert!((0.0158..0.016).contains(p99), "{p99}");
}
