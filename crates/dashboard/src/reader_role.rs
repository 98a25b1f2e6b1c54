//! What a managed cluster must grant the dashboard.

use std::fmt::Write as _;

use bigfleet_crds::{AvailableCapacity, CapacityRequest, UpcomingNode};
use kube::Resource as _;

/// Name of every object.
const NAME: &str = "bigfleet-web-dashboard-reader";

/// Namespace of the account.
const NAMESPACE: &str = "bigfleet-system";

/// Account, role and binding: exactly `get`, `list` and `watch` on the three kinds.
#[must_use]
pub fn manifests() -> String {
    let kinds =
        [CapacityRequest::plural(&()), UpcomingNode::plural(&()), AvailableCapacity::plural(&())];
    let group = CapacityRequest::group(&());
    let mut yaml = String::new();
    let _ = write!(
        yaml,
        "apiVersion: v1
kind: Namespace
metadata:
  name: {NAMESPACE}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {NAME}
  namespace: {NAMESPACE}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {NAME}
rules:
  - apiGroups: [{group}]
    resources: [{}]
    verbs: [get, list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {NAME}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {NAME}
subjects:
  - kind: ServiceAccount
    name: {NAME}
    namespace: {NAMESPACE}
",
        kinds.join(", ")
    );
    yaml
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_role_reads_three_kinds_and_no_more() {
        let yaml = manifests();
        let rules = yaml.split("rules:\n").nth(1).unwrap().split("---").next().unwrap();
        assert_eq!(
            rules,
            "  - apiGroups: [bigfleet.lucy.sh]\n    resources: [capacityrequests, upcomingnodes, \
             availablecapacities]\n    verbs: [get, list, watch]\n"
        );
    }
}
