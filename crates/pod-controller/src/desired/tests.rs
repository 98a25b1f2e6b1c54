use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-01-01T12:00:00Z";

fn pod(patch: &Value) -> Pod {
    let mut pod = json!({
        "metadata": {"name": "web-0", "namespace": "apps", "uid": "abc"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": "Pending"},
    });
    for (part, fields) in patch.as_object().unwrap() {
        for (name, value) in fields.as_object().unwrap() {
            pod[part][name] = value.clone();
        }
    }
    Pod::of(&serde_json::from_value(pod).unwrap())
}

fn over() -> Pod {
    pod(&json!({"status": {"phase": "Succeeded"}}))
}

fn plan(pod: &Pod, existing: &[Arc<Existing>]) -> Desired {
    let settings = Settings::default();
    desired(pod, &context(&settings, existing))
}

fn context<'a>(settings: &'a Settings, existing: &'a [Arc<Existing>]) -> Context<'a> {
    let now = NOW.parse().unwrap();
    Context { settings, now, unmanaged: false, group_topology: None, volumes: &[], existing }
}

fn created(pod: &Pod) -> CapacityRequest {
    match plan(pod, &[]).step {
        Step::Create(request) => *request,
        step => panic!("{step:?}"),
    }
}

fn as_stored(request: &CapacityRequest) -> Arc<Existing> {
    Arc::new(Existing::of(request).unwrap())
}

#[test]
fn a_new_pod_gets_the_request_of_the_specification() {
    let pod = pod(&json!({
        "metadata": {"annotations": {
            "bigfleet.lucy.sh/interruption-penalty": "0.5",
            "bigfleet.lucy.sh/reclamation-penalty": "cheap",
        }},
        "spec": {
            "priority": 7,
            "nodeSelector": {"zone": "b"},
            "overhead": {"memory": "1Gi"},
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
                {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"},
            ],
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [
                        {"key": "cores", "operator": "Gt", "values": ["4"]},
                    ]}],
                }},
                "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "rack", "labelSelector": {"matchLabels": {"a": "b"}}},
                ]},
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "host", "labelSelector": {}},
                ]},
            },
        },
    }));
    let made = plan(&pod, &[]);
    let Step::Create(request) = &made.step else { panic!("{made:?}") };
    let expected = json!({
        "apiVersion": "bigfleet.lucy.sh/v1alpha1",
        "kind": "CapacityRequest",
        "metadata": {
            "name": "cr-pod-web-0-ba7816bf8f",
            "namespace": "apps",
            "labels": {"bigfleet.lucy.sh/owned-by-pod": "abc"},
            "annotations": {"bigfleet.lucy.sh/approximated": "cores"},
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Pod", "name": "web-0", "uid": "abc", "controller": true,
            }],
        },
        "spec": {
            "priority": 7,
            "resources": {"cpu": "1", "memory": "1Gi"},
            "requirements": [
                {"key": "zone", "operator": "In", "values": ["b"]},
                {"key": "cores", "operator": "Exists"},
            ],
            "interruptionPenalty": "500m",
            "topologySpread": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
            ],
            "coLocation": {"topologyKey": "rack", "labelSelector": {"matchLabels": {"a": "b"}}},
        },
    });
    assert_eq!(serde_json::to_value(request).unwrap(), expected);
    let invalid =
        InvalidPenalty { key: "bigfleet.lucy.sh/reclamation-penalty", value: "cheap".into() };
    assert_eq!(
        made.warnings,
        [Warning::InvalidPenalty(invalid), Warning::ApproximatedRequirement("cores".to_owned())]
    );
    assert!(made.delete.is_empty());
}

#[test]
fn a_request_that_is_right_is_left_alone() {
    let pod = pod(&json!({}));
    let stored = as_stored(&created(&pod));
    let made = plan(&pod, &[stored]);
    assert_eq!(made, Desired { step: Step::Keep, ..Desired::default() });
}

