//! Quotas that bind nobody: a shard gets a share only by the address that the registry has
//! for the quota's provider, and only if that is the address which it dials itself.

use std::collections::BTreeSet;

use bigfleet_wire::v1alpha1::{ProviderEntry, QuotaAllocation};

use super::finding::Findings;
use crate::{command::quotas, fleet::Fleet};

pub(super) async fn check(fleet: &mut Fleet, findings: &mut Findings) {
    let Ok(rows) = quotas::allocations(fleet).await else { return };
    if rows.is_empty() {
        return;
    }
    let registered = fleet.coordinator.providers().await.unwrap_or_default();
    let reports = fleet.coordinator.reports("").await.unwrap_or_default();
    let dialled: BTreeSet<String> = reports
        .into_iter()
        .filter_map(|report| Some(report.summary?.provider_address))
        .filter(|address| !address.is_empty())
        .collect();
    for row in &rows {
        one(row, &registered, &dialled, findings);
    }
}

fn one(
    row: &QuotaAllocation,
    registered: &[ProviderEntry],
    dialled: &BTreeSet<String>,
    findings: &mut Findings,
) {
    let (provider, target) = (&row.provider, quotas::account(row));
    let Some(entry) = registered.iter().find(|one| one.name == *provider) else {
        findings.fault(
            "quota",
            &target,
            format!("no provider {provider} is registered, so the quota limits nobody"),
            format!(
                "`upsert-provider --name {provider}` with the address that shards dial, or \
                 `set-quota --remove`"
            ),
        );
        return;
    };
    let address = &entry.address;
    if dialled.is_empty() {
        findings.skipped(
            "quota",
            &target,
            "no shard has reported its provider yet",
            "look again once shards have reported",
        );
    } else if dialled.contains(address) {
        findings.ok("quota", &target, format!("shards dial {address}"));
    } else {
        let dialled: Vec<&str> = dialled.iter().map(String::as_str).collect();
        findings.fault(
            "quota",
            &target,
            format!(
                "no shard dials {address}, by which {provider} is registered, so the quota limits \
                 nobody; shards dial {}",
                dialled.join(", ")
            ),
            format!(
                "`upsert-provider --name {provider}` with the address as shards spell it in \
                 --provider-addr"
            ),
        );
    }
}
