//! Client ↔ adapter ↔ fake in plaintext.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bigfleet_model::{Machine, MachineId, MachineState::*};
use bigfleet_net::tls::Security;
use bigfleet_provider::{
    Ack, Attempt, Client, Configure, Error, FencedProvider, Identity, ListFilter, MachineList,
    Provider, Stamped,
    fake::{Fake, FakeOptions, LoggedCall, Method, Script},
    protocol::{Kind, StateSet, Token},
};
use bigfleet_wire::v1alpha1 as wire;
use tokio::{net::TcpListener, time::Instant};
use tonic::Code;

use crate::rig::{attempt, fake, for_cluster, mutate, serve, soon, state};

async fn pair(options: FakeOptions) -> (Fake, Client) {
    let fake = fake(options);
    let addr = serve(fake.clone(), Security::Plaintext).await;
    (fake, Client::dial(&addr.to_string(), &Security::Plaintext, None).unwrap())
}

#[tokio::test]
async fn a_life_over_the_wire_is_the_life_in_the_process() {
    let (fake, client) = pair(FakeOptions::default()).await;
    let provider = Stamped::new(client, Identity::new("s", 1));
    let id = "spec-0".into();
    let ack = soon(provider.create(&id, None)).await.unwrap();
    assert_eq!(ack.machine.unwrap(), fake.machine("spec-0").unwrap());
    fake.complete_all_staged();
    let ack = soon(provider.configure(&id, for_cluster("c"), None)).await.unwrap();
    assert_eq!(ack.operation_id, "op-2");
    let machine = ack.machine.unwrap();
    assert_eq!((machine.state, machine.cluster.as_deref()), (Configuring, Some("c")));
    assert_eq!(machine.shard_metadata, for_cluster("c").metadata, "byte for byte");
    fake.complete_all_staged();
    assert_eq!(soon(provider.get(&id, None)).await.unwrap(), fake.machine("spec-0").unwrap());
    soon(provider.drain(&id, Duration::from_millis(2900), None)).await.unwrap();
    fake.complete_all_staged();
    soon(provider.delete(&id, None)).await.unwrap();
    fake.complete_all_staged();
    assert_eq!(fake.machine("spec-0").unwrap().state, Speculative);

    let near = FencedProvider::list(&fake, &ListFilter::default(), None).await.unwrap();
    let far = soon(provider.list(&ListFilter::default(), None)).await.unwrap();
    assert_eq!(far, near);
    let nothing = ListFilter { states: Some(StateSet::default()), ..ListFilter::default() };
    assert!(soon(provider.list(&nothing, None)).await.unwrap().machines.is_empty());
    let since_revision = far.revision;
    let delta = ListFilter { since_revision, ..ListFilter::default() };
    assert!(soon(provider.list(&delta, None)).await.unwrap().machines.is_empty());
}

/// R6 of the shard chapter; reads carry none, and callers cannot make one.
#[tokio::test]
async fn every_attempt_of_a_mutation_has_a_fresh_token_and_no_read_has_any() {
    let (fake, client) = pair(FakeOptions::instant()).await;
    let identity = Identity::new("shard-7", 42);
    let providers =
        [Stamped::new(client.clone(), identity.clone()), Stamped::new(client, identity)];
    for provider in &providers {
        for _ in 0..3 {
            soon(provider.create(&"spec-0".into(), None)).await.unwrap();
        }
        soon(provider.create(&"nobody".into(), None)).await.unwrap_err();
        soon(provider.get(&"spec-0".into(), None)).await.unwrap();
        soon(provider.list(&ListFilter::default(), None)).await.unwrap();
    }
    let (mutations, reads): (Vec<LoggedCall>, Vec<_>) =
        fake.calls().into_iter().partition(|call| matches!(call.method, Method::Mutate(_)));
    assert_eq!((mutations.len(), reads.len()), (8, 4));
    assert!(reads.iter().all(|call| call.token.is_none()));
    let tokens: Vec<Token> = mutations.into_iter().filter_map(|call| call.token).collect();
    assert_eq!(tokens, (1..=8).map(|n| Token::new("shard-7", 42, n)).collect::<Vec<_>>());
}

