//! Steps 3 to 7: what a report says, and what is to be committed for it.

use std::collections::BTreeSet;

use bigfleet_wire::v1alpha1::{self as wire, instruct_ack::Outcome};

use super::{
    Kept, Now, Rejected, Reports, limits,
    pending::Acked,
    wire::{domain, holdings, keys, machine_ids, settled},
};
use crate::state::{ClusterId, Command, Key, MAX_BATCH, ShardId, State, TransferId, TransferPhase};

/// Characters of a donor's reason that are kept.
const LONGEST_REASON: usize = 500;

/// A report that was taken: what to commit for it, and what its answer needs.
#[derive(Debug)]
pub struct Taken {
    /// To be committed, in this order, before the answer.
    pub commands: Vec<Command>,
    /// Transfers among them that end because of what the donor said.
    pub refusals: Vec<Refusal>,
    pub(super) shard: ShardId,
    /// Not late, not repeated.
    pub(super) fresh: bool,
    /// It names this very fleet and generation.
    pub(super) of_this_fleet: bool,
    pub(super) assignment_digest: u64,
    pub(super) assignment_version: u64,
    pub(super) cluster_digest: u64,
    pub(super) named_clusters: Vec<ClusterId>,
}

/// Why a transfer ends before anything has moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which.
    pub transfer: TransferId,
    /// Whom it asked.
    pub donor: ShardId,
    /// The donor's words, or what is wrong with what it let go of.
    pub reason: String,
}

/// Commands as entries of the log: several in one, as many as fit.
#[must_use]
pub fn batches(mut commands: Vec<Command>) -> Vec<Command> {
    if commands.len() < 2 {
        return commands;
    }
    let mut entries = Vec::new();
    while !commands.is_empty() {
        let rest = commands.split_off(commands.len().min(MAX_BATCH));
        entries.push(Command::Batch { commands });
        commands = rest;
    }
    entries
}

impl Reports {
    /// Takes a report whose process is known.
    pub fn take(
        &mut self,
        state: &State,
        mut report: wire::ShardReport,
        now: Now,
    ) -> Result<Taken, Rejected> {
        let shard = ShardId::from(report.shard_id.as_str());
        if let Some(known) = state.shard(&shard) {
            self.in_order(known, &report)?;
        }
        let of_this_fleet = Some(report.fleet_id.as_str()) == state.fleet_id();
        let fresh = self.is_fresh(&shard, &report);
        if fresh {
            self.record(state, &shard, &mut report, now);
        }
        let mut taken = Taken {
            commands: Vec::new(),
            refusals: Vec::new(),
            fresh,
            of_this_fleet,
            assignment_digest: report.assignment_digest,
            assignment_version: u64::try_from(report.assignment_version).unwrap_or_default(),
            cluster_digest: report.cluster_digest,
            named_clusters: report.cluster_ids.iter().map(|id| id.as_str().into()).collect(),
            shard,
        };
        self.take_acks(state, &report, &mut taken);
        take_settled(state, &report, &mut taken);
        if of_this_fleet {
            take_released(state, &report, &mut taken);
        }
        if fresh && state.recovering() {
            take_holdings(state, &report, &mut taken);
        } else if fresh {
            self.take_clusters(state, &report, &mut taken);
        }
        Ok(taken)
    }

    /// The second half of step 3. A report without an epoch, 0, is compared by cycles alone.
    fn is_fresh(&self, shard: &ShardId, report: &wire::ShardReport) -> bool {
        let Some((epoch, cycle)) = self.shards.get(shard).and_then(|soft| soft.order) else {
            return true;
        };
        report.shard_epoch > epoch || report.cycle > cycle
    }

    /// Step 4; and all domains again to a process that gets no Assignment and has not
    /// been told of them by this leader.
    fn record(&mut self, state: &State, shard: &ShardId, report: &mut wire::ShardReport, now: Now) {
        let (kept, dropped) = Kept::new(report, now.unix_nanos);
        self.tally.shortfalls_dropped += dropped;
        let soft = self.shards.entry(shard.clone()).or_default();
        let told = soft.order.is_some_and(|(epoch, _)| epoch == report.shard_epoch);
        soft.heard = Some((now.monotonic, now.unix_nanos));
        soft.order = Some((report.shard_epoch, report.cycle));
        soft.kept = Some(kept);
        let shared = state.shard(shard).is_none_or(|shard| shard.shared);
        if told && !shared {
            return;
        }
        soft.instructions.forget_domains();
        if shared {
            return;
        }
        let mut instructions = std::mem::take(&mut soft.instructions);
        for domain in state.domains_of(shard) {
            let (seq, id) = self.draw();
            instructions.assign(seq, id, domain.clone(), now.monotonic);
        }
        self.shards.entry(shard.clone()).or_default().instructions = instructions;
    }

