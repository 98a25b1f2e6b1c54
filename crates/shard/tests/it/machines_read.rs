//! `ListMachines` and `GetMachine` (wire chapter §5.1).

use bigfleet_model::MachineState;
use bigfleet_provider::fake::Fake;
use bigfleet_scripted::{cluster::Shape, operator::Operator};
use bigfleet_shard::Options;
use bigfleet_wire::v1alpha1::{
    GetMachineRequest, ListMachinesRequest, ListMachinesResponse, MachineState as State,
};
use tonic::Code;

use crate::{
    readers::Observe,
    rig::{Rig, offer, pods_of, slow},
};

const GI: i64 = 1 << 30;

/// Six machines, one of them at work and one broken.
async fn fleet() -> (Rig, Operator) {
    let fake = Fake::new(slow());
    for (id, kind, zone) in [
        ("a-1", "small", "z1"),
        ("a-2", "small", "z2"),
        ("b-1", "big", "z1"),
        ("b-2", "big", "z2"),
        ("b-3", "big", "z3"),
    ] {
        fake.add_speculative(id, &offer(kind, zone, 4)).expect("let in");
    }
    fake.add_idle("c-1", &offer("small", "z1", 4)).expect("let in");
    fake.fail_machine("c-1", "fan broken");
    let rig = Rig::over(Options::default(), fake, 1).await;
    let operator = rig.operator("k").await;
    let shape = Shape::new(4000, GI).zones(&["z3"]).priority(7);
    operator.roll_up(pods_of("k", 1, &shape)).await.expect("accepted");
    rig.until("served", |rig| rig.count(MachineState::Configured) == 1).await;
    rig.pass(15).await;
    (rig, operator)
}

fn ids(response: &ListMachinesResponse) -> Vec<&str> {
    let machines = response.machines.iter().filter_map(|view| view.machine.as_ref());
    machines.map(|machine| machine.id.as_str()).collect()
}

async fn list(observe: &mut Observe, request: ListMachinesRequest) -> ListMachinesResponse {
    observe.list_machines(request).await.expect("an answer").into_inner()
}

