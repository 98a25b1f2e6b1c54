//! Why the API server would not make a request.

use bigfleet_in_cluster::refusal;

/// What a refusal means for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There is one of this name.
    Exists,
    /// The namespace is going or gone, and so is the pod.
    NamespaceGone,
    /// A quota of the namespace is used up.
    Quota,
    /// This object will never do as it is; others may.
    Invalid,
    /// A policy of the cluster does not let this object in; others may pass.
    Denied,
    /// Anything else.
    Other,
}

/// What admission says when it has judged.
const DENIED: [&str; 2] = ["denied the request", "denied request"];

impl Refused {
    /// Whether only this object is refused, and only people can help: nothing else has to wait.
    #[must_use]
    pub(crate) fn is_for_good(self) -> bool {
        matches!(self, Self::Invalid | Self::Denied)
    }

    /// Of an attempt to create a request.
    #[must_use]
    pub(crate) fn of(error: &kube::Error) -> Self {
        let kube::Error::Api(status) = error else { return Self::Other };
        let details = status.details.as_ref();
        let cause = |reason: &str| {
            details.is_some_and(|details| details.causes.iter().any(|it| it.reason == reason))
        };
        match refusal::code(error) {
            Some(409) if status.reason == "AlreadyExists" => Self::Exists,
            Some(403) if cause("NamespaceTerminating") => Self::NamespaceGone,
            // The same answer if the namespace went between two checks of the server.
            Some(404) if details.is_some_and(|details| details.kind == "namespaces") => {
                Self::NamespaceGone
            }
            Some(403) if status.message.contains("exceeded quota") => Self::Quota,
            Some(422) => Self::Invalid,
            // In the words of webhooks and of policies; a webhook that cannot be asked is a 500.
            Some(400 | 403) if DENIED.iter().any(|words| status.message.contains(words)) => {
                Self::Denied
            }
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn refusals_are_told_apart() {
        for (status, expected) in [
            (json!({"code": 409, "reason": "AlreadyExists"}), Refused::Exists),
            (json!({"code": 409, "reason": "Conflict"}), Refused::Other),
            (
                json!({"code": 403, "reason": "Forbidden", "message":
                    "capacityrequests \"a\" is forbidden: exceeded quota: q, requested: 1"}),
                Refused::Quota,
            ),
            (
                json!({"code": 403, "reason": "Forbidden", "details":
                    {"causes": [{"reason": "NamespaceTerminating", "message": "", "field": ""}]}}),
                Refused::NamespaceGone,
            ),
            (
                json!({"code": 403, "reason": "Forbidden", "message": "cannot create resource"}),
                Refused::Other,
            ),
            (
                json!({"code": 404, "reason": "NotFound", "details":
                    {"kind": "namespaces", "name": "apps"}}),
                Refused::NamespaceGone,
            ),
            (json!({"code": 404, "reason": "NotFound"}), Refused::Other),
            (json!({"code": 422, "reason": "Invalid"}), Refused::Invalid),
            (
                json!({"code": 400, "message":
                    "admission webhook \"labels.example.com\" denied the request: no team"}),
                Refused::Denied,
            ),
            (
                json!({"code": 403, "reason": "Forbidden", "message": "capacityrequests \"a\" is \
                    forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"}),
                Refused::Denied,
            ),
            (json!({"code": 400, "reason": "BadRequest", "message": "bad"}), Refused::Other),
            (
                json!({"code": 500, "reason": "InternalError", "message":
                    "failed calling webhook \"labels.example.com\": connection refused"}),
                Refused::Other,
            ),
            (json!({"code": 500, "reason": "InternalError"}), Refused::Other),
        ] {
            let refused = serde_json::from_value(status.clone()).unwrap();
            assert_eq!(Refused::of(&kube::Error::Api(Box::new(refused))), expected, "{status}");
        }
    }
}
