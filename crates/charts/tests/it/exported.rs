//! The source lists what processes export: names, types, labels and help texts, both ways.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use bigfleet_charts::source::{Component, Source, Type};
use bigfleet_coordinator::{
    metrics::Metrics as CoordinatorMetrics,
    rebalance::{Move, Skip},
    state::{State, TransferKind},
};
use bigfleet_dashboard::metrics::Metrics as DashboardMetrics;
use bigfleet_net::{
    readiness::Readiness,
    tls::{Security, Tls},
};
use bigfleet_operator::Metrics as OperatorMetrics;
use bigfleet_provider_kit::{
    Caps, Cloud, CloudError, Config, Host, Kit, Machine, MemStore, Offer, Op, Ready,
};
use bigfleet_shard::metrics::{Metrics as ShardMetrics, Phase, PriorityClass};
use bigfleet_testkit::pki::Pki;
use bigfleet_unschedulable_pod_controller::metrics::Metrics as PodControllerMetrics;
use prometheus_client::{encoding::text, registry::Registry};

/// What a registry says of one metric.
#[derive(Debug, Default)]
struct Exported {
    help: String,
    /// None while it has no series yet.
    r#type: Option<String>,
    labels: BTreeSet<String>,
    bounds: Vec<f64>,
}

/// Reads a registry: its descriptors, which are there before the first series, and its text.
fn exported(registry: &Registry) -> BTreeMap<String, Exported> {
    let mut found: BTreeMap<String, Exported> = BTreeMap::new();
    let debug = format!("{registry:?}");
    let mut prefix = String::new();
    for part in debug.split("Registry { prefix: ").skip(1) {
        // Sub-registries carry their whole prefix.
        prefix.clear();
        if let Some(rest) = part.strip_prefix("Some(Prefix(\"") {
            prefix = format!("{}_", rest.split('"').next().unwrap());
        }
        for descriptor in part.split("Descriptor { name: \"").skip(1) {
            let (name, rest) = descriptor.split_once("\", help: \"").unwrap();
            let (help, rest) = rest.split_once("\", unit: ").unwrap();
            let unit = match rest.split([' ', ',']).next().unwrap() {
                "Some(Seconds)" => "_seconds",
                "Some(Bytes)" => "_bytes",
                _ => "",
            };
            let help = help.trim_end_matches('.').to_owned();
            found.insert(format!("{prefix}{name}{unit}"), Exported { help, ..Exported::default() });
        }
    }
    let mut page = String::new();
    text::encode(&mut page, registry).unwrap();
    let mut current = String::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            found.entry(name.to_owned()).or_default().help = help.trim_end_matches('.').to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            found.entry(name.to_owned()).or_default().r#type = Some(kind.to_owned());
            name.clone_into(&mut current);
        } else if let Some((_, rest)) = line.split_once('{') {
            let metric = found.get_mut(&current).unwrap();
            for (label, value) in rest.split("\",").filter_map(|pair| pair.split_once("=\"")) {
                if label == "le" {
                    let bound = value.split('"').next().unwrap();
                    metric.bounds.extend(bound.parse::<f64>().ok());
                } else {
                    metric.labels.insert(label.to_owned());
                }
            }
        }
    }
    found
}

/// With a series of each family that the service does not begin at zero, where that is cheap.
fn shard() -> Registry {
    let metrics = ShardMetrics::default();
    let second = Duration::from_secs(1);
    metrics.phase(Phase::Reconcile, second);
    metrics.need_waited(PriorityClass::Critical, second);
    let cluster = "a".into();
    metrics.rollup_quarantined(&cluster, 1);
    metrics.rollup_rejected(&cluster);
    metrics.rollup_age(&cluster, second);
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    registry
}

fn coordinator() -> Registry {
    let metrics = CoordinatorMetrics::default();
    metrics.apply_failed();
    metrics.reported("OK", Duration::from_secs(1));
    metrics.identity_rejected("ReportShard").inc();
    metrics.publish_state(&State::default());
    metrics.moved(TransferKind::Idle, Move::Begun);
    metrics.skipped(Skip::NoDonor, 1);
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    registry
}

fn operator() -> Registry {
    let mut registry = Registry::default();
    OperatorMetrics::default().register(&mut registry);
    registry
}

fn pod_controller() -> Registry {
    let mut registry = Registry::default();
    PodControllerMetrics::default().register(&mut registry);
    registry
}

fn dashboard() -> Registry {
    let mut registry = Registry::default();
    DashboardMetrics::default().register(&mut registry);
    registry
}

/// Has nothing and can do nothing.
struct Nowhere;

impl Cloud for Nowhere {
    fn caps(&self) -> Caps {
        Caps { destroy: true, fixed: false, resumable: false, observes_ready: true }
    }
    async fn describe(&self) -> Result<Vec<Offer>, CloudError> {
        Ok(Vec::new())
    }
    async fn create(&self, _: &Op, _: &Machine) -> Result<Host, CloudError> {
        Err(CloudError::Fatal("nowhere".to_owned()))
    }
    async fn bootstrap(&self, _: &Op, _: &Machine, _: &str, _: &[u8]) -> Result<(), CloudError> {
        Ok(())
    }
    async fn ready(&self, _: &Op, _: &Machine, _: &str) -> Result<Ready, CloudError> {
        Ok(Ready::Yes)
    }
    async fn drain(&self, _: &Op, _: &Machine, _: Duration) -> Result<(), CloudError> {
        Ok(())
    }
    async fn destroy(&self, _: &Op, _: &Machine) -> Result<(), CloudError> {
        Ok(())
    }
}

