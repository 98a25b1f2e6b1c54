//! Providers: the part of conformance that reads only.

use std::collections::BTreeSet;

use bigfleet_model::gate::inventory;
use bigfleet_net::{grpc::connect_lazy, message_limits, rule::Rule};
use bigfleet_wire::v1alpha1::{
    ListFilter, MachineRef, capacity_provider_client::CapacityProviderClient,
};
use tokio::time::timeout;
use tonic::{Code, Request, Response, Status, transport::Channel};

use super::{finding::Findings, replicas::unreachable};
use crate::fleet::Fleet;

/// Records that are looked at.
const RECORDS: i32 = 1000;
/// A name that no provider gives.
const UNKNOWN: &str = "bigfleetctl-doctor/no-such-machine";
const FIX: &str = "mend the provider; run `bigfleet-conformance` against a copy of it";

pub(super) async fn check(fleet: &mut Fleet, findings: &mut Findings) {
    let registered = fleet.coordinator.providers().await.unwrap_or_default();
    let reports = fleet.coordinator.reports("").await.unwrap_or_default();
    let reported = reports.into_iter().filter_map(|report| report.summary);
    let addresses: BTreeSet<String> = registered
        .into_iter()
        .map(|provider| provider.address)
        .chain(reported.map(|summary| summary.provider_address))
        .filter(|address| !address.is_empty())
        .collect();
    if addresses.is_empty() {
        findings.skipped(
            "provider",
            "registry",
            "no provider is known",
            "register them with `upsert-provider`; shards report theirs by themselves",
        );
    }
    for address in &addresses {
        if let Err(status) = one(fleet, address, findings).await {
            let (detail, fix) = unreachable(status.code(), status.message(), "provider");
            findings.fault("provider", address, detail, fix);
        }
    }
}

async fn one(fleet: &Fleet, address: &str, findings: &mut Findings) -> Result<(), Status> {
    let dialled = connect_lazy(address, &fleet.security, Rule::any_certificate());
    let channel = dialled.map_err(|error| Status::unavailable(error.to_string()))?;
    let rpc = message_limits!(CapacityProviderClient::new(channel));
    let mut broken = Vec::new();
    for (id, code) in [("", Code::InvalidArgument), (UNKNOWN, Code::NotFound)] {
        let mut rpc = rpc.clone();
        let called = rpc.get(Request::new(MachineRef { id: id.to_owned() }));
        match answered(fleet, called).await {
            Err(status) if status.code() == code => {}
            Err(status) if status.code() == Code::Unavailable => return Err(status),
            other => {
                let got = other.map_or_else(|status| status.code(), |_| Code::Ok);
                broken.push(format!("Get of {id:?} answers {got:?}, not {code:?}"));
            }
        }
    }
    let listed =
        records(fleet, &rpc, ListFilter { max_results: RECORDS, ..Default::default() }).await?;
    for machine in &listed {
        let id = machine.id.clone();
        if let Err(rejected) = inventory::machine(machine.clone()) {
            broken.push(format!("machine {id:?}: {rejected}"));
        }
    }
    let cursor = ListFilter {
        max_results: 1,
        since_revision: b"no cursor of anybody".to_vec(),
        ..Default::default()
    };
    if let Err(status) = records(fleet, &rpc, cursor).await {
        broken.push(format!("List with a foreign cursor fails: {}", status.message()));
    }
    if broken.is_empty() {
        let text = format!("reads are as the contract says, {} records are sound", listed.len());
        findings.ok("provider", address, text);
    }
    for detail in broken.into_iter().take(5) {
        findings.fault("provider", address, detail, FIX);
    }
    Ok(())
}

async fn records(
    fleet: &Fleet,
    rpc: &CapacityProviderClient<Channel>,
    filter: ListFilter,
) -> Result<Vec<bigfleet_wire::v1alpha1::Machine>, Status> {
    let mut rpc = rpc.clone();
    Ok(answered(fleet, rpc.list(Request::new(filter))).await?.machines)
}

async fn answered<R>(
    fleet: &Fleet,
    called: impl Future<Output = Result<Response<R>, Status>>,
) -> Result<R, Status> {
    let late = |_| Err(Status::unavailable("no answer in time"));
    timeout(fleet.timeout, called).await.unwrap_or_else(late).map(Response::into_inner)
}
