//! What charts render to.

use bigfleet_charts::charts::CHARTS;
use serde_json::{Value, json};

use crate::helm::{KUBE, args, find, helm, objects, parsed, print, values};

/// A chart's objects in few lines: long texts that other tests hold are only named.
fn short(objects: Vec<Value>) -> String {
    let mut text = String::new();
    for mut object in objects {
        if object["kind"] == "CustomResourceDefinition" {
            object["spec"] = json!("as in api/crd");
        }
        if object["kind"] == "PrometheusRule" {
            object["spec"] = json!("as in api/metrics");
        }
        if let Some(data) = object["data"].as_object_mut() {
            for (file, content) in data {
                if file.ends_with(".json") {
                    *content = json!("as in dashboards");
                }
            }
        }
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(&object).unwrap());
    }
    text
}

#[test]
fn charts_render_as_recorded() {
    if helm().is_none() {
        return;
    }
    for chart in CHARTS {
        for set in [chart.to_owned(), format!("{chart}-full")] {
            insta::assert_snapshot!(set.clone(), short(objects(chart, &values(&set))));
        }
    }
}

#[test]
fn the_oldest_and_the_newest_kubernetes_get_the_same() {
    if helm().is_none() {
        return;
    }
    for chart in CHARTS {
        let values = values(&format!("{chart}-full"));
        let [old, new] = KUBE.map(|kube| print(chart, kube, &values).unwrap());
        assert_eq!(old, new);
        // Nothing random, nothing of the time.
        assert_eq!(print(chart, KUBE[1], &values).unwrap(), new);
        let error = print(chart, "1.30.9", &values).unwrap_err();
        assert!(error.contains(">= 1.31.0-0"), "{error}");
    }
}

/// GitOps: no hooks; and what templates could ask a cluster or a dice for.
#[test]
fn output_depends_on_values_alone() {
    let forbidden = [
        "lookup ",
        "randAlpha",
        "randNumeric",
        "genCA",
        "genSigned",
        "genPrivateKey",
        "uuidv4",
        "now ",
        "helm.sh/hook",
    ];
    for chart in CHARTS {
        let folder = bigfleet_charts::root().join("charts").join(chart).join("templates");
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            for word in forbidden {
                let found = text.split("{{").skip(1).any(|part| {
                    part.split("}}").next().is_some_and(|action| action.contains(word))
                });
                assert!(!found && !text.contains("helm.sh/hook"), "{}: {word}", path.display());
            }
        }
    }
}

#[test]
fn the_namespace_is_the_releases_or_the_given_one() {
    if helm().is_none() {
        return;
    }
    let cluster_wide = ["ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"];
    for chart in CHARTS {
        for (set, expected) in
            [(chart.to_owned(), "bigfleet-system"), (format!("{chart}-full"), "elsewhere")]
        {
            for object in objects(chart, &values(&set)) {
                let namespace = object["metadata"]["namespace"].as_str();
                let kind = object["kind"].as_str().unwrap();
                if cluster_wide.contains(&kind) {
                    assert_eq!(namespace, None, "{kind}");
                } else if namespace != Some("kube-system") {
                    assert_eq!(namespace, Some(expected), "{set}: {kind}");
                }
            }
        }
    }
}

/// Join scripts are full of braces that are not Helm's.
#[test]
fn a_bootstrap_template_arrives_byte_for_byte() {
    if helm().is_none() {
        return;
    }
    let values = values("bigfleet-operator-full");
    let objects = objects("bigfleet-operator", &values);
    let map = find(&objects, "ConfigMap", "bigfleet-operator-bootstrap-template");
    assert_eq!(map["data"]["bootstrap.tmpl"], values["bootstrapTemplate"]);
    let deployment = find(&objects, "Deployment", "bigfleet-operator");
    assert!(
        args(deployment)
            .contains(&"--bootstrap-template-file=/etc/bigfleet/bootstrap.tmpl".to_owned())
    );
    // Template and certificates in one volume, without a subPath.
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"].as_array().unwrap().len(), 1);
    assert_eq!(
        pod["containers"][0]["volumeMounts"],
        json!([{"name": "config", "mountPath": "/etc/bigfleet", "readOnly": true}])
    );
}

#[test]
fn a_changed_template_or_default_restarts_pods() {
    if helm().is_none() {
        return;
    }
    for (chart, key, other) in [
        ("bigfleet-operator", "bootstrapTemplate", json!("other")),
        (
            "bigfleet-unschedulable-pod-controller",
            "priorityClassDefaults",
            json!({"a": {"interruptionPenalty": 1}}),
        ),
    ] {
        let checksum = |values: &Value| {
            let objects = objects(chart, values);
            find(&objects, "Deployment", chart)["spec"]["template"]["metadata"]["annotations"]
                ["checksum/config"]
                .clone()
        };
        let mut values = values(&format!("{chart}-full"));
        let before = checksum(&values);
        assert_eq!(checksum(&values), before);
        values[key] = other;
        assert_ne!(checksum(&values), before, "{chart}");
    }
}

