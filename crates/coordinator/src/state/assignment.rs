//! What one shard has, at one applied index (coordinator chapter §8): the only way by
//! which a shared-scope shard gains anything.

use bigfleet_model::digest;

use super::{
    ClusterId, Domain, Key, MachineId, QuotaKey, ShardId, State, Transfer, TransferId,
    TransferPhase,
};

/// Replaces whatever the shard had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The applied index that it was computed at.
    pub version: u64,
    /// Rows of the ownership key that it holds.
    pub domains: Vec<Domain>,
    /// Clusters that it holds.
    pub clusters: Vec<ClusterId>,
    /// Machines of others that it has while they are unbound.
    pub machines_in: Vec<TransferMachine>,
    /// Machines of its domains that others have.
    pub machines_out: Vec<TransferMachine>,
    /// What it may draw from its provider.
    pub quota_slices: Vec<QuotaSlice>,
    /// Transfers that wait for it to let go.
    pub open_transfers: Vec<TransferId>,
    /// Of all but the version; never 0.
    pub digest: u64,
}

/// A machine away from its home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferMachine {
    /// By this transfer.
    pub transfer: TransferId,
    /// The machine.
    pub machine: MachineId,
    /// Where it goes back to.
    pub home: Domain,
    /// Who gave it.
    pub from: ShardId,
}

/// A share of a provider account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaSlice {
    /// The account.
    pub key: QuotaKey,
    /// How many elastic machines.
    pub slice: i32,
}

impl State {
    /// The Assignment of a shard that reported this provider address. Quota rows count
    /// for it if their provider, by the registry, is at that address; a row that does
    /// not name the shard gives it nothing.
    #[must_use]
    pub fn assignment_of(&self, shard: &ShardId, provider_address: &str) -> Assignment {
        let held = self
            .rows
            .owned_by(shard)
            .filter(|key| self.rows.get(key).is_some_and(|row| row.releasing.is_none()));
        let (mut domains, mut clusters) = (Vec::new(), Vec::new());
        for key in held {
            match key {
                Key::Cluster(cluster) => clusters.push(cluster.clone()),
                Key::Domain(domain) if Some(&domain.key) == self.ownership_key.as_ref() => {
                    domains.push(domain.clone());
                }
                Key::Domain(_) => {}
            }
        }
        let machines_in = self.moved(|transfer, _| transfer.to == *shard);
        let machines_out = self
            .moved(|transfer, home| transfer.to != *shard && domains.binary_search(home).is_ok());
        let opens = |transfer: &Transfer| {
            transfer.from == *shard && transfer.phase == TransferPhase::Releasing
        };
        let open = self.transfers.iter().filter(|(_, transfer)| opens(transfer));
        let mut assignment = Assignment {
            version: self.applied_index,
            open_transfers: open.map(|(id, _)| id.clone()).collect(),
            quota_slices: self.slices_of(shard, provider_address),
            domains,
            clusters,
            machines_in,
            machines_out,
            digest: 0,
        };
        assignment.digest = assignment.content_digest();
        assignment
    }

    fn moved(&self, wanted: impl Fn(&Transfer, &Domain) -> bool) -> Vec<TransferMachine> {
        let mut machines = Vec::new();
        for (id, transfer) in &self.transfers {
            let Some(home) = transfer.home.as_ref() else { continue };
            if transfer.phase != TransferPhase::Moved || !wanted(transfer, home) {
                continue;
            }
            machines.extend(transfer.machine_ids.iter().map(|machine| TransferMachine {
                transfer: id.clone(),
                machine: machine.clone(),
                home: home.clone(),
                from: transfer.from.clone(),
            }));
        }
        machines
    }

    fn slices_of(&self, shard: &ShardId, provider_address: &str) -> Vec<QuotaSlice> {
        // Empty is a provider within the shard, which no account stands behind.
        let ours = |name: &str| {
            !provider_address.is_empty()
                && self.providers.get(name).is_some_and(|known| known.address == provider_address)
        };
        let rows = self.quotas.iter().filter(|(key, _)| ours(&key.provider));
        rows.map(|(key, row)| QuotaSlice {
            key: key.clone(),
            slice: row.get(shard).copied().unwrap_or_default(),
        })
        .collect()
    }
}

impl Assignment {
    fn content_digest(&self) -> u64 {
        let mut entries = Vec::new();
        for Domain { key, value } in &self.domains {
            entries.push(entry("domain", &[key, value]));
        }
        for cluster in &self.clusters {
            entries.push(entry("cluster", &[cluster]));
        }
        for (name, machines) in [("in", &self.machines_in), ("out", &self.machines_out)] {
            for TransferMachine { transfer, machine, home, .. } in machines {
                entries.push(entry(name, &[transfer, machine, &home.key, &home.value]));
            }
        }
        for QuotaSlice { key, slice } in &self.quota_slices {
            entries.push(entry("quota", &[&key.provider, &key.region, &slice.to_string()]));
        }
        for transfer in &self.open_transfers {
            entries.push(entry("open", &[transfer]));
        }
        digest::of_set(entries.iter().map(String::as_str))
    }
}

/// Parts behind their lengths, so that no two lists are one text.
fn entry(name: &str, parts: &[&str]) -> String {
    let mut text = name.to_owned();
    for part in parts {
        text.push_str(&format!(" {}:{part}", part.len()));
    }
    text
}
