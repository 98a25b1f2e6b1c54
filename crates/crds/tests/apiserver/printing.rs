//! What people see with `kubectl`.

use serde_json::json;

use super::kubectl::Cluster;
use super::objects::object;

pub(crate) fn short_names_and_the_category_work(cluster: &Cluster) {
    let all = ["get", "cr,avc,upn", "--namespace=samples", "-o=name"];
    let objects = cluster.ok(&all);
    for (plural, name) in [
        ("capacityrequest", "phases"),
        ("availablecapacity", "ac-stored"),
        ("upcomingnode", "un-phases"),
    ] {
        let line = format!("{plural}.bigfleet.lucy.sh/{name}");
        assert!(objects.lines().any(|found| found == line), "{line} is not in:\n{objects}");
    }
    let sorted = |text: String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let category = cluster.ok(&["get", "fleet", "--namespace=samples", "-o=name"]);
    assert_eq!(sorted(category), sorted(objects));
    let by = |name| cluster.ok(&["get", name, "--namespace=samples", "-o=name"]);
    assert_eq!(by("cr"), by("crs"));
    assert_eq!(by("cr"), by("capacityrequest"));
    assert_eq!(by("avc"), by("availablecapacity"));
    assert_eq!(by("upn"), by("upcomingnode"));
}

/// The lines of a table, split into cells.
fn table(cluster: &Cluster, object: &str, wide: bool) -> Vec<Vec<String>> {
    let output = if wide { "--output=wide" } else { "--output=" };
    cluster
        .ok(&["get", object, "--namespace=samples", output])
        .lines()
        .map(|line| line.split_whitespace().map(str::to_owned).collect())
        .collect()
}

pub(crate) fn columns_are_those_of_the_specification(cluster: &Cluster) {
    let spec = json!({
        "priority": 100,
        "resources": {},
        "requirements": [
            {"key": "zone", "operator": "Exists"},
            {"key": "rack", "operator": "Exists"},
        ],
        "interruptionPenalty": "0.5",
        "reclamationPenalty": 8,
    });
    cluster.create(&object("CapacityRequest", "shown", &spec));
    let reason = json!({
        "type": "Satisfied",
        "status": "False",
        "reason": "NoMatchingSupply",
        "message": "",
        "lastTransitionTime": "2026-11-15T12:00:00Z",
    });
    cluster.patch_status("cr/shown", &json!({"status": {"conditions": [reason]}}));
    let spec = json!({
        "availability": "Low",
        "availableCount": 3,
        "cost": "768m",
        "resources": {},
        "requirements": [{"key": "zone", "operator": "Exists"}],
    });
    cluster.create(&object("AvailableCapacity", "ac-shown", &spec));
    let mut node = object(
        "UpcomingNode",
        "un-shown",
        &json!({
            "resources": {},
            "labels": {
                "node.kubernetes.io/instance-type": "m7.metal",
                "topology.kubernetes.io/zone": "eu-west-1a",
            },
        }),
    );
    node["metadata"]["annotations"] = json!({"bigfleet.lucy.sh/machine-id": "i-0abc"});
    cluster.create(&node);
    let status = json!({
        "phase": "Failed",
        "nodeRef": {"kind": "Node", "name": "node-1"},
        "lastError": "quota",
    });
    cluster.patch_status("upn/un-shown", &json!({"status": status}));

    // `_` stands for an age. Of a path with several matches the server prints the first.
    for (name, wide, header, row) in [
        ("cr/shown", false, "NAME PHASE PRIORITY AGE", "shown Pending 100 _"),
        (
            "cr/shown",
            true,
            "NAME PHASE PRIORITY AGE INT-PENALTY REC-PENALTY REQUIREMENTS REASON",
            "shown Pending 100 _ 0.5 8 zone NoMatchingSupply",
        ),
        ("avc/ac-shown", false, "NAME AVAILABILITY AVAILABLE COST", "ac-shown Low 3 768m"),
        (
            "avc/ac-shown",
            true,
            "NAME AVAILABILITY AVAILABLE COST REQUIREMENTS AGE",
            "ac-shown Low 3 768m zone _",
        ),
        ("upn/un-shown", false, "NAME PHASE NODE AGE", "un-shown Failed node-1 _"),
        (
            "upn/un-shown",
            true,
            "NAME PHASE NODE AGE MACHINE TYPE ZONE ERROR",
            "un-shown Failed node-1 _ i-0abc m7.metal eu-west-1a quota",
        ),
    ] {
        let shown = table(cluster, name, wide);
        assert_eq!(shown[0].join(" "), header);
        let mut cells = shown[1].clone();
        if let Some(age) = shown[0].iter().position(|column| column == "AGE") {
            assert!(cells[age].ends_with('s'), "{cells:?} has no age in seconds");
            cells[age] = "_".to_owned();
        }
        assert_eq!(cells.join(" "), row);
    }
}

pub(crate) fn requests_can_be_selected_by_phase(cluster: &Cluster) {
    let with = |phase: &str| {
        let selector = format!("--field-selector=status.phase={phase}");
        cluster.ok(&["get", "cr", "--all-namespaces", &selector, "-o=name"])
    };
    assert_eq!(with("Acknowledged"), "capacityrequest.bigfleet.lucy.sh/phases\n");
    let pending = with("Pending");
    assert!(pending.contains("/shown\n"), "{pending}");
    assert!(!pending.contains("/phases\n"), "{pending}");
}

pub(crate) fn fields_are_explained(cluster: &Cluster) {
    let text = cluster.ok(&["explain", "cr.spec.reclamationPenalty"]);
    assert!(text.contains("warm caches"), "{text}");
}
