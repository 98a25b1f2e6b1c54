//! Every way in which a pod stands, as a person reads it.

use insta::assert_snapshot;
use jiff::Timestamp;
use kubectl_bigfleet::{
    needs, nodes,
    picture::{Machines, Picture},
    waiting, why,
};
use serde_json::{Value, json};

const NOW: &str = "2026-11-16T12:00:00Z";

fn pod(phase: &str, more: Value) -> Value {
    let mut pod = json!({
        "metadata": {"namespace": "shop", "name": "web-1", "uid": "u1"},
        "spec": {"containers": []},
        "status": {"phase": phase},
    });
    merge(&mut pod, more);
    pod
}

fn request(status: &Value) -> Value {
    json!({
        "apiVersion": "bigfleet.lucy.sh/v1alpha1",
        "kind": "CapacityRequest",
        "metadata": {
            "namespace": "shop", "name": "cr-pod-web-1-0123456789",
            "creationTimestamp": "2026-11-16T11:58:00Z",
        },
        "spec": {
            "priority": 1000,
            "resources": {"cpu": "500m", "memory": "2Gi"},
            "requirements": [
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-b"]}
            ],
        },
        "status": status,
    })
}

fn acknowledged(conditions: &Value) -> Value {
    request(&json!({
        "phase": "Acknowledged", "acknowledgedAt": "2026-11-16T11:59:10Z", "conditions": conditions,
    }))
}

fn told(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-11-16T11:59:20Z",
    })
}