    /// Step 5.
    fn take_acks(&mut self, state: &State, report: &wire::ShardReport, taken: &mut Taken) {
        for ack in &report.instruction_acks {
            let transfer = state.transfers().get(ack.instruction_id.as_str());
            if transfer.is_some_and(|transfer| transfer.from == taken.shard) {
                self.take_release(state, ack, taken);
                continue;
            }
            let soft = self.shards.get_mut(&taken.shard);
            if soft.map(|soft| soft.instructions.acked(ack)) == Some(Acked::GivenUp) {
                self.tally.instructions_given_up += 1;
            }
        }
    }

    fn take_release(&mut self, state: &State, ack: &wire::InstructAck, taken: &mut Taken) {
        match end_of_release(state, ack) {
            Some(Ok(command)) => taken.commands.push(command),
            Some(Err(reason)) => {
                let (transfer, donor) = (TransferId::from(&*ack.instruction_id), &taken.shard);
                // Before the commit: it must be known when the transfer is found to be gone.
                self.refused.insert(transfer.clone());
                taken.commands.push(Command::EndTransfer { id: transfer.clone() });
                taken.refusals.push(Refusal { transfer, donor: donor.clone(), reason });
            }
            None => {}
        }
    }

    /// The second half of step 7: first contact wins, whoever comes later is counted.
    fn take_clusters(&mut self, state: &State, report: &wire::ShardReport, taken: &mut Taken) {
        let named: BTreeSet<&String> = report.cluster_ids.iter().collect();
        for cluster in named {
            let key = Key::Cluster(cluster.as_str().into());
            match state.row(&key).and_then(|row| row.owner.as_ref()) {
                Some(owner) if *owner == taken.shard => {}
                Some(_) => self.tally.binding_conflicts += 1,
                None => taken.commands.push(Command::BindCluster {
                    cluster: cluster.as_str().into(),
                    shard: taken.shard.clone(),
                }),
            }
        }
    }
}

/// What the donor's answer does to a transfer that waits for it: it goes on, or why it
/// ends.
fn end_of_release(state: &State, ack: &wire::InstructAck) -> Option<Result<Command, String>> {
    let id = ack.instruction_id.as_str();
    let transfer = state.transfers().get(id)?;
    if transfer.phase != TransferPhase::Releasing {
        return None;
    }
    let id = id.into();
    match Outcome::try_from(ack.outcome) {
        Ok(Outcome::Accepted) => {
            // It may have let go of what cannot be moved.
            let released = limits::released(ack).map_err(|invalid| invalid.to_string());
            Some(released.map(|home| Command::ReleaseTransfer {
                id,
                home: domain(home),
                machine_ids: machine_ids(&ack.machine_ids),
            }))
        }
        Ok(Outcome::RejectedInvalid) => {
            Some(Err(ack.reason.chars().take(LONGEST_REASON).collect()))
        }
        // Asked again, until it is given up.
        Ok(Outcome::RejectedStale | Outcome::Failed | Outcome::Unspecified) | Err(_) => None,
    }
}

fn take_settled(state: &State, report: &wire::ShardReport, taken: &mut Taken) {
    let settled: Vec<_> = settled(&report.settled)
        .filter(|one| {
            let transfer = state.transfers().get(&one.transfer);
            transfer.is_some_and(|transfer| {
                transfer.to == taken.shard && transfer.machine_ids.contains(&one.machine)
            })
        })
        .collect();
    if !settled.is_empty() {
        taken.commands.push(Command::Settle { shard: taken.shard.clone(), settled });
    }
}

/// Step 6. Never inferred from a digest, an ack or silence: such a report may be older
/// than the last grant.
fn take_released(state: &State, report: &wire::ShardReport, taken: &mut Taken) {
    let still: BTreeSet<Key> = report.releasing.iter().flat_map(keys).collect();
    let version = taken.assignment_version;
    let let_go = state.releasing_from(&taken.shard).filter(|(_, since)| *since <= version);
    let let_go: Vec<Key> =
        let_go.map(|(key, _)| key.clone()).filter(|key| !still.contains(key)).collect();
    for keys in let_go.chunks(MAX_BATCH) {
        let (shard, keys) = (taken.shard.clone(), keys.to_vec());
        taken.commands.push(Command::Released { shard, keys, version });
    }
}

/// While recovering: what the shard holds is the truth.
fn take_holdings(state: &State, report: &wire::ShardReport, taken: &mut Taken) {
    let asked = state.shard(&taken.shard).is_some_and(|shard| shard.shared)
        && taken.of_this_fleet
        && !state.adopted(&taken.shard);
    if let Some(held) = report.holdings.as_ref().filter(|_| asked) {
        let (shard, holdings) = (taken.shard.clone(), holdings(held));
        taken.commands.push(Command::AdoptHoldings { shard, holdings });
    }
}
