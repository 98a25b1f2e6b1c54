//! Arbitrary commands over few names, so that they meet.

use bigfleet_coordinator::state::{
    Command, Domain, Holdings, Key, MachineId, MachineIn, Settled, ShardId, State, TransferKind,
    TransferRequest,
};

/// SplitMix64: the same seed, the same log.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of a few names; rarely one that nobody has.
    fn name(&mut self, prefix: &str, few: u64) -> String {
        format!("{prefix}-{}", self.below(few))
    }

    pub(crate) fn shard(&mut self) -> ShardId {
        self.name("shard", 5).into()
    }

    fn domain(&mut self) -> Domain {
        let key = if self.chance(80) { "zone" } else { "rack" };
        Domain::new(key, &self.below(4).to_string())
    }

    fn machine(&mut self) -> MachineId {
        self.name("machine", 12).into()
    }

    fn key(&mut self) -> Key {
        if self.chance(50) {
            Key::Domain(self.domain())
        } else {
            Key::Cluster(self.name("cluster", 4).into())
        }
    }

    fn several<T>(&mut self, most: u64, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| one(self)).collect()
    }
}

/// A command that may or may not be valid now. `state` lends what a random name would
/// seldom hit: who owns a row, which version counts.
pub(crate) fn command(random: &mut Random, state: &State) -> Command {
    match random.below(40) {
        0..5 => Command::AddShard {
            id: random.shard(),
            address: random.name("host", 3),
            registered_at: i64::try_from(random.below(1 << 40)).unwrap_or_default(),
            epoch: random.below(3) as i64,
            instance: random.below(3),
            shared: random.chance(70),
        },
        5 => Command::RemoveShard { id: random.shard() },
        6..9 => Command::BindCluster {
            cluster: random.name("cluster", 4).into(),
            shard: random.shard(),
        },
        9..12 => Command::AssignDomain { domain: random.domain(), shard: random.shard() },
        12 => Command::UnassignDomain { domain: random.domain() },
        13 => Command::SetQuota {
            provider: random.name("provider", 2),
            region: random.name("region", 2),
            per_shard: random
                .several(2, |random| (random.shard(), random.below(9) as i32 - 1))
                .into_iter()
                .collect(),
        },
        14 => Command::UpsertProvider {
            name: random.name("provider", 2),
            address: random.name("host", 3),
            region: random.name("region", 2),
        },
        15 => Command::UpdateShard {
            id: random.shard(),
            address: random.name("host", 3),
            epoch: random.below(5) as i64,
            instance: random.below(3),
            shared: random.chance(30),
        },
        16 => Command::InitFleet { fleet_id: random.name("fleet", 2) },
        17 => Command::UpsertReplica {
            node_id: random.name("node", 3),
            incarnation: random.below(9),
            raft_address: random.name("host", 3),
            grpc_address: random.name("host", 3),
            max_kind: 20 + random.below(5) as u32,
        },
        18 => Command::RemoveReplica { node_id: random.name("node", 3) },
        19..22 => Command::BeginTransfer {
            id: random.name("transfer", 6).into(),
            kind: [TransferKind::Idle, TransferKind::Speculative, TransferKind::Drain]
                [random.below(3) as usize],
            from: random.shard(),
            to: random.shard(),
            request: TransferRequest {
                count: random.below(9) as i32,
                ..TransferRequest::default()
            },
        },
        22..26 => release(random, state),
        26 => Command::EndTransfer { id: random.name("transfer", 6).into() },
        27 => Command::RemoveProvider { name: random.name("provider", 2) },
        28..30 => Command::Settle {
            shard: random.shard(),
            settled: random.several(4, |random| Settled {
                transfer: random.name("transfer", 6).into(),
                machine: random.machine(),
            }),
        },
        30..33 => moved(random, state),
        33..36 => Command::Released {
            shard: random.shard(),
            keys: random.several(6, Random::key),
            version: state.applied_index().saturating_sub(random.below(6)),
        },
        36 => Command::ConfirmRestore {},
        37 => Command::AdoptHoldings {
            shard: random.shard(),
            holdings: Holdings {
                domains: random.several(3, Random::domain),
                clusters: random.several(3, |random| random.name("cluster", 4).into()),
                machines_in: random.several(3, |random| MachineIn {
                    transfer: random.name("transfer", 6).into(),
                    machine: random.machine(),
                    home: random.domain(),
                    from: random.shard(),
                }),
            },
        },
        _ => Command::Batch {
            commands: (0..random.below(6))
                .map(|_| command(random, state))
                .filter(seldom_nested)
                .collect(),
        },
    }
}

/// A Batch within a Batch refuses all of it: mostly not what is wanted here.
fn seldom_nested(command: &Command) -> bool {
    !matches!(command, Command::Batch { commands } if commands.len() > 1)
}

/// A release that often fits its donor.
fn release(random: &mut Random, state: &State) -> Command {
    let id = random.name("transfer", 6);
    let donor = state.transfers().get(id.as_str()).map(|transfer| transfer.from.clone());
    let homes: Vec<&Domain> = donor.iter().flat_map(|from| state.domains_of(from)).collect();
    let home = match homes.len() {
        0 => random.domain(),
        some => homes[random.below(some as u64) as usize].clone(),
    };
    Command::ReleaseTransfer {
        id: id.into(),
        home,
        machine_ids: random.several(3, Random::machine),
    }
}

/// A move that often starts at the owner.
fn moved(random: &mut Random, state: &State) -> Command {
    let key = random.key();
    let owner = state.row(&key).and_then(|row| row.owner.clone());
    let from = owner.unwrap_or_else(|| random.shard());
    let to = random.shard();
    match key {
        Key::Cluster(cluster) => Command::MoveCluster { cluster, from, to },
        Key::Domain(domain) => Command::MoveDomain { domain, from, to },
    }
}