#[tokio::test]
async fn errors_keep_code_and_text() {
    let options = FakeOptions { support_delete: false, ..FakeOptions::default() };
    let ((fake, client), twin) = (pair(options).await, fake(options));
    for one in [&fake, &twin] {
        mutate(one, &attempt("s", 5, 5), Kind::Create, "spec-0").await.unwrap();
    }
    for (kind, id, at) in [
        (Kind::Create, "spec-0", attempt("s", 5, 5)),
        (Kind::Create, "nobody", attempt("s", 5, 5)),
        (Kind::Delete, "idle-0", attempt("s", 5, 5)),
        (Kind::Drain, "idle-0", attempt("s", 5, 5)),
        (Kind::Create, "", attempt("s", 5, 6)),
        (Kind::Create, "spec-1", attempt("", 5, 6)),
    ] {
        let far = soon(mutate(&client, &at, kind, id)).await.unwrap_err();
        // The same call in the process, to one with the same past.
        let near = mutate(&twin, &at, kind, id).await.unwrap_err();
        assert_eq!(far, near, "{kind} {id:?}");
        assert!(!far.text().is_empty());
    }
    let text = "from the backend: quota";
    for error in [
        Error::Internal(text.into()),
        Error::Exhausted(text.into()),
        Error::Unavailable(text.into()),
        Error::AlreadyExists(text.into()),
        Error::PermissionDenied(text.into()),
    ] {
        fake.fail_next("spec-2", Idle, error.clone());
        let call = attempt("planned", 1, fake.calls().len() as i64);
        assert_eq!(soon(mutate(&client, &call, Kind::Create, "spec-2")).await, Err(error));
    }
    let strange = Error::Other { code: Code::DataLoss, text: text.into() };
    fake.fail_next("spec-2", Idle, strange);
    let error = soon(mutate(&client, &attempt("x", 1, 1), Kind::Create, "spec-2")).await;
    assert_eq!(error, Err(Error::Internal(format!("DataLoss: {text}"))), "unmapped is INTERNAL");
}

/// What domain types cannot say, said by a foreign client.
#[tokio::test]
async fn bad_arguments_of_foreign_clients_are_refused_one_by_one() {
    let fake = fake(FakeOptions::instant());
    let addr = serve(fake.clone(), Security::Plaintext).await;
    let channel = tonic::transport::Endpoint::from_shared(format!("http://{addr}")).unwrap();
    let channel = channel.connect_lazy();
    let mut rpc = wire::capacity_provider_client::CapacityProviderClient::new(channel);
    let (id, conf) = ("idle-0".to_owned(), "conf-s0-c0-i0".to_owned());
    let drain = wire::DrainRequest {
        machine_id: conf.clone(),
        grace_period_seconds: -5,
        ..Default::default()
    };
    assert_eq!(soon(rpc.drain(drain)).await.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(fake.machine(&conf).unwrap().state, Configured);
    let configure = |cluster: &str, blob: usize, keys: usize| wire::ConfigureRequest {
        machine_id: id.clone(),
        cluster_id: cluster.into(),
        bootstrap_blob: vec![0; blob],
        shard_metadata: (0..keys).map(|key| (key.to_string(), String::new())).collect(),
        ..Default::default()
    };
    for (bad, field) in [
        (configure("", 1, 1), "cluster_id"),
        (configure("c", (4 << 20) + 1, 1), "bootstrap_blob"),
        (configure("c", 1, 257), "shard_metadata"),
    ] {
        let status = soon(rpc.configure(bad)).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().starts_with(field), "{status}");
    }
    assert_eq!(fake.machine(&id).unwrap().state, Idle);
    let get = soon(rpc.get(wire::MachineRef::default())).await;
    assert_eq!(get.unwrap_err().code(), Code::InvalidArgument);
    let list = |max_results, states: &[i32]| wire::ListFilter {
        max_results,
        states: states.to_vec(),
        since_revision: vec![0xff; 4096],
    };
    assert_eq!(soon(rpc.list(list(-1, &[]))).await.unwrap_err().code(), Code::InvalidArgument);
    let count = |list: wire::MachineList| list.machines.len();
    assert_eq!(count(soon(rpc.list(list(3, &[]))).await.unwrap().into_inner()), 3);
    assert_eq!(count(soon(rpc.list(list(0, &[99]))).await.unwrap().into_inner()), 0);
    assert_eq!(count(soon(rpc.list(list(0, &[99, 3]))).await.unwrap().into_inner()), 10);
    // A blob at the cap fits the frame.
    soon(rpc.configure(configure("c", 4 << 20, 256))).await.unwrap();
}

#[tokio::test]
async fn a_call_past_its_deadline_is_not_accepted_and_its_caller_knows_soon() {
    let (fake, client) = pair(FakeOptions::default()).await;
    let deadline = Some(Instant::now() + Duration::from_millis(50));
    let slow = Method::Mutate(Kind::Create);
    // It arrives in time and is decided too late.
    fake.script(Script { delay: Duration::from_secs(3600), ..Script::next(slow) });
    let late = Attempt { deadline, ..attempt("s", 1, 1) };
    let error = soon(mutate(&client, &late, Kind::Create, "spec-0")).await.unwrap_err();
    assert!(matches!(error, Error::DeadlineExceeded(_)), "{error:?}");
    let over = Attempt { deadline: Some(Instant::now()), ..attempt("s", 1, 2) };
    let error = soon(mutate(&client, &over, Kind::Create, "spec-0")).await.unwrap_err();
    assert!(error.is_unanswered(), "{error:?}");
    assert_eq!(fake.machine("spec-0").unwrap().state, Speculative);
    assert!(fake.calls().is_empty(), "never decided");
}

