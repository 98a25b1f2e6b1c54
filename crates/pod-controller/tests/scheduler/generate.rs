//! Random pods that the API server takes.

use bigfleet_model::Quantity;
use bigfleet_scripted::random::Random;
use bigfleet_unschedulable_pod_controller::request::effective;
use serde_json::{Map, Value, json};

/// Overheads come by way of a RuntimeClass; the API server takes them from nobody else.
const OVERHEADS: [(&str, &str, &str); 3] =
    [("thin", "10m", "1Mi"), ("thick", "250m", "120Mi"), ("odd", "333m", "1234567")];

pub(crate) fn runtime_classes() -> Vec<Value> {
    let class = |(name, cpu, memory): (&str, &str, &str)| {
        json!({
            "metadata": {"name": name},
            "handler": "none",
            "overhead": {"podFixed": {"cpu": cpu, "memory": memory}},
        })
    };
    OVERHEADS.into_iter().map(class).collect()
}

fn one<'a, T>(random: &mut Random, of: &'a [T]) -> &'a T {
    &of[random.below(of.len() as u64) as usize]
}

/// A resource and an amount of it, in one of the ways to write it.
fn amount(random: &mut Random, name: &str) -> String {
    match name {
        "cpu" => {
            let millis = 1 + random.below(4_000);
            match random.below(3) {
                0 => format!("{millis}m"),
                1 => format!("{}.{}", millis / 1_000, 1 + random.below(9)),
                _ => format!("{}", 1 + millis / 1_000),
            }
        }
        "memory" | "ephemeral-storage" => {
            let size = 1 + random.below(4_000);
            let suffix = *one(random, &["", "k", "Ki", "M", "Mi"]);
            format!("{size}{suffix}")
        }
        "hugepages-2Mi" => format!("{}Mi", 2 * (1 + random.below(8))),
        _ => format!("{}", 1 + random.below(8)),
    }
}

fn resources(random: &mut Random, hugepages: bool) -> Value {
    let (mut requests, mut limits) = (Map::new(), Map::new());
    for name in ["cpu", "memory", "ephemeral-storage"] {
        let text: Value = amount(random, name).into();
        match random.below(6) {
            0 | 1 => {}
            // The API server makes a request of it.
            2 => drop(limits.insert(name.to_owned(), text)),
            _ => drop(requests.insert(name.to_owned(), text)),
        }
    }
    let mut whole = vec![];
    if random.per_mille(250) {
        whole.push(*one(random, &["nvidia.com/gpu", "vendor.io/nic"]));
    }
    if hugepages {
        whole.push("hugepages-2Mi");
        requests.insert("cpu".to_owned(), amount(random, "cpu").into());
        limits.remove("cpu");
    }
    for name in whole {
        let text: Value = amount(random, name).into();
        requests.insert(name.to_owned(), text.clone());
        limits.insert(name.to_owned(), text);
    }
    json!({"requests": requests, "limits": limits})
}

/// The spec of a pod that requests something.
pub(crate) fn spec(random: &mut Random) -> Value {
    let hugepages = random.per_mille(150);
    let container = |random: &mut Random, name: String| json!({"name": name, "image": "none", "resources": resources(random, hugepages)});
    let containers: Vec<Value> =
        (0..=random.below(3)).map(|at| container(random, format!("c{at}"))).collect();
    let init: Vec<Value> = (0..random.below(4))
        .map(|at| {
            let mut init = container(random, format!("i{at}"));
            if random.per_mille(500) {
                init["restartPolicy"] = "Always".into();
            }
            init
        })
        .collect();
    let mut spec = json!({"containers": containers, "initContainers": init});
    // Something must be asked for, or nothing can be too small.
    if texts(&spec).is_empty() {
        spec["containers"][0]["resources"]["requests"] = json!({"cpu": "100m"});
    }
    if random.per_mille(300) {
        spec["runtimeClassName"] = one(random, &OVERHEADS).0.into();
    }
    if random.per_mille(300) && !hugepages {
        at_pod_level(&mut spec, random);
    }
    spec
}

/// No less than the containers ask for together, as the API server demands.
fn at_pod_level(spec: &mut Value, random: &mut Random) {
    let mut requests = Map::new();
    let sum = defaulted(spec);
    for name in ["cpu", "memory"] {
        if random.per_mille(700) {
            let more: Quantity = amount(random, name).parse().unwrap();
            let sum = texts(&sum).into_iter().find(|(known, _)| known == name);
            let sum = sum.map_or(Quantity::ZERO, |(_, sum)| sum.parse().unwrap());
            let unit = if name == "cpu" { 1_000_000 } else { 1_000_000_000 };
            let nanos = (sum.nanos() + more.nanos()) / unit * unit;
            let total = Quantity::from_nanos(nanos, more.family());
            requests.insert(name.to_owned(), total.to_string().into());
        }
    }
    if !requests.is_empty() {
        spec["resources"] = json!({"requests": requests});
    }
}

/// With requests made of limits, as the API server does it.
fn defaulted(spec: &Value) -> Value {
    let mut spec = spec.clone();
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array_mut().unwrap() {
            let limits = container["resources"]["limits"].as_object().unwrap().clone();
            let requests = container["resources"]["requests"].as_object_mut().unwrap();
            for (name, limit) in limits {
                requests.entry(name).or_insert(limit);
            }
        }
    }
    spec
}

fn texts(spec: &Value) -> Vec<(String, String)> {
    let pod = serde_json::from_value(json!({"spec": defaulted(spec)})).unwrap();
    let texts = effective(&pod).texts();
    texts.into_iter().map(|(name, text)| (name, text.to_string())).collect()
}

/// Sometimes what a node says in the middle of a resize.
pub(crate) fn status(spec: &Value, random: &mut Random) -> Option<Value> {
    if !random.per_mille(300) {
        return None;
    }
    let mut statuses = [Vec::new(), Vec::new()];
    for (at, list) in ["containers", "initContainers"].into_iter().enumerate() {
        for container in spec[list].as_array().unwrap() {
            let mut status = json!({
                "name": container["name"],
                "image": "none", "imageID": "", "ready": false, "restartCount": 0,
            });
            let some = |random: &mut Random| json!({"cpu": amount(random, "cpu"), "memory": amount(random, "memory")});
            if random.per_mille(600) {
                status["resources"] = json!({"requests": some(random)});
            }
            if random.per_mille(600) {
                status["allocatedResources"] = some(random);
            }
            statuses[at].push(status);
        }
    }
    let [containers, init] = statuses;
    let mut status = json!({"containerStatuses": containers, "initContainerStatuses": init});
    if random.per_mille(300) {
        let reason = *one(random, &["Infeasible", "Deferred"]);
        status["conditions"] =
            json!([{"type": "PodResizePending", "status": "True", "reason": reason}]);
    }
    Some(status)
}