#[test]
fn drift_is_patched_whoever_caused_it() {
    let before = pod(&json!({}));
    let stored = as_stored(&created(&before));
    let resized = pod(&json!({"spec": {"overhead": {"cpu": "1"}}}));
    let Step::Patch { name, wanted } = plan(&resized, std::slice::from_ref(&stored)).step else {
        panic!()
    };
    assert_eq!((&*name, wanted.spec.resources["cpu"].as_str()), ("cr-pod-web-0-ba7816bf8f", "2"));
    for edit in [
        |request: &mut CapacityRequest| request.spec.priority = 9,
        |request: &mut CapacityRequest| request.metadata.labels = None,
        |request: &mut CapacityRequest| request.metadata.owner_references = None,
    ] {
        let mut edited = created(&before);
        edit(&mut edited);
        let made = plan(&before, &[as_stored(&edited)]);
        assert!(matches!(made.step, Step::Patch { .. }), "{made:?}");
    }
}

#[test]
fn of_several_requests_one_stays() {
    let pod = pod(&json!({}));
    let right = created(&pod);
    let named = |name: &str| {
        let mut request = right.clone();
        request.metadata.name = Some(name.to_owned());
        as_stored(&request)
    };
    let (a, z) = (named("a"), named("z"));
    let made = plan(&pod, &[a.clone(), as_stored(&right), z.clone()]);
    assert_eq!((made.step, made.delete), (Step::Keep, vec![a.clone(), z.clone()]));
    // An older one under another name will do.
    let made = plan(&pod, &[a, z.clone()]);
    assert_eq!((made.step, made.delete), (Step::Keep, vec![z]));
}

#[test]
fn pods_that_are_over_or_skipped_lose_their_requests() {
    let stored = as_stored(&created(&pod(&json!({}))));
    let mut going = (*stored).clone();
    going.terminating = true;
    let going = Arc::new(going);
    let made = plan(&over(), &[stored.clone(), going.clone()]);
    assert_eq!((made.step, made.delete), (Step::Terminal, vec![stored.clone()]));
    let gated = pod(&json!({"spec": {"schedulingGates": [{"name": "g"}]}}));
    let made = plan(&gated, std::slice::from_ref(&stored));
    assert_eq!((made.step, made.delete), (Step::Skip, vec![stored]));
    // Somebody's finalizer holds it; it is neither kept alive nor deleted twice.
    let made = plan(&pod(&json!({})), &[going]);
    assert_eq!((made.step, made.delete), (Step::Keep, vec![]));
}

#[test]
fn a_pod_that_lingers_is_looked_at_again() {
    let lingering = pod(&json!({"metadata": {"deletionTimestamp": "2026-01-01T12:00:30Z"}}));
    let again = plan(&lingering, &[]).again_at.unwrap();
    assert_eq!(again, "2026-01-01T12:05:30Z".parse().unwrap());
    let settings = Settings::default();
    let late = Context { now: again, ..context(&settings, &[]) };
    assert!(matches!(desired(&lingering, &late).step, Step::Create(_)));
    let later = Context { now: "2026-01-01T12:05:31Z".parse().unwrap(), ..late };
    assert_eq!(desired(&lingering, &later), Desired::default());
}

#[test]
fn flags_and_daemonsets_show() {
    let daemon = pod(&json!({"metadata": {"ownerReferences": [{
        "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true,
    }]}}));
    assert_eq!(created(&daemon).metadata.labels.unwrap()["bigfleet.lucy.sh/daemonset"], "true");
    let settings = Settings { count_pods_resource: true, ..Settings::default() };
    let Step::Create(request) = desired(&daemon, &context(&settings, &[])).step else { panic!() };
    assert_eq!(request.spec.resources["pods"].as_str(), "1");
    assert!(!created(&daemon).spec.resources.contains_key("pods"));
}

