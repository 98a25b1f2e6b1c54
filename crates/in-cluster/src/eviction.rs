//! Evictions, the one way in which a pod is asked to leave.

use k8s_openapi::{
    api::{core::v1::Pod, policy::v1::Eviction},
    apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, Preconditions, Status},
};
use kube::{Api, Client, api::PostParams};

/// Evicts the pod of this UID, not one that has taken its name since. Without `grace_seconds` it
/// has its own grace.
///
/// The client's own `evict` misspells the options, so that the server ignores them.
pub async fn evict(
    client: Client,
    namespace: &str,
    name: &str,
    uid: &str,
    grace_seconds: Option<i64>,
) -> Result<(), kube::Error> {
    let eviction = Eviction {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        delete_options: Some(DeleteOptions {
            grace_period_seconds: grace_seconds,
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                ..Preconditions::default()
            }),
            ..DeleteOptions::default()
        }),
    };
    let pods = Api::<Pod>::namespaced(client, namespace);
    let answer: Result<Status, kube::Error> =
        pods.create_subresource("eviction", name, &PostParams::default(), &eviction).await;
    answer.map(drop)
}
