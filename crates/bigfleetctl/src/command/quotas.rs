//! `list-quotas`, `set-quota`.

use std::collections::BTreeMap;

use bigfleet_wire::v1alpha1::{ListQuotasRequest, QuotaAllocation, SetQuotaRequest};
use serde::Serialize;

use crate::{
    Error,
    cli::Consent,
    console::Console,
    coordinator::Rpc,
    fleet::Fleet,
    output::{self, Row},
};

#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
struct SliceRow {
    provider: String,
    region: String,
    shard: String,
    slice: i32,
}

impl Row for SliceRow {
    const HEAD: &'static [&'static str] = &["PROVIDER", "REGION", "SHARD", "SLICE"];

    fn cells(&self) -> Vec<String> {
        let [provider, region, shard] =
            [&self.provider, &self.region, &self.shard].map(Clone::clone);
        vec![provider, region, shard, self.slice.to_string()]
    }
}

async fn allocations(fleet: &mut Fleet) -> Result<Vec<QuotaAllocation>, Error> {
    let call = async |mut rpc: Rpc, request| rpc.list_quotas(request).await;
    Ok(fleet.coordinator.ask("list-quotas", ListQuotasRequest {}, call).await?.allocations)
}

pub(super) async fn list(fleet: &mut Fleet, console: &mut Console) -> Result<(), Error> {
    let row = |QuotaAllocation { provider, region, per_shard }: QuotaAllocation| {
        per_shard.into_iter().map(move |(shard, slice)| SliceRow {
            provider: provider.clone(),
            region: region.clone(),
            shard,
            slice,
        })
    };
    let mut rows: Vec<SliceRow> = allocations(fleet).await?.into_iter().flat_map(row).collect();
    rows.sort();
    output::list(console, fleet.format, &rows)
}

/// Flags of `set-quota`.
#[derive(Debug, clap::Args)]
pub struct SetArgs {
    /// Name of the provider
    #[arg(long, value_name = "NAME")]
    provider: String,
    /// Region of the account
    #[arg(long)]
    region: String,
    /// A shard's share; all shares of the account are given at once
    #[arg(long, value_name = "SHARD=N", required = true, num_args = 1.., value_delimiter = ',',
          value_parser = slice)]
    slice: Vec<(String, i32)>,
    #[command(flatten)]
    consent: Consent,
}

fn slice(text: &str) -> Result<(String, i32), String> {
    let wrong = || format!("{text:?} is no share; write for example shard-0=100");
    let (shard, count) = text.split_once('=').ok_or_else(wrong)?;
    let count: i32 = count.parse().map_err(|_| wrong())?;
    if shard.is_empty() || count < 0 { Err(wrong()) } else { Ok((shard.to_owned(), count)) }
}

pub(super) async fn set(
    fleet: &mut Fleet,
    console: &mut Console,
    args: &SetArgs,
) -> Result<(), Error> {
    let (provider, region) = (&args.provider, &args.region);
    let slices: BTreeMap<String, i32> = args.slice.iter().cloned().collect();
    if slices.len() < args.slice.len() {
        return Err(Error::Usage("--slice names a shard twice".to_owned()));
    }
    if args.consent.wants_plan() {
        let now = allocations(fleet).await?.into_iter();
        let now = now.into_iter().find(|one| one.provider == *provider && one.region == *region);
        let now: BTreeMap<_, _> = now.map(|one| one.per_shard).into_iter().flatten().collect();
        let plan = changes(&now, &slices);
        let of = |change: String| format!("set quota of {provider} {region}: {change}");
        if !console.consent(args.consent, &plan.into_iter().map(of).collect::<Vec<_>>())? {
            return Ok(());
        }
    }
    let request = SetQuotaRequest {
        allocation: Some(QuotaAllocation {
            provider: provider.clone(),
            region: region.clone(),
            per_shard: slices.clone().into_iter().collect(),
        }),
    };
    let call = async |mut rpc: Rpc, request| rpc.set_quota(request).await;
    fleet.coordinator.ask("set-quota", request, call).await?;
    let slices: Vec<String> = slices.iter().map(|(shard, n)| format!("{shard}={n}")).collect();
    console.line(&format!("set quota of {provider} {region}: {}", slices.join(" ")))
}

/// Shard by shard; what is not named falls away.
fn changes(now: &BTreeMap<String, i32>, then: &BTreeMap<String, i32>) -> Vec<String> {
    let shards: std::collections::BTreeSet<&String> = now.keys().chain(then.keys()).collect();
    let of = |slices: &BTreeMap<String, i32>, shard: &String| {
        slices.get(shard).map_or_else(|| "none".to_owned(), ToString::to_string)
    };
    shards.iter().map(|shard| format!("{shard} {} → {}", of(now, shard), of(then, shard))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_or_refused() {
        assert_eq!(slice("s-1=5"), Ok(("s-1".to_owned(), 5)));
        for text in ["", "s-1", "=5", "s-1=", "s-1=-1", "s-1=x"] {
            assert!(slice(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_plan_names_what_falls_away() {
        let map = |pairs: &[(&str, i32)]| {
            pairs.iter().map(|(shard, n)| ((*shard).to_owned(), *n)).collect::<BTreeMap<_, _>>()
        };
        let plan = changes(&map(&[("a", 1), ("b", 2)]), &map(&[("b", 3), ("c", 4)]));
        assert_eq!(plan, ["a 1 → none", "b 2 → 3", "c none → 4"]);
    }
}
