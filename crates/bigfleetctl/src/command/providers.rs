//! `list-providers`, `upsert-provider`, `remove-provider`.

use bigfleet_wire::v1alpha1::{ProviderEntry, RemoveProviderRequest, UpsertProviderRequest};
use serde::Serialize;

use super::quotas;
use crate::{
    Error,
    cli::Consent,
    console::Console,
    coordinator::Rpc,
    fleet::Fleet,
    output::{self, Row},
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProviderRow {
    name: String,
    address: String,
    region: String,
}

impl Row for ProviderRow {
    const HEAD: &'static [&'static str] = &["NAME", "ADDRESS", "REGION"];

    fn cells(&self) -> Vec<String> {
        vec![self.name.clone(), self.address.clone(), self.region.clone()]
    }
}

pub(super) async fn list(fleet: &mut Fleet, console: &mut Console) -> Result<(), Error> {
    let row = |ProviderEntry { name, address, region }: ProviderEntry| ProviderRow {
        name,
        address,
        region,
    };
    let providers = fleet.coordinator.providers().await?.into_iter();
    output::list(console, fleet.format, &providers.map(row).collect::<Vec<_>>())
}

/// Flags of `upsert-provider`.
#[derive(Debug, clap::Args)]
pub struct UpsertArgs {
    /// Name of the provider: what its own --provider says, so that quotas tell accounts apart
    #[arg(long)]
    name: String,
    /// host:port where it serves
    #[arg(long, value_name = "ADDR")]
    address: String,
    /// Region of its account
    #[arg(long, default_value = "")]
    region: String,
    #[command(flatten)]
    consent: Consent,
}

pub(super) async fn upsert(
    fleet: &mut Fleet,
    console: &mut Console,
    args: &UpsertArgs,
) -> Result<(), Error> {
    let UpsertArgs { name, address, region, consent } = args;
    if consent.wants_plan() {
        let known = fleet.coordinator.providers().await?;
        let change = match known.iter().find(|one| one.name == *name) {
            None => format!("add provider {name} at {address} {region}"),
            Some(one) => format!(
                "change provider {name}: {} {} → {address} {region}",
                one.address, one.region
            ),
        };
        let mut plan = vec![change.trim_end().to_owned()];
        if !is_dialled(fleet, address).await? {
            let why = format!(
                "no shard dials {address}, and a share binds only shards that dial the address \
                 of its provider, spelt the same"
            );
            plan.extend(quotas::unbound_by(name, &quotas::allocations(fleet).await?, &why));
        }
        if !console.consent(*consent, &plan)? {
            return Ok(());
        }
    }
    let provider =
        ProviderEntry { name: name.clone(), address: address.clone(), region: region.clone() };
    let request = UpsertProviderRequest { provider: Some(provider) };
    let call = async |mut rpc: Rpc, request| rpc.upsert_provider(request).await;
    fleet.coordinator.ask("upsert-provider", request, call).await?;
    console.line(&format!("upserted provider {name}"))
}

/// Whether a shard said that its provider is there. Of shards that were not heard nothing is
/// known: then nobody is accused.
async fn is_dialled(fleet: &mut Fleet, address: &str) -> Result<bool, Error> {
    let reports = fleet.coordinator.reports("").await?;
    let mut dialled = reports.iter().filter_map(|report| report.summary.as_ref()).peekable();
    Ok(dialled.peek().is_none() || dialled.any(|summary| summary.provider_address == address))
}

/// Flags of `remove-provider`.
#[derive(Debug, clap::Args)]
pub struct RemoveArgs {
    /// Name of the provider
    #[arg(long)]
    name: String,
    #[command(flatten)]
    consent: Consent,
}

pub(super) async fn remove(
    fleet: &mut Fleet,
    console: &mut Console,
    args: &RemoveArgs,
) -> Result<(), Error> {
    let name = &args.name;
    let removal = format!("remove provider {name} from the registry; shards keep their own flags");
    let mut plan = vec![removal];
    if args.consent.wants_plan() {
        let why = "no shard is limited there until the provider is registered again";
        plan.extend(quotas::unbound_by(name, &quotas::allocations(fleet).await?, why));
    }
    if !console.consent(args.consent, &plan)? {
        return Ok(());
    }
    let request = RemoveProviderRequest { name: name.clone() };
    let call = async |mut rpc: Rpc, request| rpc.remove_provider(request).await;
    fleet.coordinator.ask("remove-provider", request, call).await?;
    console.line(&format!("removed provider {name}"))
}
