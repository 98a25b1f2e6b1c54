//! `grpc.health.v1.Health` and reflection, open to everybody.

use bigfleet_net::tls::Security;
use bigfleet_testkit::pki::Pki;
use tonic::{Code, transport::Channel};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

use crate::rig::{Rig, mtls, soon};

const SHARD: &str = "bigfleet.v1alpha1.Shard";

fn of(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

async fn check(client: &mut HealthClient<Channel>, service: &str) -> Result<ServingStatus, Code> {
    let answer = soon(client.check(of(service))).await;
    answer.map(|answer| answer.into_inner().status()).map_err(|status| status.code())
}

#[tokio::test]
async fn the_process_is_healthy_and_its_services_follow_readiness() {
    let pki = Pki::new().unwrap();
    let rig = Rig::start(mtls(&pki.material(&["bigfleet://shard/s"]).unwrap())).await;
    // No identity at all.
    let nobody = mtls(&pki.material(&[]).unwrap());
    let mut client = HealthClient::new(rig.channel(&nobody).await.unwrap());
    for (ready, status) in [
        (false, ServingStatus::NotServing),
        (true, ServingStatus::Serving),
        (false, ServingStatus::NotServing),
    ] {
        if ready {
            rig.readiness.set_ready()
        } else {
            rig.readiness.set_not_ready("fenced")
        }
        assert_eq!(check(&mut client, "").await, Ok(ServingStatus::Serving));
        assert_eq!(check(&mut client, SHARD).await, Ok(status));
        assert_eq!(check(&mut client, "bigfleet.v1alpha1.CapacityProvider").await, Ok(status));
    }
    assert_eq!(check(&mut client, "bigfleet.v1alpha1.Nothing").await, Err(Code::NotFound));
}

#[tokio::test]
async fn a_watch_follows_and_does_not_hold_up_a_stop() {
    let rig = Rig::start(Security::Plaintext).await;
    let mut client = HealthClient::new(rig.channel(&Security::Plaintext).await.unwrap());
    let mut watch = soon(client.watch(of(SHARD))).await.unwrap().into_inner();
    let mut unknown = soon(client.watch(of("nothing"))).await.unwrap().into_inner();
    let status = soon(unknown.message()).await.unwrap().unwrap().status();
    assert_eq!(status, ServingStatus::ServiceUnknown);
    assert_eq!(soon(watch.message()).await.unwrap().unwrap().status(), ServingStatus::NotServing);
    // Another reason is no other status.
    rig.readiness.set_not_ready("another reason");
    rig.readiness.set_ready();
    assert_eq!(soon(watch.message()).await.unwrap().unwrap().status(), ServingStatus::Serving);
    rig.shutdown.request();
    assert!(soon(watch.message()).await.unwrap().is_none());
    soon(rig.served).await.unwrap().unwrap();
}

#[tokio::test]
async fn reflection_lists_what_is_served_and_nothing_else() {
    let rig = Rig::start(Security::Plaintext).await;
    let channel = rig.channel(&Security::Plaintext).await.unwrap();
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut answers = ServerReflectionClient::new(channel)
        .server_reflection_info(tokio_stream::once(request))
        .await
        .unwrap()
        .into_inner();
    let answer = soon(answers.message()).await.unwrap().unwrap().message_response.unwrap();
    let MessageResponse::ListServicesResponse(list) = answer else { panic!("{answer:?}") };
    let mut names: Vec<_> = list.service.into_iter().map(|service| service.name).collect();
    names.sort();
    assert_eq!(names, ["bigfleet.v1alpha1.CapacityProvider", SHARD, "grpc.health.v1.Health"]);
}