/// Knows no machine, and remembers how much time each call came with.
#[derive(Clone, Default)]
struct Clockwatcher(Arc<Mutex<Vec<Option<Duration>>>>);

impl Clockwatcher {
    fn note<T>(&self, deadline: Option<Instant>) -> Result<T, Error> {
        let left = deadline.map(|deadline| deadline - Instant::now());
        self.0.lock().unwrap().push(left);
        Err(Error::NotFound("nothing here".into()))
    }
}

impl FencedProvider for Clockwatcher {
    async fn create(&self, attempt: &Attempt, _: &MachineId) -> Result<Ack, Error> {
        self.note(attempt.deadline)
    }

    async fn configure(&self, at: &Attempt, _: &MachineId, _: Configure) -> Result<Ack, Error> {
        self.note(at.deadline)
    }

    async fn drain(&self, at: &Attempt, _: &MachineId, _: Duration) -> Result<Ack, Error> {
        self.note(at.deadline)
    }

    async fn delete(&self, attempt: &Attempt, _: &MachineId) -> Result<Ack, Error> {
        self.note(attempt.deadline)
    }

    async fn get(&self, _: &MachineId, deadline: Option<Instant>) -> Result<Machine, Error> {
        self.note(deadline)
    }

    async fn list(&self, _: &ListFilter, at: Option<Instant>) -> Result<MachineList, Error> {
        self.note(at)
    }
}

#[tokio::test]
async fn a_deadline_travels_and_without_one_each_call_has_its_own() {
    let watcher = Clockwatcher::default();
    let addr = serve(watcher.clone(), Security::Plaintext).await;
    let client = Client::dial(&addr.to_string(), &Security::Plaintext, None).unwrap();
    for deadline in [None, Some(Instant::now() + Duration::from_secs(1000))] {
        let at = Attempt { deadline, ..attempt("s", 1, 1) };
        for kind in Kind::ALL {
            soon(mutate(&client, &at, kind, "m")).await.unwrap_err();
        }
        soon(client.get(&"m".into(), deadline)).await.unwrap_err();
        soon(client.list(&ListFilter::default(), deadline)).await.unwrap_err();
    }
    let left = watcher.0.lock().unwrap().clone();
    let expected = [30, 30, 30, 30, 30, 120, 1000, 1000, 1000, 1000, 1000, 1000];
    assert_eq!(left.len(), expected.len());
    for (left, expected) in left.into_iter().map(Option::unwrap).zip(expected) {
        // The rest of the way took the rest of the time.
        let expected = Duration::from_secs(expected);
        assert!(left <= expected && left * 2 > expected, "{left:?} of {expected:?}");
    }
}

#[tokio::test]
async fn nobody_there_is_unavailable_and_dialling_is_lazy() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    drop(listener);
    let client = Client::dial(&addr, &Security::Plaintext, None).unwrap();
    let error = soon(client.get(&"m".into(), None)).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    let fake = fake(FakeOptions::default());
    let listener = TcpListener::bind(&addr).await.unwrap();
    let server = bigfleet_net::grpc::GrpcServer::new(
        Security::Plaintext,
        bigfleet_net::readiness::Readiness::new("starting"),
    )
    .add_service(bigfleet_provider::Adapter::new(fake).into_service());
    tokio::spawn(server.serve(listener, bigfleet_net::shutdown::Shutdown::new()));
    let deadline = Instant::now() + Duration::from_secs(30);
    while client.get(&"idle-0".into(), None).await.is_err() {
        assert!(Instant::now() < deadline, "it connects again by itself");
    }
}

/// Each bad record is refused alone (wire chapter §8.2).
#[tokio::test]
async fn the_gate_refuses_records_not_answers() {
    let fake = fake(FakeOptions::default());
    fake.refresh("idle-3", |class| class.price_per_hour = f64::NAN);
    fake.refresh("spec-3", |class| class.interruption_probability = 1.5);
    let addr = serve(fake, Security::Plaintext).await;
    let client = Client::dial(&addr.to_string(), &Security::Plaintext, None).unwrap();
    let list = soon(client.list(&ListFilter::default(), None)).await.unwrap();
    assert_eq!((list.machines.len(), list.refused.len()), (20, 2));
    let reasons: Vec<_> =
        list.refused.iter().map(|one| (&*one.id, one.why.reason.label())).collect();
    assert_eq!(reasons, [("idle-3", "price"), ("spec-3", "interruption_probability")]);
    let ack = soon(mutate(&client, &attempt("s", 1, 1), Kind::Create, "spec-3")).await.unwrap();
    assert_eq!(ack.operation_id, "op-1", "accepted all the same");
    assert_eq!(ack.machine.unwrap_err().id, "spec-3");
    assert!(soon(client.get(&"idle-3".into(), None)).await.is_err());
    let sound = soon(mutate(&client, &attempt("s", 1, 1), Kind::Create, "spec-4")).await.unwrap();
    assert_eq!(state(&sound), Creating);
}
