//! The scripted coordinator, asked by a plain client.

use std::time::Duration;

use bigfleet_net::{
    grpc,
    leader::{LEADER_ADDR, LEADER_ID},
    message_limits,
    rule::Rule,
    tls::Security,
};
use bigfleet_scripted::{
    Error,
    coordinator::{Answer, Coordinator},
};
use bigfleet_testkit::pki::Pki;
use bigfleet_wire::v1alpha1::{
    CoordinatorInstruction, InstructAck, ListShardsRequest, ListShardsResponse, ReportAck,
    ShardRegistryEntry, ShardReport, coordinator_client::CoordinatorClient, instruct_ack::Outcome,
};
use tokio::net::TcpListener;
use tonic::{Code, Request, transport::Channel};

use crate::fake_shard::{PATIENCE, mtls};

async fn client(coordinator: &Coordinator, security: &Security) -> CoordinatorClient<Channel> {
    let channel = grpc::connect(coordinator.addr(), security, Rule::coordinators()).await.unwrap();
    message_limits!(CoordinatorClient::new(channel))
}

fn report(cycle: i64) -> ShardReport {
    ShardReport { shard_id: "s".to_owned(), cycle, ..Default::default() }
}

fn instruction(id: &str, sequence_number: i64) -> CoordinatorInstruction {
    CoordinatorInstruction { instruction_id: id.to_owned(), sequence_number, ..Default::default() }
}

fn acked(cycle: i64, id: &str, outcome: Outcome) -> ShardReport {
    let ack = InstructAck {
        instruction_id: id.to_owned(),
        outcome: outcome.into(),
        ..Default::default()
    };
    ShardReport { instruction_acks: vec![ack], ..report(cycle) }
}

