//! What can be read. Nothing here is older than the call.

use bigfleet_net::rule::Rule;
use bigfleet_wire::v1alpha1 as wire;
use tonic::{Request, Status};

use super::{Coordinator, Replica, guard::Led};
use crate::{
    reports::limits,
    state::{Domain, ShardId},
};

impl<R: Replica> Coordinator<R> {
    /// The beginning of every read.
    async fn read<T: Sync>(&self, rpc: &'static str, request: &Request<T>) -> Result<Led, Status> {
        let led = self.enter(rpc, request, &Rule::readers())?;
        self.barrier(led).await?;
        Ok(led)
    }

    pub(super) async fn shards(
        &self,
        rpc: &'static str,
        request: Request<wire::ListShardsRequest>,
    ) -> Result<wire::ListShardsResponse, Status> {
        let led = self.read(rpc, &request).await?;
        self.soft(led.term, |reports, state, now| {
            let shards = state.shards().iter().map(|(id, shard)| wire::ShardRegistryEntry {
                shard_id: id.to_string(),
                address: shard.address.clone(),
                registered_at_unix_ns: shard.registered_at,
                last_heartbeat_unix_ns: reports.last_heartbeat(id),
            });
            let leading_ms = i64::try_from(reports.led_for(now).as_millis()).unwrap_or(i64::MAX);
            wire::ListShardsResponse { shards: shards.collect(), leading_ms }
        })
    }

    /// Without a page size all of them, as a base client expects. A token that is none of
    /// ours begins anew.
    pub(super) async fn domain_assignments(
        &self,
        rpc: &'static str,
        request: Request<wire::ListDomainAssignmentsRequest>,
    ) -> Result<wire::ListDomainAssignmentsResponse, Status> {
        let led = self.enter(rpc, &request, &Rule::readers())?;
        limits::count("page_size", request.get_ref().page_size)?;
        self.barrier(led).await?;
        let wire::ListDomainAssignmentsRequest { page_size, page_token } = request.into_inner();
        let size = usize::try_from(page_size).ok().filter(|size| *size > 0).unwrap_or(usize::MAX);
        let after: Option<(ShardId, Domain)> = serde_json::from_str(&page_token).ok();
        Ok(self.replica.look(|state| {
            let mut rest = state.domains_after(after.as_ref());
            let page: Vec<(&ShardId, &Domain)> = rest.by_ref().take(size).collect();
            let last = page.last().filter(|_| rest.next().is_some());
            let next_page_token = last.and_then(|last| serde_json::to_string(last).ok());
            let assignments = page.iter().map(|(shard, domain)| wire::DomainAssignment {
                topology_key: domain.key.to_string(),
                topology_value: domain.value.to_string(),
                shard_id: shard.to_string(),
            });
            wire::ListDomainAssignmentsResponse {
                assignments: assignments.collect(),
                next_page_token: next_page_token.unwrap_or_default(),
            }
        }))
    }

    pub(super) async fn shard_reports(
        &self,
        rpc: &'static str,
        request: Request<wire::ListShardReportsRequest>,
    ) -> Result<wire::ListShardReportsResponse, Status> {
        let led = self.read(rpc, &request).await?;
        let shard = request.into_inner().shard_id;
        let reports = self.soft(led.term, |reports, _, _| reports.snapshots(&shard))?;
        Ok(wire::ListShardReportsResponse { reports })
    }

    pub(super) async fn quotas(
        &self,
        rpc: &'static str,
        request: Request<wire::ListQuotasRequest>,
    ) -> Result<wire::ListQuotasResponse, Status> {
        self.read(rpc, &request).await?;
        let allocations = self.replica.look(|state| {
            let rows = state.quotas().iter().map(|(key, row)| wire::QuotaAllocation {
                provider: key.provider.clone(),
                region: key.region.clone(),
                per_shard: row.iter().map(|(id, slice)| (id.to_string(), *slice)).collect(),
            });
            rows.collect()
        });
        Ok(wire::ListQuotasResponse { allocations })
    }

    pub(super) async fn providers(
        &self,
        rpc: &'static str,
        request: Request<wire::ListProvidersRequest>,
    ) -> Result<wire::ListProvidersResponse, Status> {
        self.read(rpc, &request).await?;
        let providers = self.replica.look(|state| {
            let rows = state.providers().iter().map(|(name, provider)| wire::ProviderEntry {
                name: name.clone(),
                address: provider.address.clone(),
                region: provider.region.clone(),
            });
            rows.collect()
        });
        Ok(wire::ListProvidersResponse { providers })
    }

    pub(super) async fn transfers(
        &self,
        rpc: &'static str,
        request: Request<wire::ListTransfersRequest>,
    ) -> Result<wire::ListTransfersResponse, Status> {
        let led = self.read(rpc, &request).await?;
        self.soft(led.term, |reports, state, now| reports.on_the_way(state, now))
    }
}
