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
    /// None in a row without shares: nobody may create anything there.
    shard: Option<String>,
    slice: i32,
}

impl Row for SliceRow {
    const HEAD: &'static [&'static str] = &["PROVIDER", "REGION", "SHARD", "SLICE"];

    fn cells(&self) -> Vec<String> {
        let shard = self.shard.clone().unwrap_or_else(|| "—".to_owned());
        vec![self.provider.clone(), self.region.clone(), shard, self.slice.to_string()]
    }
}

pub(super) async fn allocations(fleet: &mut Fleet) -> Result<Vec<QuotaAllocation>, Error> {
    let call = async |mut rpc: Rpc, request| rpc.list_quotas(request).await;
    Ok(fleet.coordinator.ask("list-quotas", ListQuotasRequest {}, call).await?.allocations)
}

pub(super) async fn list(fleet: &mut Fleet, console: &mut Console) -> Result<(), Error> {
    let row = |QuotaAllocation { provider, region, per_shard }: QuotaAllocation| {
        let nobody = per_shard.is_empty().then_some((None, 0));
        let shares = per_shard.into_iter().map(|(shard, slice)| (Some(shard), slice));
        shares.chain(nobody).map(move |(shard, slice)| SliceRow {
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
    /// Name of the provider, as upsert-provider has it
    #[arg(long, value_name = "NAME")]
    provider: String,
    /// Region of the account
    #[arg(long)]
    region: String,
    /// A shard's share; all shares of the account are given at once
    #[arg(long, value_name = "SHARD=N", required_unless_present = "remove", num_args = 1..,
          value_delimiter = ',', value_parser = slice)]
    slice: Vec<(String, i32)>,
    /// Take the account's quota away: no shard is limited there any more
    #[arg(long, conflicts_with = "slice")]
    remove: bool,
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
        let row = now.map(|one| one.per_shard.into_iter().collect::<BTreeMap<_, _>>());
        let of = |change: String| format!("set quota of {provider} {region}: {change}");
        let plan = match (args.remove, row) {
            (true, None) => vec![format!("remove no quota: {provider} {region} has none")],
            (true, Some(row)) => vec![format!(
                "remove quota of {provider} {region} ({}); no shard is limited there any more",
                if row.is_empty() { "no shares".to_owned() } else { shares(&row) }
            )],
            (false, row) => {
                changes(&row.unwrap_or_default(), &slices).into_iter().map(of).collect()
            }
        };
        if !console.consent(args.consent, &plan)? {
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
    if args.remove {
        return console.line(&format!("removed quota of {provider} {region}"));
    }
    console.line(&format!("set quota of {provider} {region}: {}", shares(&slices)))
}

fn shares(slices: &BTreeMap<String, i32>) -> String {
    slices.iter().map(|(shard, n)| format!("{shard}={n}")).collect::<Vec<_>>().join(" ")
}

/// What a row splits: a provider's account in one region, or, without one, in all.
pub(super) fn account(row: &QuotaAllocation) -> String {
    format!("{} {}", row.provider, row.region).trim_end().to_owned()
}

/// Rows that this shard alone has a share of. They stay without it, and bar everybody.
pub(super) fn emptied_by(shard: &str, rows: &[QuotaAllocation]) -> Vec<String> {
    let alone =
        |row: &&QuotaAllocation| row.per_shard.len() == 1 && row.per_shard.contains_key(shard);
    let step = |row: &QuotaAllocation| {
        format!(
            "leave the quota of {} without shares: no shard may create anything there until \
             set-quota gives shares anew, or --remove takes it away",
            account(row)
        )
    };
    rows.iter().filter(alone).map(step).collect()
}

/// Rows of a provider, which limit nobody when no shard dials the address that it is
/// registered by, or none is.
pub(super) fn unbound_by(provider: &str, rows: &[QuotaAllocation], why: &str) -> Vec<String> {
    let step = |row: &QuotaAllocation| {
        format!("leave the quota of {} without effect: {why}", account(row))
    };
    rows.iter().filter(|row| row.provider == provider).map(step).collect()
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
    fn a_row_without_its_last_share_is_told() {
        let row = |region: &str, shards: &[&str]| QuotaAllocation {
            provider: "p".to_owned(),
            region: region.to_owned(),
            per_shard: shards.iter().map(|shard| ((*shard).to_owned(), 1)).collect(),
        };
        let rows = [row("r", &["a"]), row("s", &["a", "b"]), row("t", &["b"]), row("u", &[])];
        let emptied = emptied_by("a", &rows);
        let [told] = &emptied[..] else { panic!("one of them") };
        assert!(told.starts_with("leave the quota of p r without shares"), "{told}");
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
