//! What operators change.

use bigfleet_net::rule::Rule;
use bigfleet_wire::v1alpha1 as wire;
use tonic::{Request, Status};

use super::{Coordinator, Replica};
use crate::{
    reports::limits::{self, Invalid},
    state::{ChangedHands, Command, Domain, Effect, Key, Recovered, ShardId},
};

impl<R: Replica> Coordinator<R> {
    /// One command by an admin: who asks, what is asked, then the commit.
    pub(super) async fn change<T: Send + Sync>(
        &self,
        rpc: &'static str,
        request: Request<T>,
        command: fn(&T) -> Result<Command, Invalid>,
    ) -> Result<Effect, Status> {
        let led = self.enter(rpc, &request, &Rule::admin())?;
        let command = command(request.get_ref())?;
        Ok(self.commit(led, command).await??)
    }
}

fn domain(key: &str, value: &str) -> Result<Domain, Invalid> {
    limits::domain(key, value)?;
    Ok(Domain::new(key, value))
}

fn shard(field: &str, id: &str) -> Result<ShardId, Invalid> {
    limits::id(field, id)?;
    Ok(id.into())
}

pub(super) fn assign_domain(request: &wire::AssignDomainRequest) -> Result<Command, Invalid> {
    Ok(Command::AssignDomain {
        domain: domain(&request.topology_key, &request.topology_value)?,
        shard: shard("shard_id", &request.shard_id)?,
    })
}

pub(super) fn unassign_domain(request: &wire::UnassignDomainRequest) -> Result<Command, Invalid> {
    let domain = domain(&request.topology_key, &request.topology_value)?;
    Ok(Command::UnassignDomain { domain })
}

pub(super) fn remove_shard(request: &wire::RemoveShardRequest) -> Result<Command, Invalid> {
    Ok(Command::RemoveShard { id: shard("shard_id", &request.shard_id)? })
}

pub(super) fn set_quota(request: &wire::SetQuotaRequest) -> Result<Command, Invalid> {
    let allocation = request.allocation.clone().unwrap_or_default();
    limits::id("allocation.provider", &allocation.provider)?;
    limits::id_if_any("allocation.region", &allocation.region)?;
    limits::entries("allocation.per_shard", allocation.per_shard.len())?;
    for (id, slice) in &allocation.per_shard {
        limits::id("allocation.per_shard", id)?;
        limits::count("allocation.per_shard", *slice)?;
    }
    let per_shard = allocation.per_shard.iter().map(|(id, slice)| (id.as_str().into(), *slice));
    Ok(Command::SetQuota {
        per_shard: per_shard.collect(),
        provider: allocation.provider,
        region: allocation.region,
    })
}

pub(super) fn upsert_provider(request: &wire::UpsertProviderRequest) -> Result<Command, Invalid> {
    let wire::ProviderEntry { name, address, region } =
        request.provider.clone().unwrap_or_default();
    limits::id("provider.name", &name)?;
    limits::given("provider.address", &address)?;
    limits::address("provider.address", &address)?;
    limits::id_if_any("provider.region", &region)?;
    Ok(Command::UpsertProvider { name, address, region })
}

pub(super) fn remove_provider(request: &wire::RemoveProviderRequest) -> Result<Command, Invalid> {
    limits::id("name", &request.name)?;
    Ok(Command::RemoveProvider { name: request.name.clone() })
}

pub(super) fn move_domain(request: &wire::MoveDomainRequest) -> Result<Command, Invalid> {
    Ok(Command::MoveDomain {
        domain: domain(&request.topology_key, &request.topology_value)?,
        from: shard("from_shard_id", &request.from_shard_id)?,
        to: shard("to_shard_id", &request.to_shard_id)?,
    })
}

pub(super) fn move_cluster(request: &wire::MoveClusterRequest) -> Result<Command, Invalid> {
    limits::id("cluster_id", &request.cluster_id)?;
    Ok(Command::MoveCluster {
        cluster: request.cluster_id.as_str().into(),
        from: shard("from_shard_id", &request.from_shard_id)?,
        to: shard("to_shard_id", &request.to_shard_id)?,
    })
}

/// What a recovery came to; nothing, if there was none.
pub(super) fn confirmed(effect: Effect) -> wire::ConfirmRestoreResponse {
    let Effect::Confirmed(recovered) = effect else {
        return wire::ConfirmRestoreResponse::default();
    };
    let Recovered { backup_unix_ms, shards, domains, clusters, machines, changed } = *recovered;
    let whole = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    let nanos = backup_unix_ms.saturating_mul(1_000_000);
    wire::ConfirmRestoreResponse {
        backup_unix_ns: i64::try_from(nanos).unwrap_or(i64::MAX),
        shards: whole(shards),
        domains: whole(domains),
        clusters: whole(clusters),
        machines: whole(machines),
        changed: changed.into_iter().map(changed_hands).collect(),
    }
}

fn changed_hands(changed: ChangedHands) -> wire::ChangedHands {
    let shard = |id: Option<ShardId>| id.map(|id| id.to_string()).unwrap_or_default();
    let hands = wire::ChangedHands {
        from_shard_id: shard(changed.from),
        to_shard_id: shard(changed.to),
        ..wire::ChangedHands::default()
    };
    match changed.key {
        Key::Cluster(cluster) => wire::ChangedHands { cluster_id: cluster.to_string(), ..hands },
        Key::Domain(domain) => wire::ChangedHands {
            topology_key: domain.key.to_string(),
            topology_value: domain.value.to_string(),
            ..hands
        },
    }
}
