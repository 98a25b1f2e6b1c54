//! What a template sees.

use bigfleet_wire::v1alpha1::{
    BootstrapRequest, NodeSelectorRequirement, node_selector_requirement::Operator,
};

use super::template::{Field, Value};

/// The fields that every template has.
pub(super) fn fields(cluster_id: &str, request: &BootstrapRequest) -> Vec<(&'static str, Field)> {
    let requirements = request.requirements.iter().map(requirement).collect();
    vec![
        ("ClusterID", ready(Value::string(cluster_id))),
        ("Requirements", ready(Value::list("[]bootstrap.Requirement", requirements))),
        ("MachineID", ready(Value::string(&request.machine_id))),
    ]
}

pub(super) fn ready(value: Value) -> Field {
    Field::Ready(value)
}

fn requirement(requirement: &NodeSelectorRequirement) -> Value {
    let operator = match Operator::try_from(requirement.operator) {
        Ok(Operator::In) => "In",
        Ok(Operator::NotIn) => "NotIn",
        Ok(Operator::Exists) => "Exists",
        Ok(Operator::DoesNotExist) => "DoesNotExist",
        Ok(Operator::Same) => "Same",
        Ok(Operator::Unspecified) | Err(_) => "",
    };
    Value::structure(
        "bootstrap.Requirement",
        vec![
            ("Key", ready(Value::string(&requirement.key))),
            ("Operator", ready(Value::string(operator))),
            ("Values", ready(Value::strings(requirement.values.iter().map(String::as_str)))),
        ],
    )
}
