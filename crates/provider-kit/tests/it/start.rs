//! What fails a start, and what a restart finds (provider chapter §7).

use std::time::Duration;

use bigfleet_provider_kit::{
    CapacityType, Caps, Cloud, CloudError, Config, Error, Host, Machine, MemStore, Offer, Op,
    Ready, config::Timeouts, fault::FaultCloud,
};
use bigfleet_wire::v1alpha1::{ListFilter, MachineState};

use crate::rig::{Rig, config};

/// A cloud that only describes.
struct Described {
    offers: Vec<Offer>,
    observes_ready: bool,
}

impl Cloud for Described {
    fn caps(&self) -> Caps {
        let observes_ready = self.observes_ready;
        Caps { destroy: false, fixed: true, resumable: true, observes_ready }
    }

    async fn describe(&self) -> Result<Vec<Offer>, CloudError> {
        Ok(self.offers.clone())
    }

    async fn create(&self, _: &Op, _: &Machine) -> Result<Host, CloudError> {
        Ok(Host::default())
    }

    async fn bootstrap(&self, _: &Op, _: &Machine, _: &str, _: &[u8]) -> Result<(), CloudError> {
        Ok(())
    }

    async fn ready(&self, _: &Op, _: &Machine, _: &str) -> Result<Ready, CloudError> {
        Ok(Ready::Unobservable)
    }

    async fn drain(&self, _: &Op, _: &Machine, _: Duration) -> Result<(), CloudError> {
        Ok(())
    }

    async fn destroy(&self, _: &Op, _: &Machine) -> Result<(), CloudError> {
        Ok(())
    }
}

fn offer(id: &str, host: Option<&str>) -> Offer {
    Offer {
        id: id.into(),
        host: host.map(str::to_owned),
        instance_type: "metal".into(),
        zone: "ams1".into(),
        capacity_type: CapacityType::BareMetal,
        price_per_hour: 0.0,
        interruption_probability: 0.0,
        resources: [("cpu".to_owned(), "64".to_owned())].into(),
        allocatable: [].into(),
        labels: [].into(),
    }
}

async fn refused(offers: Vec<Offer>) -> Error {
    let cloud = Described { offers, observes_ready: true };
    Rig::local(cloud, MemStore::new(), config()).await.err().unwrap()
}

#[tokio::test]
async fn one_bad_offer_fails_the_first_start() {
    let twice = refused(vec![offer("a", None), offer("a", None)]).await;
    assert!(twice.to_string().contains("\"a\": id: offered twice"), "{twice}");
    let shared = refused(vec![offer("a", Some("h")), offer("b", Some("h"))]).await;
    assert!(shared.to_string().contains("\"b\": host:"), "{shared}");
    let mut free = offer("a", None);
    free.capacity_type = CapacityType::OnDemand;
    let unpriced = refused(vec![free]).await;
    assert!(unpriced.to_string().contains("price_per_hour"), "{unpriced}");
}

