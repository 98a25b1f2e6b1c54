//! The Kubernetes libraries' own answers about label selection (engine chapter §1.2).

use std::collections::BTreeMap;

use bigfleet_model::{Operator, PenaltyBucket, Profile, Requirement};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    requirements: Vec<Row>,
    labels: BTreeMap<String, String>,
    #[serde(default)]
    r#match: bool,
    #[serde(default)]
    rejected: bool,
}

#[derive(Deserialize)]
struct Row {
    key: String,
    operator: String,
    #[serde(default)]
    values: Vec<String>,
}

fn requirement(row: Row) -> Requirement {
    let operator = match row.operator.as_str() {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        other => panic!("operator {other}"),
    };
    Requirement { key: row.key, operator, values: row.values }
}

#[test]
fn every_answer_of_the_library_holds() {
    let (mut cases, mut checked) = (0, 0);
    for line in include_str!("golden/requirements.jsonl").split('\n').filter(|l| !l.is_empty()) {
        let case: Case = serde_json::from_str(line).unwrap();
        cases += 1;
        if case.rejected {
            continue;
        }
        checked += 1;
        let none = PenaltyBucket::UNSPECIFIED;
        let requirements = case.requirements.into_iter().map(requirement).collect();
        let profile = Profile::new(requirements, vec![], 0, none, none);
        assert_eq!(profile.matches(&case.labels), case.r#match, "{line}");
    }
    assert_eq!(cases, 200);
    assert!(checked > 100, "{checked} cases say something");
}

#[test]
fn what_the_libraries_refuse_has_its_own_answer() {
    let labels = BTreeMap::from([("rack".to_owned(), "r1".to_owned())]);
    let matches = |key: &str, operator, values: &[&str]| {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        Requirement { key: key.to_owned(), operator, values }.matches(&labels)
    };
    assert!(!matches("rack", Operator::In, &[]), "in nothing: never");
    assert!(matches("rack", Operator::NotIn, &[]), "not in nothing: always");
    assert!(!matches("rack", Operator::Unspecified, &["r1"]));
    assert!(matches("rack", Operator::Same, &[]));
    assert!(matches("rack", Operator::Same, &["r1", "r2"]));
    assert!(!matches("rack", Operator::Same, &["r2"]));
    assert!(!matches("zone", Operator::Same, &[]));
}