#[tokio::test]
async fn answers_in_the_order_of_its_script_then_as_standing() {
    let coordinator = Coordinator::start(&Security::Plaintext).await.unwrap();
    let mut client = client(&coordinator, &Security::Plaintext).await;
    coordinator.set_term(7);
    coordinator.set_fleet("fleet/1");
    coordinator
        .next(Answer::Ack(Box::new(ReportAck { coordinator_term: 3, ..Default::default() })));
    let hint = Some(("node-2".to_owned(), "10.0.0.2:7781".to_owned()));
    coordinator.next(Answer::NotLeader { leader: hint });
    coordinator.next(Answer::NotLeader { leader: None });
    coordinator.next(Answer::Refuse(Code::Aborted, "stale shard epoch".to_owned()));
    coordinator.next(Answer::Late(Duration::from_millis(1), Box::new(Answer::Report)));

    let ack = client.report_shard(report(1)).await.unwrap().into_inner();
    assert_eq!((ack.coordinator_term, ack.acknowledged), (3, false));
    let hinted = client.report_shard(report(2)).await.unwrap_err();
    assert_eq!(
        (hinted.code(), hinted.message()),
        (Code::FailedPrecondition, "coordinator: not leader")
    );
    assert_eq!(hinted.metadata().get(LEADER_ID).unwrap(), "node-2");
    assert_eq!(hinted.metadata().get(LEADER_ADDR).unwrap(), "10.0.0.2:7781");
    let lost = client.report_shard(report(3)).await.unwrap_err();
    assert_eq!((lost.code(), lost.metadata().get(LEADER_ID)), (Code::FailedPrecondition, None));
    let stale = client.report_shard(report(4)).await.unwrap_err();
    assert_eq!((stale.code(), stale.message()), (Code::Aborted, "stale shard epoch"));
    for cycle in [5, 6] {
        let ack = client.report_shard(report(cycle)).await.unwrap().into_inner();
        assert_eq!(
            (ack.coordinator_term, ack.fleet_id.as_str(), ack.acknowledged),
            (7, "fleet/1", true)
        );
    }
    let cycles: Vec<i64> = coordinator.reports().iter().map(|report| report.cycle).collect();
    assert_eq!(cycles, [1, 2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn redelivers_instructions_until_they_are_settled() {
    let coordinator = Coordinator::start(&Security::Plaintext).await.unwrap();
    let mut client = client(&coordinator, &Security::Plaintext).await;
    coordinator.instruct(instruction("second", 2));
    coordinator.instruct(instruction("first", 1));
    let mut told = async |report| -> Vec<String> {
        let ack = client.report_shard(report).await.unwrap().into_inner();
        ack.instructions.into_iter().map(|one| one.instruction_id).collect()
    };
    assert_eq!(told(report(1)).await, ["first", "second"]);
    assert_eq!(told(acked(2, "first", Outcome::Failed)).await, ["first", "second"]);
    assert_eq!(told(acked(3, "first", Outcome::RejectedStale)).await, ["second"]);
    assert_eq!(told(acked(4, "second", Outcome::Accepted)).await, Vec::<String>::new());
    assert!(coordinator.pending().is_empty());
}

#[tokio::test]
async fn a_report_that_is_never_answered_is_heard_all_the_same() {
    let coordinator = Coordinator::start(&Security::Plaintext).await.unwrap();
    let mut client = client(&coordinator, &Security::Plaintext).await;
    coordinator.always(Answer::Never);
    let asking = tokio::spawn(async move {
        let mut request = Request::new(report(1));
        request.set_timeout(Duration::from_millis(200));
        client.report_shard(request).await
    });
    assert_eq!(coordinator.next_report(PATIENCE).await.unwrap().cycle, 1);
    let status = asking.await.unwrap().unwrap_err();
    assert!(matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled), "{status}");
    let never = coordinator.wait_for("two", |reports| reports.len() == 2, Duration::from_millis(1));
    assert!(matches!(never.await, Err(Error::Late { .. })));
}

#[tokio::test]
async fn says_to_other_calls_what_it_was_told() {
    let coordinator = Coordinator::start(&Security::Plaintext).await.unwrap();
    let mut client = client(&coordinator, &Security::Plaintext).await;
    let refused = client.list_shards(ListShardsRequest {}).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
    coordinator
        .reply(ListShardsResponse { shards: vec![ShardRegistryEntry::default()], leading_ms: 0 });
    let list = client.list_shards(ListShardsRequest {}).await.unwrap().into_inner();
    assert_eq!(list.shards.len(), 1);
    coordinator.refuse::<ListShardsResponse>(Code::Unavailable, "no quorum");
    let refused = client.list_shards(ListShardsRequest {}).await.unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Code::Unavailable, "no quorum"));
    assert_eq!(coordinator.asked(), vec!["ListShardsRequest"; 3]);
}

#[tokio::test]
async fn takes_reports_only_from_the_shard_they_name() {
    let pki = Pki::new().unwrap();
    let own = pki.material(&["bigfleet://coordinator/n"]).unwrap();
    let coordinator = Coordinator::start(&mtls(&own)).await.unwrap();
    let shard = pki.material(&["bigfleet://shard/s"]).unwrap();
    client(&coordinator, &mtls(&shard)).await.report_shard(report(1)).await.unwrap();
    let other = pki.material(&["bigfleet://shard/t"]).unwrap();
    let refused = client(&coordinator, &mtls(&other)).await.report_shard(report(2)).await;
    assert_eq!(refused.unwrap_err().code(), Code::PermissionDenied);
    assert_eq!(coordinator.reports().len(), 1);
}

#[tokio::test]
async fn stops_and_comes_back_where_it_was() {
    let coordinator = Coordinator::start(&Security::Plaintext).await.unwrap();
    let addr = coordinator.addr().to_owned();
    let mut client = client(&coordinator, &Security::Plaintext).await;
    client.report_shard(report(1)).await.unwrap();
    coordinator.stop().await.unwrap();
    assert!(client.report_shard(report(2)).await.is_err());
    let listener = TcpListener::bind(&addr).await.unwrap();
    let coordinator = Coordinator::start_on(listener, &Security::Plaintext).unwrap();
    client.report_shard(report(3)).await.unwrap();
    assert_eq!(coordinator.reports().len(), 1);
}