#[tokio::test(start_paused = true)]
async fn readiness_that_nobody_sees_must_be_accepted() {
    let cloud = |observes_ready| Described { offers: vec![offer("a", Some("h"))], observes_ready };
    let error = Rig::local(cloud(false), MemStore::new(), config()).await.err().unwrap();
    assert!(error.to_string().contains("--allow-ungated-configure"), "{error}");

    let allowed = Config { allow_ungated_configure: true, ..config() };
    let mut rig = Rig::local(cloud(false), MemStore::new(), allowed).await.unwrap();
    rig.configure("a", "c").await.unwrap();
    rig.reaches("a", MachineState::Configured).await;
    assert_eq!(rig.delete("a").await.unwrap_err().code(), tonic::Code::Unimplemented);
    rig.stop().await;

    // A cloud that promised to observe, and does not.
    let mut rig = Rig::local(cloud(true), MemStore::new(), config()).await.unwrap();
    rig.configure("a", "c").await.unwrap();
    let failed = rig.reaches("a", MachineState::Failed).await;
    assert!(failed.last_error.contains("cannot be observed"), "{}", failed.last_error);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn fixed_capacity_is_recycled_and_retired() {
    let store = MemStore::new();
    let both = vec![offer("a", Some("h-a")), offer("b", Some("h-b"))];
    let cloud = Described { offers: both, observes_ready: true };
    let mut rig = Rig::local(cloud, store.clone(), config()).await.unwrap();
    rig.configure("a", "c").await.unwrap();
    let failed = rig.reaches("a", MachineState::Failed).await;
    let idle = rig.reaches("a", MachineState::Idle).await;
    assert_eq!(idle.host, failed.host);
    assert!(idle.cluster.is_empty() && idle.last_error.is_empty());
    rig.stop().await;

    let cloud = Described { offers: vec![offer("a", Some("h-a"))], observes_ready: true };
    let mut rig = Rig::local(cloud, store, config()).await.unwrap();
    let left = rig.list(ListFilter::default()).await.machines;
    assert_eq!(left.iter().map(|machine| machine.id.as_str()).collect::<Vec<_>>(), ["a"]);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn provider_inv_03_a_restart_resumes_or_fails_what_it_finds() {
    let state = tempfile::tempdir().unwrap();
    let timeout = Duration::from_secs(40);
    let settings = Config { timeouts: Timeouts::all(timeout), ..config() };
    let store = MemStore::new();
    let cloud = || FaultCloud::open(4, timeout, state.path()).unwrap();
    let mut rig = Rig::local(cloud(), store.clone(), settings.clone()).await.unwrap();
    let (creating, draining, deleting, configuring) =
        ("fault-slow-0", "fault-slow-1", "fault-slow-2", "spec-000000");
    for id in [draining, deleting, configuring] {
        rig.create(id).await.unwrap();
        rig.reaches(id, MachineState::Idle).await;
    }
    rig.configure(draining, "c").await.unwrap();
    rig.reaches(draining, MachineState::Configured).await;
    let ids = [
        rig.create(creating).await.unwrap().operation_id,
        rig.drain(draining, 0).await.unwrap().operation_id,
        rig.delete(deleting).await.unwrap().operation_id,
    ];
    rig.configure(configuring, "fault-timeout").await.unwrap();
    rig.stop().await;

    let mut rig = Rig::local(cloud(), store, settings).await.unwrap().after(1000);
    let failed = rig.get(configuring).await;
    assert_eq!(failed.state(), MachineState::Failed);
    assert_eq!(failed.last_error, "configure interrupted by restart");
    assert_eq!(rig.get(creating).await.state(), MachineState::Creating);
    assert_eq!(rig.create(creating).await.unwrap().operation_id, ids[0]);
    assert_eq!(rig.drain(draining, 0).await.unwrap().operation_id, ids[1]);
    assert_eq!(rig.delete(deleting).await.unwrap().operation_id, ids[2]);
    let idle = rig.reaches(creating, MachineState::Idle).await;
    assert!(idle.host.unwrap().r#ref.contains(&ids[0]), "the same operation, one host");
    rig.reaches(draining, MachineState::Idle).await;
    rig.reaches(deleting, MachineState::Speculative).await;
    rig.stop().await;
    assert_eq!(std::fs::read_dir(state.path().join("cloud")).unwrap().count(), 3);
}

#[tokio::test]
async fn metrics_have_the_names_of_the_chapter() {
    let cloud = FaultCloud::open(1, Duration::from_secs(2), std::path::Path::new("")).unwrap();
    let mut rig = Rig::local(cloud, MemStore::new(), config()).await.unwrap();
    rig.bind("spec-000000", "c").await;
    let mut registry = prometheus_client::registry::Registry::default();
    rig.kit.register_metrics(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for name in [
        "rpc_total{method=\"Create\",code=\"OK\"}",
        "rpc_seconds_count{method=\"Create\"}",
        "transitions_total{kind=\"create\",outcome=\"done\"}",
        "transition_seconds_count{kind=\"configure\"}",
        "machines{state=\"CONFIGURED\",capacity_type=\"ON_DEMAND\"} 1",
        "fenced_total 0",
        "inflight 0",
        "store_commit_seconds_count",
        "store_errors_total 0",
        "hosts_lost_total 0",
        "cloud_calls_total{op=\"bootstrap\",outcome=\"ok\"}",
        "cloud_seconds_count{op=\"ready\"}",
        "panics_total 0",
        "readiness_gate{mode=\"observed\"} 1",
    ] {
        assert!(text.contains(&format!("bigfleet_provider_{name}")), "{name} not in:\n{text}");
    }
    rig.stop().await;
}
