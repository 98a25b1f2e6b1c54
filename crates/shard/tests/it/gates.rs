//! Who may read, over mTLS: every RPC and every identity (wire chapter §1, §5).

use std::sync::Arc;

use bigfleet_net::tls::{Security, Tls};
use bigfleet_provider::fake::Fake;
use bigfleet_shard::Options;
use bigfleet_testkit::pki::{Material, Pki};
use bigfleet_wire::v1alpha1::{
    ExplainNeedRequest, GetMachineRequest, InspectNeedsRequest, ListMachinesRequest,
    ListSessionsRequest, WatchDecisionsRequest, WatchSummaryRequest, WhatIfRequest,
    shard_observe_client::ShardObserveClient, shard_read_client::ShardReadClient,
};
use tonic::Code;

use crate::rig::{Rig, slow};

fn mtls(material: &Material) -> Security {
    let tls = Tls::load(&material.cert(), &material.key(), &material.ca()).expect("good files");
    Security::Mtls(Arc::new(tls))
}

/// What each RPC answers to a caller with this certificate.
async fn answers(rig: &Rig, security: &Security) -> Vec<(&'static str, Code)> {
    let channel = rig.channel(security).await;
    let mut read = ShardReadClient::new(channel.clone());
    let mut observe = ShardObserveClient::new(channel);
    let code = |refused: Option<tonic::Status>| refused.map_or(Code::Ok, |status| status.code());
    vec![
        ("InspectNeeds", code(read.inspect_needs(InspectNeedsRequest::default()).await.err())),
        ("WatchSummary", code(observe.watch_summary(WatchSummaryRequest {}).await.err())),
        (
            "WatchDecisions",
            code(observe.watch_decisions(WatchDecisionsRequest::default()).await.err()),
        ),
        ("ListMachines", code(observe.list_machines(ListMachinesRequest::default()).await.err())),
        ("GetMachine", code(observe.get_machine(GetMachineRequest::default()).await.err())),
        ("ListSessions", code(observe.list_sessions(ListSessionsRequest::default()).await.err())),
        ("ExplainNeed", code(observe.explain_need(ExplainNeedRequest::default()).await.err())),
        ("WhatIf", code(observe.what_if(WhatIfRequest::default()).await.err())),
    ]
}

#[tokio::test(start_paused = true)]
async fn only_readers_and_admins_read() {
    let pki = Pki::new().expect("a CA");
    let material = |identities: &[&str]| pki.material(identities).expect("files");
    let server = material(&["bigfleet://shard/shard-0"]);
    let rig = Rig::secured(Options::default(), Fake::new(slow()), mtls(&server)).await;
    rig.pass(15).await;
    for identity in ["bigfleet://readonly", "bigfleet://admin"] {
        for (rpc, code) in answers(&rig, &mtls(&material(&[identity]))).await {
            let wanted = match rpc {
                "GetMachine" | "ExplainNeed" => Code::NotFound,
                "WhatIf" => Code::InvalidArgument,
                _ => Code::Ok,
            };
            assert_eq!(code, wanted, "{rpc} as {identity}");
        }
    }
    assert_eq!(rig.metrics.session_identity_rejected.get(), 0);
    let others: [&[&str]; 7] = [
        &["bigfleet://cluster/c"],
        &["bigfleet://shard/shard-0"],
        &["bigfleet://coordinator/n"],
        &["bigfleet://provider/p"],
        &["bigfleet://reader"],
        &[],
        &["bigfleet://admin", "bigfleet://readonly"],
    ];
    let mut refusals = 0;
    for identities in others {
        for (rpc, code) in answers(&rig, &mtls(&material(identities))).await {
            assert_eq!(code, Code::PermissionDenied, "{rpc} as {identities:?}");
            refusals += 1;
        }
    }
    assert_eq!(rig.metrics.session_identity_rejected.get(), refusals, "each is a security event");
    rig.stop().await;
}
