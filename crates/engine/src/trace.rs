//! Why machines were acquired, for those who follow a cycle step by step (§10).

use bigfleet_model::MachineId;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::{engine::Engine, handle::MachineIx, input::NeedKey};

/// Why a machine was acquired, for a trace (§10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The machine.
    pub machine: MachineId,
    /// For whom; of a fold the fold's identity, which the machine's stamp carries.
    pub need: NeedKey,
    /// The need's place in the total order of the needs that the phases saw: its
    /// number in [`crate::CycleOutput`].
    pub rank: u32,
    /// For gangs, which rule of the domain choice told the best domain from the
    /// second best; 0 without a contest.
    pub domain_rule: u8,
    /// Set for a folded gang: the first member that the machine serves.
    pub member: Option<NeedKey>,
}

impl Engine {
    /// One entry per machine that the last cycle acquires or waits for, by (rank,
    /// machine). Everything in it is worked out here: a cycle does not know whether
    /// it is traced.
    pub fn trace(&self) -> Vec<Trace> {
        let (world, reader) = (&self.world, self.reader());
        let mut traces = Vec::new();
        for (rank, need) in self.prepared_order().into_iter().enumerate() {
            let row = &world.needs[need];
            let mut picks: Vec<MachineIx> = row.picks.iter().map(|pick| pick.machine).collect();
            picks.sort_unstable_by_key(|machine| world.machines.rows[*machine].label);
            let deal = (row.is_fold() && !picks.is_empty()).then(|| reader.deal(need));
            let firsts: HashMap<MachineIx, usize, FixedState> =
                deal.iter().flat_map(|deal| deal.firsts(world.folded(row).len())).collect();
            for machine in picks {
                traces.push(Trace {
                    machine: world.machines.id(machine).into(),
                    need: self.key_of(need),
                    rank: rank as u32,
                    domain_rule: row.rule,
                    member: firsts.get(&machine).map(|at| self.key_of(world.folded(row)[*at])),
                });
            }
        }
        traces
    }
}
