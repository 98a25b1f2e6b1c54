//! Rights are those of the kubernetes chapter §9, and no other.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::helm::{helm, objects, values};

const OPERATOR: &[&str] = &[
    "* bigfleet.lucy.sh/capacityrequests get list watch",
    "* bigfleet.lucy.sh/capacityrequests/status patch",
    "* bigfleet.lucy.sh/upcomingnodes get list watch create patch delete",
    "* bigfleet.lucy.sh/availablecapacities get list watch create patch delete",
    "* bigfleet.lucy.sh/upcomingnodes/status patch",
    "* /nodes get list watch patch",
    "* /pods get list watch",
    "* /pods/eviction create",
    "* /events create patch",
    "* apiextensions.k8s.io/customresourcedefinitions:capacityrequests.bigfleet.lucy.sh get",
    "bigfleet-system coordination.k8s.io/leases get create update patch",
];

const POD_CONTROLLER: &[&str] = &[
    "* /pods get list watch",
    "* bigfleet.lucy.sh/capacityrequests get list watch create patch delete deletecollection",
    "* bigfleet.lucy.sh/capacityrequests/status patch",
    "* /nodes get list watch",
    "* /persistentvolumes get list watch",
    "* /persistentvolumeclaims get list watch",
    "* scheduling.k8s.io/podgroups get list watch",
    "* /events create patch",
    "bigfleet-system coordination.k8s.io/leases get create update patch",
];

/// One line for each right: where, what, verb.
fn expected<'a>(lines: impl IntoIterator<Item = &'a &'a str>) -> BTreeSet<String> {
    lines
        .into_iter()
        .flat_map(|line| {
            let mut words = line.split(' ');
            let (place, what) = (words.next().unwrap(), words.next().unwrap());
            words.map(move |verb| format!("{place} {what} {verb}"))
        })
        .collect()
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().map(|all| all.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}

/// Rights that a chart's account has by the roles bound to it.
fn granted(chart: &str, values: &Value) -> BTreeSet<String> {
    let objects = objects(chart, values);
    let mut rights = BTreeSet::new();
    for binding in &objects {
        let wide = binding["kind"] == "ClusterRoleBinding";
        if !wide && binding["kind"] != "RoleBinding" {
            continue;
        }
        assert_eq!(
            binding["subjects"],
            json!([{"kind": "ServiceAccount", "name": chart, "namespace": "bigfleet-system"}])
        );
        let place = if wide { "*" } else { binding["metadata"]["namespace"].as_str().unwrap() };
        let role = objects
            .iter()
            .find(|one| {
                one["kind"] == binding["roleRef"]["kind"]
                    && one["metadata"]["name"] == binding["roleRef"]["name"]
                    && one["metadata"]["namespace"] == binding["metadata"]["namespace"]
            })
            .unwrap();
        for rule in role["rules"].as_array().unwrap() {
            let names = strings(&rule["resourceNames"]);
            let names = if names.is_empty() { vec![""] } else { names };
            for group in strings(&rule["apiGroups"]) {
                for resource in strings(&rule["resources"]) {
                    for name in &names {
                        let colon = if name.is_empty() { "" } else { ":" };
                        for verb in strings(&rule["verbs"]) {
                            rights
                                .insert(format!("{place} {group}/{resource}{colon}{name} {verb}"));
                        }
                    }
                }
            }
        }
    }
    rights
}

#[test]
fn the_operator_has_the_rights_of_the_chapter_and_no_other() {
    if helm().is_none() {
        return;
    }
    let chart = "bigfleet-operator";
    let mut values = values(chart);
    let with_delete = expected(OPERATOR.iter().chain(&["* /nodes delete"]));
    assert_eq!(granted(chart, &values), with_delete);
    values["nodeCleanup"] = json!(false);
    assert_eq!(granted(chart, &values), expected(OPERATOR));
    values["bootstrapTokens"] = json!({"pool": 3, "apiServer": "https://api.example"});
    let with_tokens = expected(OPERATOR.iter().chain(&["kube-system /secrets create delete"]));
    assert_eq!(granted(chart, &values), with_tokens);
    values["rbac"] = json!({"create": false});
    assert_eq!(granted(chart, &values), BTreeSet::new());
}

#[test]
fn the_pod_controller_has_the_rights_of_the_chapter_and_no_other() {
    if helm().is_none() {
        return;
    }
    let chart = "bigfleet-unschedulable-pod-controller";
    assert_eq!(granted(chart, &values(chart)), expected(POD_CONTROLLER));
}

#[test]
fn the_control_plane_has_none_and_no_token() {
    if helm().is_none() {
        return;
    }
    for set in ["bigfleet", "bigfleet-full"] {
        for object in objects("bigfleet", &values(set)) {
            let kind = object["kind"].as_str().unwrap();
            assert!(!kind.contains("Role"), "{kind}");
            let pod = &object["spec"]["template"]["spec"];
            if pod.is_object() {
                assert_eq!(pod["automountServiceAccountToken"], json!(false), "{kind}");
            }
        }
    }
}
