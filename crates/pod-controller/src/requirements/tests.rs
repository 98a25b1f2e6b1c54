use serde_json::{Value, json};

use super::*;

fn pod(selector: &Value, terms: &Value) -> Pod {
    let pod = json!({
        "metadata": {"name": "a"},
        "spec": {"containers": [], "nodeSelector": selector, "affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {
                "matchExpressions": [{"key": "never", "operator": "Exists"}],
            }}],
        }}},
    });
    Pod::of(&serde_json::from_value(pod).unwrap())
}

fn is(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({"key": key, "operator": operator, "values": values})
}

fn term(expressions: &[Value]) -> Value {
    json!({"matchExpressions": expressions})
}

/// `key operator v1,v2`, one per requirement.
fn of(pod: &Pod, volumes: &[Vec<Term>]) -> (Vec<String>, Vec<String>) {
    let all = requirements(pod, volumes.iter().map(Vec::as_slice));
    let text = |it: &Requirement| {
        format!("{} {:?} {}", it.key, it.operator, it.values.join(",")).trim_end().to_owned()
    };
    (all.list.iter().map(text).collect(), all.approximated.into_iter().collect())
}

fn list(selector: &Value, terms: &Value) -> Vec<String> {
    of(&pod(selector, terms), &[]).0
}

#[test]
fn nothing_asked_is_any_machine() {
    let any = ["node.kubernetes.io/instance-type Exists"];
    assert_eq!(list(&json!({}), &json!([])), any);
    assert_eq!(list(&Value::Null, &json!([{}])), any);
    // What a DaemonSet pins its pods with.
    let fields = json!([{"matchFields": [is("metadata.name", "In", &["node-1"])]}]);
    assert_eq!(list(&json!({}), &fields), any);
}

#[test]
fn selector_by_key_then_the_first_term_without_duplicates() {
    let selector = json!({"zone": "b", "arch": "arm64"});
    let terms = json!([
        term(&[
            is("zone", "In", &["b"]),
            is("type", "NotIn", &["x", "y"]),
            is("gpu", "Exists", &[])
        ]),
        term(&[is("other", "DoesNotExist", &[])]),
    ]);
    assert_eq!(
        list(&selector, &terms),
        ["arch In arm64", "zone In b", "type NotIn x,y", "gpu Exists"]
    );
}

#[test]
fn an_empty_term_matches_nothing_and_is_passed_over() {
    let terms = json!([{}, term(&[is("zone", "In", &["a"])])]);
    assert_eq!(list(&json!({}), &terms), ["zone In a"]);
}

#[test]
fn terms_that_differ_in_one_in_key_are_merged() {
    let zone = |values: &[&str]| is("zone", "In", values);
    let arm = || is("arch", "In", &["arm64"]);
    for (terms, expected) in [
        (json!([term(&[zone(&["a"])]), term(&[zone(&["b", "a"])])]), vec!["zone In a,b"]),
        (
            json!([
                term(&[arm(), zone(&["a"])]),
                term(&[zone(&["b"]), arm()]),
                term(&[arm(), zone(&["c"])])
            ]),
            vec!["arch In arm64", "zone In a,b,c"],
        ),
        // Another key, another operator, another number of expressions.
        (json!([term(&[zone(&["a"])]), term(&[is("rack", "In", &["b"])])]), vec!["zone In a"]),
        (json!([term(&[zone(&["a"])]), term(&[is("zone", "NotIn", &["b"])])]), vec!["zone In a"]),
        (json!([term(&[zone(&["a"])]), term(&[zone(&["b"]), arm()])]), vec!["zone In a"]),
        // Two keys at once would admit (a, amd64), which no term does.
        (
            json!([
                term(&[zone(&["a"]), arm()]),
                term(&[zone(&["b"]), arm()]),
                term(&[zone(&["a"]), is("arch", "In", &["amd64"])]),
                term(&[zone(&["b"]), is("arch", "In", &["amd64"])]),
            ]),
            vec!["zone In a,b", "arch In arm64"],
        ),
        // What was widened cannot be compared.
        (
            json!([
                term(&[zone(&["a"]), is("cores", "Gt", &["4"])]),
                term(&[zone(&["b"]), is("cores", "Gt", &["8"])]),
            ]),
            vec!["zone In a", "cores Exists"],
        ),
        (
            json!([
                {"matchExpressions": [zone(&["a"])], "matchFields": [is("metadata.name", "In", &["x"])]},
                term(&[zone(&["b"])]),
            ]),
            vec!["zone In a"],
        ),
    ] {
        assert_eq!(list(&json!({}), &terms), expected, "{terms}");
    }
}

#[test]
fn comparisons_of_size_are_widened() {
    let terms = json!([term(&[
        is("cores", "Gt", &["4"]),
        is("age", "Lt", &["9"]),
        is("cores", "Lt", &["64"]),
    ])]);
    let (list, approximated) = of(&pod(&json!({}), &terms), &[]);
    assert_eq!(list, ["cores Exists", "age Exists"]);
    assert_eq!(approximated, ["age", "cores"]);
}

#[test]
fn bound_volumes_add_their_only_term() {
    let read = |value: Value| -> Vec<Term> {
        let terms: Vec<NodeSelectorTerm> = serde_json::from_value(value).unwrap();
        terms.iter().map(Term::of).collect()
    };
    let one = read(json!([term(&[is("zone", "In", &["a"]), is("size", "Gt", &["1"])])]));
    let two = read(json!([term(&[is("zone", "In", &["b"])]), term(&[is("zone", "In", &["c"])])]));
    let pod = pod(&json!({"zone": "a"}), &json!([]));
    let (list, approximated) = of(&pod, &[one, two, Vec::new()]);
    assert_eq!(list, ["zone In a", "size Exists"]);
    assert_eq!(approximated, ["size"]);
}
