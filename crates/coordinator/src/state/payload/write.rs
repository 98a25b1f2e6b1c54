//! From the tables to their payload.

use super::{
    super::{Domain, Key, Row, State},
    AccountKey, AdoptedPayload, ChangedRow, DomainKey, DomainRow, FORMAT_VERSION, KeyRow, Mark,
    Payload, ProviderRow, QuotaRow, ReplicaRow, ShardRow, TransferRow, time,
};

impl From<&Domain> for DomainKey {
    fn from(domain: &Domain) -> Self {
        Self { key: domain.key.clone(), value: domain.value.clone() }
    }
}

impl From<&Key> for KeyRow {
    fn from(key: &Key) -> Self {
        match key {
            Key::Cluster(cluster) => Self::Cluster(cluster.clone()),
            Key::Domain(domain) => Self::Domain(domain.into()),
        }
    }
}

pub(super) fn payload(state: &State) -> Payload {
    let mut payload = Payload {
        format_version: FORMAT_VERSION,
        adopted: AdoptedPayload {
            backup_unix_ms: state.adopted.backup_unix_ms,
            changed: (state.adopted.changed.iter())
                .map(|(key, from)| ChangedRow { from: from.clone(), key: key.into() })
                .collect(),
            keys: state.adopted.keys.iter().map(KeyRow::from).collect(),
            shards: state.adopted.shards.iter().cloned().collect(),
        },
        applied_index: state.applied_index,
        fleet_id: state.fleet_id.clone(),
        kind_in_use: state.kind_in_use,
        ownership_key: state.ownership_key.clone(),
        recovering: state.recovering,
        ..Payload::default()
    };
    for (key, row) in state.rows.iter() {
        put_row(&mut payload, key, row);
    }
    payload.providers = (state.providers.iter())
        .map(|(name, provider)| ProviderRow {
            address: provider.address.clone(),
            name: name.clone(),
            region: provider.region.clone(),
        })
        .collect();
    payload.quotas = (state.quotas.iter())
        .map(|(key, per_shard)| QuotaRow {
            key: AccountKey { provider: key.provider.clone(), region: key.region.clone() },
            per_shard: per_shard.clone(),
        })
        .collect();
    payload.replicas = (state.replicas.iter())
        .map(|(id, replica)| {
            let row = ReplicaRow {
                grpc_address: replica.grpc_address.clone(),
                incarnation: replica.incarnation,
                max_kind: replica.max_kind,
                raft_address: replica.raft_address.clone(),
            };
            (id.clone(), row)
        })
        .collect();
    payload.shards = (state.shards.iter())
        .map(|(id, shard)| ShardRow {
            address: shard.address.clone(),
            id: id.clone(),
            last_heartbeat: time::NEVER.to_owned(),
            registered_at: time::text(shard.registered_at),
            changed_at: shard.changed_at,
            epoch: shard.epoch,
            instance: shard.instance,
            shared: shard.shared,
        })
        .collect();
    payload.transfers = (state.transfers.iter())
        .map(|(id, transfer)| {
            let row = TransferRow {
                from: transfer.from.clone(),
                home: transfer.home.as_ref().map(DomainKey::from),
                kind: transfer.kind,
                machine_ids: transfer.machine_ids.iter().cloned().collect(),
                phase: transfer.phase,
                request: transfer.request.clone(),
                to: transfer.to.clone(),
            };
            (id.clone(), row)
        })
        .collect();
    payload
}

fn put_row(payload: &mut Payload, key: &Key, row: &Row) {
    let mark = |cluster, domain| {
        let mark = row.releasing.as_ref()?;
        Some(Mark { cluster, domain, releasing_from: mark.from.clone(), since: mark.since })
    };
    match (key, &row.owner) {
        (Key::Cluster(cluster), owner) => {
            if let Some(owner) = owner {
                payload.cluster_to_shard.insert(cluster.clone(), owner.clone());
            }
            payload.releasing.extend(mark(Some(cluster.clone()), None));
        }
        (Key::Domain(domain), Some(owner)) => payload.domain_to_shard.push(DomainRow {
            domain: domain.into(),
            releasing_from: row.releasing.as_ref().map(|mark| mark.from.clone()),
            shard: owner.clone(),
            since: row.releasing.as_ref().map(|mark| mark.since),
        }),
        (Key::Domain(domain), None) => {
            payload.releasing.extend(mark(None, Some(domain.into())));
        }
    }
}
