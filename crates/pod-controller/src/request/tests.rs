use serde_json::{Value, json};

use super::*;

fn pod(value: Value) -> Pod {
    serde_json::from_value(value).unwrap()
}

fn texts(value: Value) -> Vec<(String, String)> {
    let texts = effective(&pod(value)).texts();
    texts.into_iter().map(|(name, text)| (name, text.to_string())).collect()
}

fn cpu(init: &[(&str, bool)], overhead: &str) -> String {
    let init: Vec<Value> = init
        .iter()
        .enumerate()
        .map(|(at, (cpu, sidecar))| {
            let mut container =
                json!({"name": format!("i{at}"), "resources": {"requests": {"cpu": cpu}}});
            if *sidecar {
                container["restartPolicy"] = "Always".into();
            }
            container
        })
        .collect();
    let spec = json!({"spec": {
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
        "initContainers": init,
        "overhead": {"cpu": overhead},
    }});
    texts(spec)[0].1.clone()
}

#[test]
fn the_place_of_a_sidecar_matters() {
    assert_eq!(cpu(&[("1", true), ("4", false)], "250m"), "5250m");
    assert_eq!(cpu(&[("4", false), ("1", true)], "250m"), "4250m");
    assert_eq!(cpu(&[], "0"), "1");
}

#[test]
fn a_pod_that_requests_nothing_has_no_resources() {
    assert_eq!(texts(json!({"spec": {"containers": [{"name": "main"}]}})), []);
    let zero = json!({"spec": {"containers": [
        {"name": "main", "resources": {"requests": {"cpu": "0"}, "limits": {"memory": "1Gi"}}},
    ]}});
    assert_eq!(texts(zero), []);
    assert_eq!(texts(json!({})), []);
}

#[test]
fn suffixes_are_binary_if_all_were() {
    let spec = |second: &str| {
        json!({"spec": {"containers": [
            {"name": "a", "resources": {"requests": {"memory": "512Mi"}}},
            {"name": "b", "resources": {"requests": {"memory": second}}},
        ]}})
    };
    assert_eq!(texts(spec("512Mi"))[0].1, "1Gi");
    assert_eq!(texts(spec("0"))[0].1, "512Mi");
    assert_eq!(texts(spec("1000"))[0].1, "536871912");
}

#[test]
fn what_does_not_fit_is_passed_on_as_text() {
    let spec = json!({"spec": {"containers": [
        {"name": "a", "resources": {"requests": {"cpu": "1e40", "memory": "1Gi"}}},
        {"name": "b", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
    ]}});
    let expected = [("cpu", "1e40"), ("memory", "2Gi")].map(|(n, t)| (n.to_owned(), t.to_owned()));
    assert_eq!(texts(spec), expected);
}

#[test]
fn pods_can_be_counted_as_a_resource() {
    let mut amounts = Amounts::default();
    amounts.count("pods");
    assert_eq!(amounts.texts()["pods"].as_str(), "1");
}
