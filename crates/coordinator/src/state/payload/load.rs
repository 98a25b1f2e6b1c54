//! From a payload to the tables, by the rules that made them.

use std::collections::BTreeSet;

use super::{
    super::{
        Command, Domain, Effect, Key, Label, MAX_TRANSFER_MACHINES, QuotaKey, Releasing, Row,
        State, Transfer, TransferId, TransferPhase,
    },
    AdoptedPayload, DomainKey, DomainRow, KeyRow, Mark, Payload, PayloadError, QuotaRow, ShardRow,
    TransferRow, time,
};

impl From<DomainKey> for Domain {
    fn from(domain: DomainKey) -> Self {
        Self { key: domain.key, value: domain.value }
    }
}

impl From<KeyRow> for Key {
    fn from(key: KeyRow) -> Self {
        match key {
            KeyRow::Cluster(cluster) => Self::Cluster(cluster),
            KeyRow::Domain(domain) => Self::Domain(domain.into()),
        }
    }
}

pub(super) fn state(payload: Payload) -> Result<State, PayloadError> {
    let mut state = State { applied_index: payload.applied_index, ..State::default() };
    for shard in &payload.shards {
        add_shard(&mut state, shard)?;
    }
    for (cluster, shard) in payload.cluster_to_shard {
        let command = Command::BindCluster { cluster, shard };
        replay(&mut state, "cluster_to_shard", &command)?;
    }
    for row in payload.domain_to_shard {
        add_domain(&mut state, row)?;
    }
    for mark in payload.releasing {
        add_mark(&mut state, mark)?;
    }
    // What a base coordinator wrote has none: that of its first domain stands.
    if payload.format_version > 0 {
        set_ownership_key(&mut state, payload.ownership_key)?;
    }
    for row in payload.quotas {
        add_quota(&mut state, row)?;
    }
    for row in payload.providers {
        let (name, address, region) = (row.name, row.address, row.region);
        let command = Command::UpsertProvider { name, address, region };
        unique(&mut state, "providers", &command)?;
    }
    for (node_id, row) in payload.replicas {
        let command = Command::UpsertReplica {
            node_id,
            incarnation: row.incarnation,
            raft_address: row.raft_address,
            grpc_address: row.grpc_address,
            max_kind: row.max_kind,
        };
        // It joined when the log held fewer kinds.
        state.kind_in_use = 0;
        replay(&mut state, "replicas", &command)?;
    }
    for (id, row) in payload.transfers {
        add_transfer(&mut state, id, row)?;
    }
    state.recovering = payload.recovering;
    state.fleet_id = payload.fleet_id;
    state.kind_in_use = payload.kind_in_use;
    adopt(&mut state, payload.adopted)?;
    // Last: the rules above touch shards.
    for row in payload.shards {
        if let Some(shard) = state.shards.get_mut(&row.id) {
            shard.changed_at = row.changed_at;
        }
    }
    Ok(state)
}

fn replay(
    state: &mut State,
    table: &'static str,
    command: &Command,
) -> Result<Effect, PayloadError> {
    state.one(0, command).map_err(|refused| PayloadError::Invalid { table, refused })
}

/// Like [`replay`], for tables that are lists: what changes nothing was there before.
fn unique(state: &mut State, table: &'static str, command: &Command) -> Result<(), PayloadError> {
    let key = match command {
        Command::AssignDomain { domain, .. } => domain.to_string(),
        Command::UpsertProvider { name, .. } if state.providers.contains_key(name) => {
            return Err(PayloadError::Twice { table, key: name.clone() });
        }
        _ => String::new(),
    };
    match replay(state, table, command)? {
        Effect::Unchanged => Err(PayloadError::Twice { table, key }),
        _ => Ok(()),
    }
}

fn add_shard(state: &mut State, row: &ShardRow) -> Result<(), PayloadError> {
    let registered_at =
        time::unix_nanos(&row.registered_at).ok_or_else(|| PayloadError::Contradicts {
            table: "shards",
            key: row.id.to_string(),
            why: "RegisteredAt is no instant",
        })?;
    let command = Command::AddShard {
        id: row.id.clone(),
        address: row.address.clone(),
        registered_at,
        epoch: row.epoch,
        instance: row.instance,
        shared: row.shared,
    };
    replay(state, "shards", &command).map(drop)
}

fn add_domain(state: &mut State, row: DomainRow) -> Result<(), PayloadError> {
    const TABLE: &str = "domain_to_shard";
    let domain = Domain::from(row.domain);
    let command = Command::AssignDomain { domain: domain.clone(), shard: row.shard };
    unique(state, TABLE, &command)?;
    match (row.releasing_from, row.since) {
        (None, _) => Ok(()),
        (Some(from), since) => {
            let mark = Releasing { from, since: since.unwrap_or_default() };
            put_mark(state, TABLE, &Key::Domain(domain), mark)
        }
    }
}