/// The kit keeps its metrics to itself: a kit that runs shows them.
async fn provider() -> Registry {
    let readiness = Readiness::new("starting");
    let kit = Kit::start(Nowhere, Arc::new(MemStore::new()), Config::default(), readiness);
    let kit = kit.await.unwrap();
    let mut registry = Registry::default();
    kit.register_metrics(&mut registry);
    // `machines` is counted when somebody asks, which nobody can once the kit has gone.
    let mut page = String::new();
    text::encode(&mut page, &registry).unwrap();
    assert!(page.contains("# TYPE bigfleet_provider_machines gauge"), "{page}");
    kit.stop().await;
    registry
}

fn every_process() -> Registry {
    let material = Pki::new().unwrap().material(&["bigfleet://admin"]).unwrap();
    let tls = Tls::load(&material.cert(), &material.key(), &material.ca()).unwrap();
    let mut registry = Registry::default();
    bigfleet_net::metrics::register(&mut registry, &Security::Mtls(Arc::new(tls)));
    registry
}

fn compare(component: &Component, registry: &Registry) -> Vec<String> {
    let mut found = exported(registry);
    let mut faults = Vec::new();
    for metric in &component.metrics {
        let name = format!("{}{}", component.prefix, metric.name);
        let base = match metric.r#type {
            Type::Counter => name.strip_suffix("_total").unwrap_or(&name),
            Type::Info => name.strip_suffix("_info").unwrap_or(&name),
            _ => &name,
        };
        let Some(real) = found.remove(base) else {
            faults.push(format!("{name} is not exported"));
            continue;
        };
        if real.help != metric.help {
            faults.push(format!("{name}: its help is {:?}", real.help));
        }
        if let Some(kind) = real.r#type
            && kind != metric.r#type.name()
        {
            faults.push(format!("{name} is a {kind}"));
        }
        let labels: BTreeSet<String> = metric.labels.iter().cloned().collect();
        if !real.labels.is_empty() && real.labels != labels {
            faults.push(format!("{name} has the labels {:?}", real.labels));
        }
    }
    faults.extend(found.into_keys().map(|name| format!("{name} is exported and not listed")));
    faults
}

fn component<'a>(source: &'a Source, name: &str) -> &'a Component {
    source.components.iter().find(|component| component.name == name).unwrap()
}

#[tokio::test]
async fn what_is_listed_is_exported_and_what_is_exported_is_listed() {
    let source = Source::load().unwrap();
    let mut faults = Vec::new();
    for (name, registry) in [
        ("every process", every_process()),
        ("shard", shard()),
        ("coordinator", coordinator()),
        ("operator", operator()),
        ("pod controller", pod_controller()),
        ("web dashboard", dashboard()),
    ] {
        faults.extend(compare(component(&source, name), &registry));
    }
    // Its machines were seen while it ran.
    let mut provider_component = component(&source, "provider").clone();
    provider_component.metrics.retain(|metric| metric.name != "machines");
    faults.extend(compare(&provider_component, &provider().await));
    assert_eq!(faults, [""; 0]);
}

/// The chapter that owns these names has each of them.
#[test]
fn processes_inside_a_cluster_are_listed_as_specified() {
    let source = Source::load().unwrap();
    let chapter = include_str!("../../../../docs/spec/kubernetes.md");
    let section = chapter.split("\n## 10. ").nth(1).unwrap().split("\n## 11. ").next().unwrap();
    let (of_operator, of_pods) = section.split_once("\nUPC:").unwrap();
    for (name, text) in [("operator", of_operator), ("pod controller", of_pods)] {
        // Names as they stand between backquotes, without labels and the ellipsis of a prefix.
        let named: BTreeSet<&str> = text
            .split('`')
            .skip(1)
            .step_by(2)
            .map(|quoted| quoted.split('{').next().unwrap())
            .map(|quoted| quoted.trim_start_matches("bigfleet_unschedulable_pod_controller_"))
            .map(|quoted| quoted.trim_start_matches("…_"))
            .collect();
        for metric in &component(&source, name).metrics {
            assert!(named.contains(&*metric.name), "{name}: {} is not in the chapter", metric.name);
        }
    }
}

/// A p99 read in a wider bucket would be a guess.
#[test]
fn no_bucket_beside_an_objective_is_wider_than_a_fifth_of_it() {
    let source = Source::load().unwrap();
    let mut coarse = Vec::new();
    for (name, registry) in
        [("shard", shard()), ("coordinator", coordinator()), ("operator", operator())]
    {
        let found = exported(&registry);
        let component = component(&source, name);
        for metric in &component.metrics {
            let name = format!("{}{}", component.prefix, metric.name);
            for objective in &metric.objectives {
                let bounds = &found[&name].bounds;
                let fine = bounds.windows(3).any(|three| {
                    let width = objective / 5.0 + 1e-9;
                    three[1] == *objective
                        && three[1] - three[0] <= width
                        && three[2] - three[1] <= width
                });
                if !fine {
                    coarse.push((name.clone(), *objective));
                }
            }
        }
    }
    assert_eq!(coarse, []);
}