#[test]
fn each_shard_finds_its_own_certificate() {
    if helm().is_none() {
        return;
    }
    let objects = objects("bigfleet", &values("bigfleet-full"));
    let shard = find(&objects, "StatefulSet", "bigfleet-shard");
    let sources = shard["spec"]["template"]["spec"]["volumes"][0]["projected"]["sources"].clone();
    let first = |at: usize| {
        let secret = &sources[at]["secret"];
        (secret["name"].as_str().unwrap(), secret["items"][0]["path"].as_str().unwrap())
    };
    assert_eq!(first(0), ("bigfleet-shard-0-tls", "bigfleet-shard-0/tls.crt"));
    assert_eq!(first(1), ("bigfleet-shard-1-tls", "bigfleet-shard-1/tls.crt"));
    assert_eq!(sources.as_array().unwrap().len(), 2);
    let cert = "--tls-cert=/etc/bigfleet/tls/bigfleet-shard-0/tls.crt".to_owned();
    assert!(args(shard).contains(&cert), "{:?}", args(shard));
}

/// A kubelet's gRPC probe has no certificate.
#[test]
fn coordinators_are_probed_by_grpc_and_under_tls_by_http() {
    if helm().is_none() {
        return;
    }
    let readiness = |set: &str| {
        let objects = objects("bigfleet", &values(set));
        let set = find(&objects, "StatefulSet", "bigfleet-coordinator");
        set["spec"]["template"]["spec"]["containers"][0]["readinessProbe"].clone()
    };
    let plain = readiness("bigfleet");
    assert_eq!(plain["grpc"], json!({"port": 7790, "service": "bigfleet.v1alpha1.Coordinator"}));
    let tls = readiness("bigfleet-full");
    assert_eq!(tls["httpGet"], json!({"path": "/readyz", "port": "metrics"}));
}

#[test]
fn budgets_follow_the_number_of_replicas() {
    if helm().is_none() {
        return;
    }
    for (replicas, majority) in [(3, 2), (5, 3)] {
        let mut values = values("bigfleet");
        values["coordinator"] = json!({"replicas": replicas});
        let objects = objects("bigfleet", &values);
        let budget = find(&objects, "PodDisruptionBudget", "bigfleet-coordinator");
        assert_eq!(budget["spec"]["minAvailable"], majority);
        let budget = find(&objects, "PodDisruptionBudget", "bigfleet-shard");
        assert_eq!(budget["spec"]["maxUnavailable"], 1);
    }
    let mut values = values("bigfleet");
    values["coordinator"] = json!({"replicas": 1});
    let single = objects("bigfleet", &values);
    let budgets = single.iter().filter(|one| one["kind"] == "PodDisruptionBudget").count();
    assert_eq!(budgets, 1, "a single coordinator has none");
    let coordinator = find(&single, "StatefulSet", "bigfleet-coordinator");
    assert!(!args(coordinator).iter().any(|arg| arg.starts_with("--join-addr")));
}

#[test]
fn what_the_notes_name_exists() {
    if helm().is_none() {
        return;
    }
    for chart in CHARTS {
        let path = bigfleet_charts::root().join("charts").join(chart).join("templates/NOTES.txt");
        let notes = std::fs::read_to_string(path).unwrap();
        let objects = objects(chart, &values(chart));
        for word in notes.split_whitespace() {
            let Some((kind, name)) = word.split_once('/') else { continue };
            let kind = match kind {
                "deployment" => "Deployment",
                "statefulset" => "StatefulSet",
                "service" => "Service",
                _ => continue,
            };
            find(&objects, kind, name);
        }
    }
}

#[test]
fn rules_render_with_their_parameters() {
    if helm().is_none() {
        return;
    }
    let text = print("bigfleet", KUBE[1], &values("bigfleet-full")).unwrap();
    let objects = parsed(&text);
    let rules = find(&objects, "PrometheusRule", "bigfleet");
    let rule = |alert: &str| {
        let groups = rules["spec"]["groups"].as_array().unwrap();
        let mut rules = groups.iter().flat_map(|group| group["rules"].as_array().unwrap());
        rules.find(|rule| rule["alert"] == alert).cloned().unwrap_or_default()
    };
    let expr = |alert: &str| rule(alert)["expr"].as_str().unwrap_or_default().to_owned();
    assert!(expr("ShardDown").ends_with("namespace=\"elsewhere\"} == 1) or vector(0)) < 2"));
    assert!(expr("CoordinatorQuorumLost").ends_with("< 3"));
    assert!(expr("ConfigureSlow").ends_with("> 120"));
    assert!(expr("ExportStale").contains("> 1800 or"), "{}", expr("ExportStale"));
    assert!(expr("NeedWaitBudgetBurning").contains("le=~\"30([.]0)?\""));
    assert!(expr("NeedWaitBudgetBurning").contains("14.4 * (1 - 0.999)"));
    let plain = rule("Plaintext");
    assert_eq!(plain["annotations"]["runbook_url"], "https://runbooks.example/plaintext");
    assert_eq!(plain["annotations"]["summary"], "{{ $labels.pod }} speaks plaintext");
}

/// Blocks of the guide that begin with the name of a file of values.
#[test]
fn values_of_the_operator_guide_render() {
    if helm().is_none() {
        return;
    }
    let guide = bigfleet_charts::root().join("docs/operator-guide.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let mut rendered = 0;
    for (file, chart) in
        [("values-bigfleet.yaml", "bigfleet"), ("values-operator.yaml", "bigfleet-operator")]
    {
        let start = format!("```yaml\n# {file}\n");
        for block in guide.split(&start).skip(1) {
            let text = block.split("```").next().unwrap();
            objects(chart, &serde_saphyr::from_str(text).unwrap());
            rendered += 1;
        }
    }
    assert_eq!(rendered, 2);
}