#[tokio::test(start_paused = true)]
async fn filters_narrow_the_list() {
    let (rig, _operator) = fleet().await;
    let mut observe = rig.observe().await;
    let all = || ListMachinesRequest::default();
    let host = rig.fake.machine("b-3").expect("known").host.expect("it has one").reference;
    for (request, wanted) in [
        (all(), &["a-1", "a-2", "b-1", "b-2", "b-3", "c-1"][..]),
        (ListMachinesRequest { instance_type: "big".into(), ..all() }, &["b-1", "b-2", "b-3"]),
        (ListMachinesRequest { zone: "z1".into(), ..all() }, &["a-1", "b-1", "c-1"]),
        (ListMachinesRequest { id_prefix: "a-".into(), ..all() }, &["a-1", "a-2"]),
        (ListMachinesRequest { id_prefix: "b-2".into(), ..all() }, &["b-2"]),
        (ListMachinesRequest { id_prefix: "x".into(), ..all() }, &[]),
        (ListMachinesRequest { host_ref: host, ..all() }, &["b-3"]),
        (ListMachinesRequest { with_error: true, ..all() }, &["c-1"]),
        (ListMachinesRequest { cluster_id: "k".into(), ..all() }, &["b-3"]),
        (ListMachinesRequest { cluster_id: "other".into(), ..all() }, &[]),
        (
            ListMachinesRequest {
                states: vec![State::Configured.into(), State::Failed.into()],
                ..all()
            },
            &["b-3", "c-1"],
        ),
        (
            ListMachinesRequest { zone: "z1".into(), instance_type: "small".into(), ..all() },
            &["a-1", "c-1"],
        ),
    ] {
        let response = list(&mut observe, request.clone()).await;
        assert_eq!(ids(&response), wanted, "{request:?}");
        assert_eq!(response.total as usize, wanted.len(), "{request:?}");
        assert!(response.next_page_token.is_empty() && response.cycle > 0);
        assert!(response.computed_at_unix_nanos > 0, "{response:?}");
    }
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pages_follow_each_other() {
    let (rig, _operator) = fleet().await;
    let mut observe = rig.observe().await;
    for request in [
        ListMachinesRequest { page_size: 2, ..Default::default() },
        ListMachinesRequest { page_size: 1, zone: "z1".into(), ..Default::default() },
    ] {
        let whole = ListMachinesRequest { page_size: 0, ..request.clone() };
        let whole = list(&mut observe, whole).await;
        let (mut seen, mut token) = (Vec::new(), Vec::new());
        loop {
            let page = ListMachinesRequest { page_token: token, ..request.clone() };
            let response = list(&mut observe, page).await;
            assert_eq!(response.total, whole.total, "counted once");
            assert!(ids(&response).len() <= request.page_size as usize);
            seen.extend(ids(&response).into_iter().map(str::to_owned));
            token = response.next_page_token;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(seen, ids(&whole), "{request:?}");
    }
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_wrong_question_says_what_is_wrong() {
    let (rig, _operator) = fleet().await;
    let mut observe = rig.observe().await;
    for (request, field) in [
        (ListMachinesRequest { states: vec![1, 99], ..Default::default() }, "states[1]"),
        (ListMachinesRequest { states: vec![0], ..Default::default() }, "states[0]"),
        (ListMachinesRequest { page_token: vec![1], ..Default::default() }, "page_token"),
    ] {
        let refused = observe.list_machines(request).await.expect_err("refused");
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().starts_with(field), "{refused}");
    }
    let unknown = GetMachineRequest { machine_id: "nobody".into() };
    let refused = observe.get_machine(unknown).await.expect_err("refused");
    assert_eq!(refused.code(), Code::NotFound);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_shows_its_moves_with_their_causes() {
    let (rig, operator) = fleet().await;
    let mut observe = rig.observe().await;
    let request = GetMachineRequest { machine_id: "b-3".into() };
    let answer = observe.get_machine(request.clone()).await.expect("known").into_inner();
    let moves = answer.transitions.iter();
    let moves: Vec<_> = moves.map(|one| (one.from(), one.to(), one.cause.as_str())).collect();
    assert_eq!(
        moves,
        [
            (State::Speculative, State::Creating, "decision"),
            (State::Creating, State::Idle, "reconcile"),
            (State::Idle, State::Configuring, "decision"),
            (State::Configuring, State::Configured, "reconcile"),
        ],
    );
    for one in &answer.transitions {
        assert!(one.time_unix_nanos > 0);
        assert_eq!(one.of_sequence > 0, one.cause == "decision", "{one:?}");
    }
    assert_eq!(answer.transitions[3].cluster_id, "k");
    let view = answer.view.expect("a view");
    let machine = view.machine.expect("a machine");
    assert_eq!((machine.state(), machine.cluster.as_str()), (State::Configured, "k"));
    assert!(machine.shard_metadata.is_empty());
    assert_eq!(view.since_unix_nanos, answer.transitions[3].time_unix_nanos);
    assert_eq!(view.assigned_priority, 7);
    assert!(view.assigned_fingerprint.contains("z3"));
    assert_eq!(view.claimed_by_fingerprint, view.assigned_fingerprint);
    assert!(view.in_flight.is_empty());

    // While it is drained, that is told, too.
    operator.on_reclaim(|_| bigfleet_scripted::operator::Reclaim::NoFinal);
    operator.roll_up(vec![]).await.expect("accepted");
    rig.pass(30).await;
    let view = observe.get_machine(request).await.expect("known").into_inner().view;
    let view = view.expect("a view");
    assert_eq!(view.in_flight, "Reclaim");
    assert!(view.claimed_by_fingerprint.is_empty());

    let request = GetMachineRequest { machine_id: "c-1".into() };
    let failed = observe.get_machine(request).await.expect("known").into_inner().view;
    let failed = failed.and_then(|view| view.machine).expect("a machine");
    assert_eq!(failed.last_error, "fan broken");
    rig.stop().await;
}
