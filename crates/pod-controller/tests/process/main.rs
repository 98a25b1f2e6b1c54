//! The binary on a real API server, with no more rights than the specification gives it (§9).

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod flags;
mod site;

use bigfleet_crds::{CapacityRequest, CapacityRequestPhase};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Event};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use site::Site;

const NAME: &str = "bigfleet-unschedulable-pod-controller";

#[test]
fn the_binary_on_a_real_api_server() {
    let Some(site) = Site::start_or_skip() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let site = site.prepare().await;
        // Before the start: the first pass must find it.
        site.pod("early", json!({})).await;
        let mut process = site.run();
        let early = site.request("early").await;
        assert_eq!(early.phase(), CapacityRequestPhase::Pending);
        assert!(!status_was_written(&early), "the schema's default spares the second write");
        the_lease_says_synced(&site).await;
        probes_and_metrics_answer(&process).await;
        a_change_is_patched(&site).await;
        a_request_deleted_by_hand_comes_back(&site).await;
        the_end_of_a_pod_ends_its_request(&site).await;
        a_quota_is_told(&site).await;
        an_orphan_goes_at_the_next_resync(&site).await;
        without_the_default_the_phase_is_stamped(&site).await;
        assert!(process.stop().success());
        let lease = site.lease().await;
        let holder = lease.spec.unwrap().holder_identity.unwrap_or_default();
        assert_eq!(holder, "", "the lease was given back");
    });
}

fn status_was_written(request: &CapacityRequest) -> bool {
    let managers = request.managed_fields();
    managers.iter().any(|manager| manager.subresource.as_deref() == Some("status"))
}

async fn the_lease_says_synced(site: &Site) {
    let lease: Lease = site
        .eventually("a synced lease", async || {
            let lease = site.lease_if_any().await?;
            let holder = lease.spec.as_ref()?.holder_identity.clone()?;
            let synced = lease.annotations().get("bigfleet.lucy.sh/synced").cloned();
            (synced == Some(holder)).then_some(lease)
        })
        .await;
    assert!(lease.spec.unwrap().holder_identity.unwrap().starts_with("upc-0_"));
}

async fn probes_and_metrics_answer(process: &site::Process) {
    assert!(process.get("/healthz").await.starts_with("HTTP/1.1 200"));
    assert!(process.get("/readyz").await.starts_with("HTTP/1.1 200"));
    let metrics = process.get("/metrics").await;
    for series in ["leader 1", "synced 1", "reconciles_total{outcome=\"cr_created\"} 1"] {
        let series = format!("\nbigfleet_unschedulable_pod_controller_{series}\n");
        assert!(metrics.contains(&series), "{series}\n{metrics}");
    }
}

async fn a_change_is_patched(site: &Site) {
    let before = site.request("early").await;
    assert_eq!(before.spec.interruption_penalty, None);
    let annotations = json!({
        "bigfleet.lucy.sh/interruption-penalty": "0.5",
        "bigfleet.lucy.sh/reclamation-penalty": "cheap",
    });
    site.patch_pod("early", json!({"metadata": {"annotations": annotations}})).await;
    site.eventually("a patched request", async || {
        let request = site.request("early").await;
        let penalty = request.spec.interruption_penalty.as_ref()?.to_string();
        assert_eq!(request.uid(), before.uid(), "patched, not made anew");
        (penalty == "500m").then_some(())
    })
    .await;
    site.eventually("an event", async || site.event("InvalidPenalty", "default").await).await;
    // Members that go must go.
    let annotations = json!({"bigfleet.lucy.sh/interruption-penalty": null});
    site.patch_pod("early", json!({"metadata": {"annotations": annotations}})).await;
    site.eventually("the penalty to go", async || {
        site.request("early").await.spec.interruption_penalty.is_none().then_some(())
    })
    .await;
}

async fn a_request_deleted_by_hand_comes_back(site: &Site) {
    let before = site.request("early").await;
    let requests = site.requests("default");
    requests.delete(&before.name_any(), &DeleteParams::default()).await.unwrap();
    let after = site
        .eventually("another request", async || {
            site.request_if_any("early").await.filter(|it| it.uid() != before.uid())
        })
        .await;
    assert_eq!(after.name_any(), before.name_any());
}

async fn the_end_of_a_pod_ends_its_request(site: &Site) {
    site.pod("brief", json!({"priority": 0})).await;
    site.request("brief").await;
    let over = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
    site.pods("default").patch_status("brief", &PatchParams::default(), &over).await.unwrap();
    site.eventually("no request", async || {
        site.request_if_any("brief").await.is_none().then_some(())
    })
    .await;
    let gated = json!({"schedulingGates": [{"name": "example.com/wait"}]});
    site.pod("gated", gated).await;
    // Something that comes later is done, and this is not.
    site.pod("after", json!({})).await;
    site.request("after").await;
    assert!(site.request_if_any("gated").await.is_none());
    site.patch_pod("gated", json!({"spec": {"schedulingGates": null}})).await;
    site.request("gated").await;
}

async fn a_quota_is_told(site: &Site) {
    site.quota_of_none("tight").await;
    site.pod_in("tight", "over", json!({})).await;
    let event: Event = site
        .eventually("an event", async || site.event("CapacityRequestQuota", "tight").await)
        .await;
    assert_eq!(event.involved_object.name.as_deref(), Some("over"));
    assert!(event.message.unwrap().contains("exceeded quota"));
    assert!(site.requests("tight").list(&ListParams::default()).await.unwrap().items.is_empty());
}

async fn an_orphan_goes_at_the_next_resync(site: &Site) {
    let lost: CapacityRequest = serde_json::from_value(json!({
        "metadata": {
            "name": "cr-pod-lost-0123456789",
            "labels": {"bigfleet.lucy.sh/owned-by-pod": "lost"},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": "lost", "uid": "lost"},
            ],
        },
        "spec": {"priority": 0, "resources": {}},
    }))
    .unwrap();
    let requests = site.requests("default");
    requests.create(&Default::default(), &lost).await.unwrap();
    let name = lost.name_any();
    site.eventually("the orphan to go", async || {
        requests.get_opt(&name).await.unwrap().is_none().then_some(())
    })
    .await;
}

async fn without_the_default_the_phase_is_stamped(site: &Site) {
    site.drop_the_default().await;
    // The API server takes a moment to serve the new schema.
    let stamped = site
        .eventually("a stamped request", async || {
            let name = site.next_name();
            site.pod(&name, json!({})).await;
            let request = site.request(&name).await;
            let request: Option<CapacityRequest> = match request.status {
                Some(_) if !status_was_written(&request) => None,
                _ => Some(
                    site.eventually("a stamp", async || {
                        let request = site.request(&name).await;
                        status_was_written(&request).then_some(request)
                    })
                    .await,
                ),
            };
            request
        })
        .await;
    let status: Value = serde_json::to_value(stamped.status).unwrap();
    assert_eq!(status, json!({"phase": "Pending"}));
}

/// For the helpers: of everything that is namespaced.
fn api<K>(client: &kube::Client, namespace: &str) -> Api<K>
where
    K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
{
    Api::namespaced(client.clone(), namespace)
}
