//! Topology domains and clusters: `list-domain-assignments`, `assign-domain`,
//! `unassign-domain`, `move-domain`, `move-cluster`.

use bigfleet_wire::v1alpha1::{
    AssignDomainRequest, MoveClusterRequest, MoveDomainRequest, UnassignDomainRequest,
};
use serde::Serialize;

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
struct DomainRow {
    topology_key: String,
    topology_value: String,
    shard: String,
}

impl Row for DomainRow {
    const HEAD: &'static [&'static str] = &["TOPOLOGY_KEY", "TOPOLOGY_VALUE", "SHARD"];

    fn cells(&self) -> Vec<String> {
        vec![self.topology_key.clone(), self.topology_value.clone(), self.shard.clone()]
    }
}

pub(super) async fn list(fleet: &mut Fleet, console: &mut Console) -> Result<(), Error> {
    let domains = fleet.coordinator.domains().await?.into_iter();
    let row = |domain: bigfleet_wire::v1alpha1::DomainAssignment| DomainRow {
        topology_key: domain.topology_key,
        topology_value: domain.topology_value,
        shard: domain.shard_id,
    };
    output::list(console, fleet.format, &domains.map(row).collect::<Vec<_>>())
}

/// One topology domain.
#[derive(Debug, clap::Args)]
struct Domain {
    /// Topology key, for example topology.kubernetes.io/zone
    #[arg(long, value_name = "KEY")]
    key: String,
    /// Its value
    #[arg(long)]
    value: String,
}

impl Domain {
    fn text(&self) -> String {
        format!("{}={}", self.key, self.value)
    }

    /// Who has it now, for a plan.
    async fn owner(&self, fleet: &mut Fleet) -> Result<String, Error> {
        let domains = fleet.coordinator.domains().await?;
        let owned = domains
            .into_iter()
            .find(|row| row.topology_key == self.key && row.topology_value == self.value);
        Ok(owned.map_or_else(|| "nobody".to_owned(), |row| row.shard_id))
    }
}

/// Flags of `assign-domain`.
#[derive(Debug, clap::Args)]
pub struct AssignArgs {
    #[command(flatten)]
    domain: Domain,
    /// Id of the shard
    #[arg(long, value_name = "ID")]
    shard: String,
    #[command(flatten)]
    consent: Consent,
}

pub(super) async fn assign(
    fleet: &mut Fleet,
    console: &mut Console,
    args: &AssignArgs,
) -> Result<(), Error> {
    let (domain, shard) = (args.domain.text(), &args.shard);
    if args.consent.wants_plan() {
        let owner = args.domain.owner(fleet).await?;
        let plan = format!("assign {domain} to {shard}; it belongs to {owner} now");
        if !console.consent(args.consent, &[plan])? {
            return Ok(());
        }
    }
    let request = AssignDomainRequest {
        topology_key: args.domain.key.clone(),
        topology_value: args.domain.value.clone(),
        shard_id: shard.clone(),
    };
    let call = async |mut rpc: Rpc, request| rpc.assign_domain(request).await;
    fleet.coordinator.ask("assign-domain", request, call).await?;
    console.line(&format!("assigned {domain} → {shard}"))
}

/// Flags of `unassign-domain`.
#[derive(Debug, clap::Args)]
pub struct UnassignArgs {
    #[command(flatten)]
    domain: Domain,
    #[command(flatten)]
    consent: Consent,
}

pub(super) async fn unassign(
    fleet: &mut Fleet,
    console: &mut Console,
    args: &UnassignArgs,
) -> Result<(), Error> {
    let domain = args.domain.text();
    if args.consent.wants_plan() {
        let owner = args.domain.owner(fleet).await?;
        let plan = format!("unassign {domain}; it belongs to {owner} now");
        if !console.consent(args.consent, &[plan])? {
            return Ok(());
        }
    }
    let request = UnassignDomainRequest {
        topology_key: args.domain.key.clone(),
        topology_value: args.domain.value.clone(),
    };
    let call = async |mut rpc: Rpc, request| rpc.unassign_domain(request).await;
    fleet.coordinator.ask("unassign-domain", request, call).await?;
    console.line(&format!("unassigned {domain}"))
}

/// From where to where.
#[derive(Debug, clap::Args)]
struct Way {
    /// Id of the shard that has it
    #[arg(long, value_name = "ID")]
    from: String,
    /// Id of the shard that gets it
    #[arg(long, value_name = "ID")]
    to: String,
    #[command(flatten)]
    consent: Consent,
}

/// Flags of `move-domain`.
#[derive(Debug, clap::Args)]
pub struct MoveArgs {
    #[command(flatten)]
    domain: Domain,
    #[command(flatten)]
    way: Way,
}

pub(super) async fn r#move(
    fleet: &mut Fleet,
    console: &mut Console,
    args: &MoveArgs,
) -> Result<(), Error> {
    let (domain, Way { from, to, consent }) = (args.domain.text(), &args.way);
    let plan = format!("move {domain} from {from} to {to}; {to} waits until {from} lets go");
    if !console.consent(*consent, &[plan])? {
        return Ok(());
    }
    let request = MoveDomainRequest {
        topology_key: args.domain.key.clone(),
        topology_value: args.domain.value.clone(),
        from_shard_id: from.clone(),
        to_shard_id: to.clone(),
    };
    let call = async |mut rpc: Rpc, request| rpc.move_domain(request).await;
    fleet.coordinator.ask("move-domain", request, call).await?;
    console.line(&format!("moved {domain}: {from} → {to}"))
}

/// Flags of `move-cluster`.
#[derive(Debug, clap::Args)]
pub struct MoveClusterArgs {
    /// Id of the cluster
    #[arg(long, value_name = "ID")]
    cluster: String,
    #[command(flatten)]
    way: Way,
}

pub(super) async fn move_cluster(
    fleet: &mut Fleet,
    console: &mut Console,
    args: &MoveClusterArgs,
) -> Result<(), Error> {
    let (cluster, Way { from, to, consent }) = (&args.cluster, &args.way);
    let plan = format!(
        "move cluster {cluster} from {from} to {to}; its operator must be pointed at {to} too"
    );
    if !console.consent(*consent, &[plan])? {
        return Ok(());
    }
    let request = MoveClusterRequest {
        cluster_id: cluster.clone(),
        from_shard_id: from.clone(),
        to_shard_id: to.clone(),
    };
    let call = async |mut rpc: Rpc, request| rpc.move_cluster(request).await;
    fleet.coordinator.ask("move-cluster", request, call).await?;
    console.line(&format!("moved cluster {cluster}: {from} → {to}"))
}