#[test]
fn surroundings_count() {
    let settings = Settings::default();
    let grouped = pod(&json!({"spec": {"schedulingGroup": {"podGroupName": "g"}}}));
    let around = Context { group_topology: Some("block"), ..context(&settings, &[]) };
    let Step::Create(request) = desired(&grouped, &around).step else { panic!() };
    assert_eq!(request.spec.co_location.unwrap().topology_key, "block");
    let term = json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]});
    let terms = [Term::of(&serde_json::from_value(term).unwrap())];
    let around = Context { volumes: &[&terms], ..context(&settings, &[]) };
    let Step::Create(request) = desired(&grouped, &around).step else { panic!() };
    assert_eq!(request.spec.requirements[0].key, "zone");
    let around = Context { unmanaged: true, ..context(&settings, &[]) };
    assert_eq!(desired(&grouped, &around).step, Step::Skip);
}

fn any_pod() -> impl Strategy<Value = Value> {
    let requests = prop::collection::btree_map("cpu|memory|gpu", "[1-9]{1,3}(m|Mi|)", 0..3);
    let labels = prop::collection::btree_map("[a-c]", "[x-z]", 0..3);
    let operator = prop::sample::select(vec!["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]);
    let expression = ("[a-c]", operator, prop::collection::vec("[1-3]", 1..3));
    let terms = prop::collection::vec(prop::collection::vec(expression, 0..3), 0..3);
    (requests, labels, terms, any::<i32>(), any::<bool>()).prop_map(
        |(requests, labels, terms, priority, gang)| {
            let term = |expressions: Vec<(String, &str, Vec<String>)>| -> Value {
                let expression = |(key, operator, values)| {
                    json!({"key": key, "operator": operator, "values": values})
                };
                let expressions: Vec<Value> = expressions.into_iter().map(expression).collect();
                json!({"matchExpressions": expressions})
            };
            let terms: Vec<Value> = terms.into_iter().map(term).collect();
            let gang = if gang {
                json!([{"topologyKey": "rack", "labelSelector": {"matchLabels": labels}}])
            } else {
                json!([])
            };
            json!({"spec": {
                "priority": priority,
                "nodeSelector": labels,
                "containers": [{"name": "c", "resources": {"requests": requests}}],
                "affinity": {
                    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                        {"nodeSelectorTerms": terms}},
                    "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": gang},
                },
            }})
        },
    )
}

proptest! {
    /// What is read back equals what was written: no reconcile ever follows from our own write.
    #[test]
    fn a_request_settles_at_once(patch in any_pod()) {
        let pod = pod(&patch);
        let request = created(&pod);
        let text = serde_json::to_string(&request).unwrap();
        let read: CapacityRequest = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(plan(&pod, &[as_stored(&read)]).step, Step::Keep);
    }

    /// A patch leads to what was wanted, whatever was there.
    #[test]
    fn a_patch_leads_there(one in any_pod(), other in any_pod()) {
        let (from, to) = (created(&pod(&one)), created(&pod(&other)));
        let mut value = serde_json::to_value(&from).unwrap();
        if let Some(patch) = crate::drift::patch(&from, &to) {
            merge(&mut value, &patch);
        }
        let reached: CapacityRequest = serde_json::from_value(value).unwrap();
        prop_assert_eq!(&reached.spec, &to.spec);
        prop_assert_eq!(Digest::of(&reached), Digest::of(&to));
        prop_assert_eq!(crate::drift::patch(&reached, &to), None);
    }

    /// No operator but the four reaches a request, and there is always a requirement.
    #[test]
    fn requirements_are_legal(patch in any_pod()) {
        let request = created(&pod(&patch));
        prop_assert!(!request.spec.requirements.is_empty());
        for requirement in &request.spec.requirements {
            use bigfleet_crds::Operator::{DoesNotExist, Exists, In, NotIn};
            prop_assert!(matches!(requirement.operator, In | NotIn | Exists | DoesNotExist));
        }
    }
}

/// RFC 7386.
fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            into.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut into[key.as_str()], value);
        }
    }
}
