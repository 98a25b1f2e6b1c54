//! What is on its way between shards: `list-transfers`, `list-releasing`.

use bigfleet_wire::v1alpha1::{
    DomainAssignment, ListTransfersRequest, ListTransfersResponse, ReleasingEntry, TransferEntry,
};
use serde::Serialize;

use crate::{
    Error,
    console::Console,
    coordinator::Rpc,
    fleet::Fleet,
    output::{self, Row},
    text, when,
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TransferRow {
    transfer: String,
    kind: String,
    phase: String,
    from: String,
    to: String,
    /// Asked for while it is released, moved afterwards.
    machines: usize,
    instance_type: String,
    zone: String,
    home: Option<String>,
    machine_ids: Vec<String>,
    age_ms: i64,
    overdue_ms: i64,
}

impl From<TransferEntry> for TransferRow {
    fn from(entry: TransferEntry) -> Self {
        let selector = entry.selector.unwrap_or_default();
        let machines = match entry.machine_ids.len() {
            0 => usize::try_from(selector.count).unwrap_or_default(),
            moved => moved,
        };
        let home =
            |domain: DomainAssignment| format!("{}={}", domain.topology_key, domain.topology_value);
        Self {
            transfer: entry.transfer_id,
            kind: entry.kind,
            phase: entry.phase,
            from: entry.from_shard_id,
            to: entry.to_shard_id,
            machines,
            instance_type: selector.instance_type,
            zone: selector.zone,
            home: entry.home.map(home),
            machine_ids: entry.machine_ids,
            age_ms: entry.age_ms,
            overdue_ms: entry.overdue_ms,
        }
    }
}

impl Row for TransferRow {
    const HEAD: &'static [&'static str] =
        &["TRANSFER", "KIND", "PHASE", "FROM", "TO", "MACHINES", "TYPE", "ZONE", "AGE", "OVERDUE"];
    const WIDE: &'static [&'static str] = &["HOME", "IDS"];

    fn cells(&self) -> Vec<String> {
        let overdue = if self.overdue_ms > 0 { age(self.overdue_ms) } else { "—".to_owned() };
        vec![
            self.transfer.clone(),
            self.kind.clone(),
            self.phase.clone(),
            self.from.clone(),
            self.to.clone(),
            self.machines.to_string(),
            text::or_dash(&self.instance_type),
            text::or_dash(&self.zone),
            age(self.age_ms),
            overdue,
        ]
    }

    fn wide(&self) -> Vec<String> {
        let home = self.home.as_deref().unwrap_or_default();
        vec![text::or_dash(home), text::or_dash(&self.machine_ids.join(","))]
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReleasingRow {
    key: String,
    from: String,
    to: String,
    age_ms: i64,
}

impl From<ReleasingEntry> for ReleasingRow {
    fn from(entry: ReleasingEntry) -> Self {
        let key = match entry.cluster_id.as_str() {
            "" => format!("domain {}={}", entry.topology_key, entry.topology_value),
            cluster => format!("cluster {cluster}"),
        };
        Self { key, from: entry.from_shard_id, to: entry.to_shard_id, age_ms: entry.age_ms }
    }
}

impl Row for ReleasingRow {
    const HEAD: &'static [&'static str] = &["KEY", "HELD BY", "GOES TO", "AGE"];

    fn cells(&self) -> Vec<String> {
        vec![self.key.clone(), self.from.clone(), text::or_dash(&self.to), age(self.age_ms)]
    }
}

fn age(millis: i64) -> String {
    when::span(millis.saturating_mul(when::SECOND / 1_000))
}

async fn ask(fleet: &mut Fleet, what: &str) -> Result<ListTransfersResponse, Error> {
    let call = async |mut rpc: Rpc, request| rpc.list_transfers(request).await;
    fleet.coordinator.ask(what, ListTransfersRequest {}, call).await
}

pub(super) async fn list(fleet: &mut Fleet, console: &mut Console) -> Result<(), Error> {
    let found = ask(fleet, "list-transfers").await?.transfers;
    let rows: Vec<TransferRow> = found.into_iter().map(Into::into).collect();
    output::list(console, fleet.format, &rows)
}

pub(super) async fn releasing(fleet: &mut Fleet, console: &mut Console) -> Result<(), Error> {
    let found = ask(fleet, "list-releasing").await?.releasing;
    let rows: Vec<ReleasingRow> = found.into_iter().map(Into::into).collect();
    output::list(console, fleet.format, &rows)
}