fn machine(id: &str, phase: &str, zone: &str, more: Value) -> Value {
    let mut machine = json!({
        "apiVersion": "bigfleet.lucy.sh/v1alpha1",
        "kind": "UpcomingNode",
        "metadata": {
            "name": format!("un-{id}"), "annotations": {"bigfleet.lucy.sh/machine-id": id},
            "managedFields": [{
                "manager": "bigfleet-operator", "operation": "Update", "subresource": "status",
                "time": "2026-11-16T11:59:50Z",
            }],
        },
        "spec": {
            "resources": {"cpu": "8", "memory": "32Gi"},
            "labels": {
                "node.kubernetes.io/instance-type": "c5.2xlarge",
                "topology.kubernetes.io/zone": zone,
            },
        },
        "status": {"phase": phase, "provisioningStartTime": "2026-11-16T11:59:20Z"},
    });
    merge(&mut machine, more);
    machine
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

fn picture(pod: Value, request: Option<Value>) -> Picture {
    Picture {
        now: now(),
        cluster: None,
        pod: serde_json::from_value(pod).unwrap(),
        request: request.map(|request| serde_json::from_value(request).unwrap()),
        upcoming: Vec::new(),
        available: None,
    }
}

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

#[test]
fn nothing_matches() {
    let unmet = told(
        "Satisfied",
        "False",
        "NoMatchingSupply",
        "no machine of this shape in any state; relax the requirements or raise the provider's \
         quota; short of cpu=500m memory=2Gi; no machine is on its way",
    );
    let waiting = picture(pod("Pending", json!({})), Some(acknowledged(&json!([unmet]))));
    assert_snapshot!(why::screen(&waiting), @r#"
    Pod:        shop/web-1: waits: NoMatchingSupply
    Request:    cr-pod-web-1-0123456789, Acknowledged 50s ago
                asks for cpu=500m memory=2Gi where topology.kubernetes.io/zone in (zone-b), priority 1000
    Fleet:      not satisfied for 40s: NoMatchingSupply
    Coming:     no machine that fits is on its way
    Available:  nothing is known yet of what could be had
    What to do: no machine of this shape in any state; relax the requirements or raise the provider's quota; short of cpu=500m memory=2Gi; no machine is on its way
    "#);
}

#[test]
fn machines_are_coming() {
    let coming = told("Satisfied", "True", "CapacityComing", "2 machines are on their way");
    let mut waiting = picture(pod("Pending", json!({})), Some(acknowledged(&json!([coming]))));
    let some = [
        machine("m-1", "Provisioning", "zone-b", json!({})),
        machine("m-2", "Registered", "zone-b", json!({})),
        // Elsewhere, too small, and already a node: none of them comes for it.
        machine("m-3", "Provisioning", "zone-a", json!({})),
        machine("m-4", "Provisioning", "zone-b", json!({"spec": {"resources": {"cpu": "100m"}}})),
        machine("m-5", "Ready", "zone-b", json!({})),
    ];
    waiting.upcoming = some.into_iter().map(|one| serde_json::from_value(one).unwrap()).collect();
    waiting.available = Some(
        serde_json::from_value(json!({
            "apiVersion": "bigfleet.lucy.sh/v1alpha1",
            "kind": "AvailableCapacity",
            "metadata": {"name": "ac-1"},
            "spec": {"availability": "High", "availableCount": 12, "cost": "380m", "resources": {}},
        }))
        .unwrap(),
    );
    assert_snapshot!(why::screen(&waiting), @r#"
    Pod:        shop/web-1: waits for a machine that is on its way
    Request:    cr-pod-web-1-0123456789, Acknowledged 50s ago
                asks for cpu=500m memory=2Gi where topology.kubernetes.io/zone in (zone-b), priority 1000
    Fleet:      satisfied for 40s: CapacityComing: 2 machines are on their way
    Coming:     m-1 (c5.2xlarge, zone-b), Provisioning, first heard of 40s ago
                m-2 (c5.2xlarge, zone-b), Registered, first heard of 40s ago
    Available:  12 more machines from $0.38 an hour each (confidence high)
    What to do: wait: `kubectl bigfleet wait` tells when it runs
    "#);
}

#[test]
fn nobody_has_heard_of_it() {
    let young = json!({"metadata": {"creationTimestamp": "2026-11-16T11:59:55Z"}});
    let old = request(&json!({"phase": "Pending"}));
    let mut new = old.clone();
    merge(&mut new, young);
    let advice = |request| why::verdict(&picture(pod("Pending", json!({})), Some(request))).advice;
    assert_snapshot!(advice(new), @"wait: requests go out every ten seconds");
    assert_snapshot!(advice(old), @"its request should be accepted by now: the operator is down, cut off from its shard, or holds its roll-ups; see its events and logs: kubectl get deployments -A -l app.kubernetes.io/name=bigfleet-operator");
}

#[test]
fn it_cannot_be_understood() {
    let refused = told(
        "Translatable",
        "False",
        "Operator",
        "spec.requirements[0].operator: \"Gt\" is no operator; use In, NotIn, Exists or DoesNotExist",
    );
    let request = request(&json!({"phase": "Pending", "conditions": [refused]}));
    let waiting = picture(pod("Pending", json!({})), Some(request));
    assert_snapshot!(why::verdict(&waiting).advice, @r#"
    mend what cannot be understood: spec.requirements[0].operator: "Gt" is no operator; use In, NotIn, Exists or DoesNotExist
    "#);
}

#[test]
fn pods_without_a_request() {
    let say = |more: Value| {
        let verdict = why::verdict(&picture(pod("Pending", more), None));
        format!("{}\n{}", verdict.state, verdict.advice)
    };
    assert_snapshot!(say(json!({})), @r#"
    waits, and asks for no capacity
    no request was made for it; see whether the controller that makes them runs: kubectl get deployments -A -l app.kubernetes.io/name=bigfleet-unschedulable-pod-controller
    "#);
    assert_snapshot!(
        say(json!({"metadata": {"annotations": {"bigfleet.lucy.sh/ignore": "true"}}})),
        @r#"
        waits, and BigFleet was told to ignore it
        take away its annotation bigfleet.lucy.sh/ignore if BigFleet is to find it a node
        "#
    );
    assert_snapshot!(
        say(json!({"spec": {"schedulingGates": [{"name": "quota"}, {"name": "queue"}]}})),
        @r#"
        is held back by scheduling gates
        it asks for capacity when its gates are gone: quota, queue
        "#
    );
    assert_snapshot!(
        say(json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}})),
        @r#"
        is a static pod
        nothing: its kubelet runs it
        "#
    );
}

#[test]
fn pods_that_need_nothing_more() {
    let running = pod("Running", json!({"spec": {"nodeName": "node-7"}}));
    assert_snapshot!(why::screen(&picture(running, Some(acknowledged(&json!([]))))), @r#"
    Pod:        shop/web-1: runs on node-7
    Request:    cr-pod-web-1-0123456789, Acknowledged 50s ago
                asks for cpu=500m memory=2Gi where topology.kubernetes.io/zone in (zone-b), priority 1000
    What to do: nothing: it runs
    "#);
    let ended = pod("Succeeded", json!({"spec": {"nodeName": "node-7"}}));
    assert_snapshot!(why::screen(&picture(ended, None)), @r#"
    Pod:        shop/web-1: has ended as Succeeded
    Request:    none
    What to do: nothing: what has ended asks for no capacity, and its request is gone
    "#);
    let starts = pod("Pending", json!({"spec": {"nodeName": "node-7"}}));
    assert_snapshot!(why::verdict(&picture(starts, None)).state, @"has its place on node-7 and starts there");
}

#[test]
fn the_rest_is_the_schedulers() {
    let unplaced = pod(
        "Pending",
        json!({"status": {"conditions": [{
            "type": "PodScheduled", "status": "False",
            "message": "0/3 nodes are available: 3 node(s) had untolerated taint {gpu: only}",
        }]}}),
    );
    let met = told("Satisfied", "True", "Satisfied", "");
    let waiting = picture(unplaced, Some(acknowledged(&json!([met]))));
    assert_snapshot!(why::screen(&waiting), @r#"
    Pod:        shop/web-1: waits for the scheduler; the fleet covers its demand
    Request:    cr-pod-web-1-0123456789, Acknowledged 50s ago
                asks for cpu=500m memory=2Gi where topology.kubernetes.io/zone in (zone-b), priority 1000
    Fleet:      satisfied for 40s: Satisfied
    Coming:     no machine that fits is on its way
    Available:  nothing is known yet of what could be had
    What to do: the scheduler says: 0/3 nodes are available: 3 node(s) had untolerated taint {gpu: only}
    "#);
}

#[test]
fn machines_with_their_nodes() {
    let node = |name: &str, ready: &str, cordoned: bool| {
        json!({
            "metadata": {"name": name},
            "spec": {"unschedulable": cordoned},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        })
    };
    let on = |name: &str| json!({"status": {"nodeRef": {"kind": "Node", "name": name}}});
    let upcoming = [
        machine("m-5", "Failed", "zone-a", json!({"status": {"lastError": "no capacity"}})),
        machine("m-1", "Ready", "zone-b", on("ip-10-0-0-1")),
        machine("m-2", "Draining", "zone-b", on("ip-10-0-0-2")),
        machine("m-3", "Ready", "zone-b", on("ip-10-0-0-3")),
        machine("m-4", "Ready", "zone-b", on("ip-10-0-0-4")),
        machine("m-6", "Provisioning", "zone-b", json!({})),
    ];
    let nodes = [
        node("ip-10-0-0-1", "True", false),
        node("ip-10-0-0-2", "True", true),
        node("ip-10-0-0-3", "Unknown", false),
    ];
    let machines = Machines {
        now: now(),
        upcoming: upcoming.into_iter().map(|one| serde_json::from_value(one).unwrap()).collect(),
        nodes: nodes.into_iter().map(|one| serde_json::from_value(one).unwrap()).collect(),
    };
    assert_snapshot!(nodes::screen(&machines), @r#"
    MACHINE  PHASE         FOR  AGE  TYPE        ZONE    NODE                           ERROR
    m-1      Ready         10s  40s  c5.2xlarge  zone-b  ip-10-0-0-1 (Ready)            —
    m-2      Draining      10s  40s  c5.2xlarge  zone-b  ip-10-0-0-2 (Ready, cordoned)  —
    m-3      Ready         10s  40s  c5.2xlarge  zone-b  ip-10-0-0-3 (NotReady)         —
    m-4      Ready         10s  40s  c5.2xlarge  zone-b  ip-10-0-0-4 (gone)             —
    m-5      Failed        10s  40s  c5.2xlarge  zone-a  —                              no capacity
    m-6      Provisioning  10s  40s  c5.2xlarge  zone-b  —                              —
    "#);
    let none = Machines { upcoming: Vec::new(), ..machines };
    assert_snapshot!(nodes::screen(&none), @"no machine of the fleet is in this cluster or on its way to it");
}

#[test]
fn needs_as_the_operator_rolls_them_up() {
    let with = |more: Value| {
        let mut request = acknowledged(&json!([]));
        merge(&mut request, more);
        serde_json::from_value(request).unwrap()
    };
    let gang = json!({"topologyKey": "rack", "labelSelector": {"matchLabels": {"job": "j"}}});
    let requests = [
        with(json!({})),
        with(json!({"spec": {"resources": {"cpu": "2"}}, "status": {"phase": "Pending"}})),
        with(json!({"spec": {"priority": 7, "coLocation": gang}})),
        with(
            json!({"status": {"conditions": [told("Satisfied", "False", "PriorityStarved", "")]}}),
        ),
        with(json!({"spec": {"resources": {"cpu": "much"}}})),
    ];
    assert_snapshot!(needs::screen(&requests), @r#"
    PRIORITY  PODS  WHERE                                               GROUP                SUM                  LARGEST              WAITING  REASON
    1000      3     topology.kubernetes.io/zone in (zone-b)             —                    cpu=3 memory=6Gi     cpu=2 memory=2Gi     2        PriorityStarved
    7         1     same rack, topology.kubernetes.io/zone in (zone-b)  rack\0job=j,;\0shop  cpu=500m memory=2Gi  cpu=500m memory=2Gi  0        —
    one request cannot be understood and counts for nothing; its condition Translatable says why
    `kubectl bigfleet why` lists the pods that wait
    "#);
    assert_snapshot!(needs::screen(&[]), @"no pod asks for capacity");
}

#[test]
fn the_pods_that_wait() {
    let named = |name: &str, phase: &str, more: Value| {
        let created = "2026-11-16T11:57:00Z";
        let mut pod = pod(phase, json!({"metadata": {"name": name, "creationTimestamp": created}}));
        merge(&mut pod, more);
        pod
    };
    let unmet = acknowledged(&json!([told("Satisfied", "False", "PriorityStarved", "")]));
    let pods = [
        picture(named("web-2", "Pending", json!({})), None),
        picture(named("web-1", "Pending", json!({})), Some(unmet)),
        picture(named("web-3", "Pending", json!({"spec": {"nodeName": "node-7"}})), None),
        picture(named("web-4", "Running", json!({"spec": {"nodeName": "node-7"}})), None),
    ];
    assert_snapshot!(waiting::screen(&pods), @r#"
    NAMESPACE  POD    FOR  STATE
    shop       web-1  3m   waits: PriorityStarved
    shop       web-2  3m   waits, and asks for no capacity
    `kubectl bigfleet why NAMESPACE/POD` says what to do
    "#);
    let many: Vec<Picture> = (0..60)
        .map(|number| picture(named(&format!("web-{number}"), "Pending", json!({})), None))
        .collect();
    let told = waiting::screen(&many);
    assert!(told.contains("and 10 more; -n shows those of one namespace"), "{told}");
    assert_snapshot!(waiting::screen(&[]), @"no pod waits for a node");
}

#[test]
fn the_cluster_is_named() {
    let mut waiting = picture(pod("Running", json!({})), None);
    waiting.cluster = Some("cluster-b".to_owned());
    assert!(why::screen(&waiting).starts_with("Cluster:    cluster-b\nPod: "));
}
