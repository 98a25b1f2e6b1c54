use bigfleet_in_cluster::{
    Budget, Paced,
    events::{self, Recorder},
    memory::{Fault, Server, Verb},
};
use bigfleet_net::shutdown::Shutdown;
use k8s_openapi::api::core::v1::{Event, Node};
use kube::api::ObjectMeta;

use crate::wait::until;

fn recorder(server: &Server) -> Recorder {
    let paced = Paced::new(server.client(), Budget::new(0, 0));
    Recorder::start(paced, "bigfleet-operator", "pod-1", Shutdown::new())
}

#[tokio::test(start_paused = true)]
async fn a_note_said_twice_is_one_event_that_counts() {
    let server = Server::new();
    let recorder = recorder(&server);
    let node = Node {
        metadata: ObjectMeta {
            name: Some("node-1".into()),
            uid: Some("uid".into()),
            ..ObjectMeta::default()
        },
        ..Node::default()
    };
    for _ in 0..3 {
        recorder.normal(events::regarding(&node), "BigFleetReclaim", "cordoned");
    }
    recorder.warning(events::deployment("bigfleet-system", "bigfleet-operator"), "RollupHeld", "x");
    let held = |event: &Event| event.reason.as_deref() == Some("RollupHeld");
    until("all are written", || server.all::<Event>().iter().any(held)).await;
    let written = server.all::<Event>();
    assert_eq!(written.len(), 2);
    let reclaim = written.iter().find(|event| !held(event)).unwrap();
    assert_eq!(reclaim.count, Some(3));
    assert_eq!(reclaim.metadata.namespace.as_deref(), Some("default"));
    assert_eq!(reclaim.involved_object.kind.as_deref(), Some("Node"));
    let held = written.iter().find(|event| held(event)).unwrap();
    assert_eq!(held.metadata.namespace.as_deref(), Some("bigfleet-system"));
}

#[tokio::test(start_paused = true)]
async fn a_refused_or_vanished_event_is_written_anew() {
    let server = Server::new();
    let recorder = recorder(&server);
    let regarding = || events::deployment("bigfleet-system", "bigfleet-operator");
    server.inject(Fault::answer(500).on(Verb::Create, "events").times(1));
    recorder.normal(regarding(), "RollupHeld", "x");
    until("refused", || server.count(Verb::Create, "events") == 1).await;
    recorder.normal(regarding(), "RollupHeld", "x");
    until("written", || server.number_of::<Event>() == 1).await;
    let name = server.all::<Event>()[0].metadata.name.clone().unwrap();
    server.remove::<Event>(Some("bigfleet-system"), &name);
    recorder.normal(regarding(), "RollupHeld", "x");
    until("written anew", || server.number_of::<Event>() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_recorder() {
    let server = Server::new();
    server.away(true);
    let recorder = recorder(&server);
    for index in 0..100_000 {
        let regarding = events::deployment("bigfleet-system", "bigfleet-operator");
        recorder.warning(regarding, "RollupHeld", index.to_string());
    }
    Recorder::silent().normal(events::deployment("a", "b"), "Nothing", "heard");
}