fn add_mark(state: &mut State, mark: Mark) -> Result<(), PayloadError> {
    const TABLE: &str = "releasing";
    let Mark { cluster, domain, releasing_from: from, since } = mark;
    let key = match (cluster, domain) {
        (Some(cluster), None) => Key::Cluster(cluster),
        (None, Some(domain)) => Key::Domain(domain.into()),
        _ => {
            let (key, why) = (from.to_string(), "neither of a cluster nor of a domain");
            return Err(PayloadError::Contradicts { table: TABLE, key, why });
        }
    };
    let owned_domain = key.domain().is_some() && state.rows.get(&key).is_some();
    if owned_domain {
        return Err(PayloadError::Twice { table: TABLE, key: key.to_string() });
    }
    put_mark(state, TABLE, &key, Releasing { from, since })
}

fn put_mark(
    state: &mut State,
    table: &'static str,
    key: &Key,
    mark: Releasing,
) -> Result<(), PayloadError> {
    if !state.shards.contains_key(&mark.from) {
        let (key, missing) = (key.to_string(), format!("shard {}", mark.from));
        return Err(PayloadError::Dangling { table, key, missing });
    }
    let row = state.rows.get(key).cloned().unwrap_or_default();
    if row.releasing.is_some() {
        return Err(PayloadError::Twice { table, key: key.to_string() });
    }
    let wrong = |why| Err(PayloadError::Contradicts { table, key: key.to_string(), why });
    if row.owner.as_ref() == Some(&mark.from) {
        return wrong("its owner has not let go of it");
    }
    if mark.since > state.applied_index {
        return wrong("it is since an index that was not applied");
    }
    state.rows.set(key, Row { releasing: Some(mark), ..row });
    Ok(())
}

fn set_ownership_key(state: &mut State, key: Option<Label>) -> Result<(), PayloadError> {
    const TABLE: &str = "ownership_key";
    if let Some(key) = &key
        && !state.rows.has_domain_of(key)
    {
        let (key, missing) = (key.to_string(), "a domain of that key".to_owned());
        return Err(PayloadError::Dangling { table: TABLE, key, missing });
    }
    state.ownership_key = key;
    Ok(())
}

fn add_quota(state: &mut State, row: QuotaRow) -> Result<(), PayloadError> {
    const TABLE: &str = "quotas";
    let key = QuotaKey { provider: row.key.provider, region: row.key.region };
    if state.quotas.contains_key(&key) {
        let key = format!("{}/{}", key.provider, key.region);
        return Err(PayloadError::Twice { table: TABLE, key });
    }
    // Its shards were removed: nobody may draw. The rule for an empty row would delete it.
    if row.per_shard.is_empty() {
        state.quotas.insert(key, row.per_shard);
        return Ok(());
    }
    let (provider, region) = (key.provider, key.region);
    let command = Command::SetQuota { provider, region, per_shard: row.per_shard };
    replay(state, TABLE, &command).map(drop)
}

fn add_transfer(state: &mut State, id: TransferId, row: TransferRow) -> Result<(), PayloadError> {
    const TABLE: &str = "transfers";
    let wrong = |why| PayloadError::Contradicts { table: TABLE, key: id.to_string(), why };
    let moved = row.phase == TransferPhase::Moved;
    // Once it has moved, who gave it may be gone.
    for shard in [Some(&row.to), Some(&row.from).filter(|_| !moved)].into_iter().flatten() {
        if !state.shards.contains_key(shard) {
            let (key, missing) = (id.to_string(), format!("shard {shard}"));
            return Err(PayloadError::Dangling { table: TABLE, key, missing });
        }
    }
    if moved != row.home.is_some() || moved == row.machine_ids.is_empty() {
        return Err(wrong("home and machines do not fit its phase"));
    }
    if row.machine_ids.len() > MAX_TRANSFER_MACHINES {
        return Err(wrong("it has more than 100 machines"));
    }
    if state.any_on_the_way(&row.machine_ids) {
        return Err(wrong("a machine is in another transfer, too"));
    }
    let TransferRow { from, home, kind, machine_ids, phase, request, to } = row;
    let machine_ids: BTreeSet<_> = machine_ids.into_iter().collect();
    let home = home.map(Domain::from);
    let transfer = Transfer { kind, from, to, request, phase, home, machine_ids };
    state.transfers.insert(id, transfer);
    Ok(())
}

fn adopt(state: &mut State, adopted: AdoptedPayload) -> Result<(), PayloadError> {
    const TABLE: &str = "adopted";
    let dangling = |key: String| {
        let missing = "its entry".to_owned();
        Err(PayloadError::Dangling { table: TABLE, key, missing })
    };
    for shard in adopted.shards {
        if !state.shards.contains_key(&shard) {
            return dangling(shard.to_string());
        }
        state.adopted.shards.insert(shard);
    }
    state.adopted.backup_unix_ms = adopted.backup_unix_ms;
    // Neither the key nor who had it needs to be there still.
    for row in adopted.changed {
        let key = Key::from(row.key);
        if state.adopted.changed.insert(key.clone(), row.from).is_some() {
            return Err(PayloadError::Twice { table: TABLE, key: key.to_string() });
        }
    }
    for key in adopted.keys {
        let key = Key::from(key);
        if state.rows.get(&key).is_none() {
            return dangling(key.to_string());
        }
        state.adopted.keys.insert(key);
    }
    Ok(())
}
