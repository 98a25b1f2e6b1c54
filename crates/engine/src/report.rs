//! The last cycle in full, and the input that would lead to it: for readers,
//! tests and comparisons. Deciding needs neither.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use bigfleet_model::{
    HostRef, Machine, Need,
    grace::{VOLUNTARY_GRACE, drain_grace},
};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::{
    action::{Acquisition, Action, ActionCounts, ActionKind},
    engine::Engine,
    handle::{Handle, MachineIx, PreparedIx},
    input::{CycleInput, GangKey, NeedKey, Tracked},
    output::{CycleOutput, NeedIdx, Outcome, Unresolved, Verdict},
    verdict::supply_exists,
    world::{Constraint, Prepared, RunKind},
};

impl Engine {
    /// What the last cycle decided.
    pub fn output(&self) -> CycleOutput {
        let order = self.prepared_order();
        let mut places = vec![NeedIdx::default(); self.world.needs.len()];
        for (at, need) in order.iter().enumerate() {
            places[need.index()] = NeedIdx(at as u32);
        }
        let place = |need: PreparedIx| places[need.index()];
        let mut claims = BTreeMap::new();
        for &need in &order {
            for machine in self.world.needs[need].claims() {
                claims.insert(self.world.machines.id(machine).into(), place(need));
            }
        }
        let outgrown = self.world.outgrown.iter();
        let outgrown =
            outgrown.map(|(one, need)| (self.world.machines.id(*one).into(), place(*need)));
        let short = self.decided.short.iter().filter(|short| !short.open.is_zero());
        CycleOutput {
            verdicts: order.iter().map(|need| self.verdict(*need)).collect(),
            claims,
            outgrown: outgrown.collect(),
            actions: self.actions_of(&order, place, |need| place(need).0),
            unresolved: short
                .map(|short| Unresolved {
                    need: place(short.need),
                    deficit: short.open.clone(),
                    preempted: short.preempted,
                })
                .collect(),
            gang_ages: self.gang_ages(),
        }
    }

    /// What the last cycle asks for, in the order of [`CycleOutput::actions`].
    /// Numbers of needs are the engine's own: places among all verdicts are known
    /// only once all are at hand.
    pub fn actions(&self) -> Vec<Action> {
        let mut acting = self.decided.acquiring.clone();
        acting.sort_unstable_by(|a, b| self.serving_order(*a, *b));
        let mut preempting: Vec<PreparedIx> =
            self.inversions.victims.iter().map(|victim| victim.need).collect();
        preempting.sort_unstable_by(|a, b| self.serving_order(*a, *b));
        preempting.dedup();
        let turns: HashMap<PreparedIx, u32, FixedState> = preempting.into_iter().zip(0..).collect();
        self.actions_of(
            &acting,
            |need| NeedIdx(need.index() as u32),
            |need| turns.get(&need).copied().unwrap_or(0),
        )
    }

    /// Actions of the last cycle by kind.
    pub fn counts(&self) -> ActionCounts {
        let picked = |kind| {
            let of_need = |need: &PreparedIx| self.picked(&self.world.needs[*need], kind) as usize;
            self.decided.acquiring.iter().map(of_need).sum()
        };
        ActionCounts {
            bootstrap: picked(RunKind::Idle),
            provision: picked(RunKind::Speculative),
            preempt: self.inversions.victims.len(),
            reclaim: self.decided.reclaimed.len(),
            delete: self.decided.released.len(),
        }
    }

    pub(crate) fn serving_order(&self, a: PreparedIx, b: PreparedIx) -> Ordering {
        let world = &self.world;
        world.precedence(b).cmp(&world.precedence(a)).then_with(|| world.serving_order(a, b))
    }

    /// Needs as the phases saw them, in the total order.
    pub(crate) fn prepared_order(&self) -> Vec<PreparedIx> {
        let world = &self.world;
        let stands = |row: &Prepared| {
            !row.removed
                && if row.is_fold() {
                    !world.folded(row).is_empty()
                } else {
                    row.folded_into.is_none()
                }
        };
        let mut order: Vec<PreparedIx> =
            world.needs.iter().filter(|(_, row)| stands(row)).map(|(need, _)| need).collect();
        order.sort_unstable_by(|a, b| self.serving_order(*a, *b));
        order
    }

    fn gang_ages(&self) -> BTreeMap<GangKey, u32> {
        let aged = self.world.needs.iter().filter(|(_, row)| !row.removed && row.age > 0);
        aged.map(|(_, row)| {
            let key = GangKey {
                cluster: self.world.names.clusters[row.cluster].id.clone(),
                group: self.world.group(row).clone(),
                fingerprint: self.world.fingerprint(row.profile).clone(),
            };
            (key, row.age)
        })
        .collect()
    }

    pub(crate) fn key_of(&self, need: PreparedIx) -> NeedKey {
        let row = &self.world.needs[need];
        NeedKey {
            cluster: self.world.names.clusters[row.cluster].id.clone(),
            fingerprint: self.world.fingerprint(row.profile).clone(),
            group: self.world.group(row).clone(),
        }
    }

    fn picked(&self, need: &Prepared, kind: RunKind) -> u32 {
        let of_kind = need.picks.iter().filter(|pick| self.world.runs[pick.run].kind == kind);
        of_kind.count() as u32
    }

    pub(crate) fn verdict(&self, need: PreparedIx) -> Verdict {
        let world = &self.world;
        let row = &world.needs[need];
        let key = self.key_of(need);
        let short = row.short.map(|at| &self.decided.short[at as usize]);
        let (bootstrap, provision) =
            (self.picked(row, RunKind::Idle), self.picked(row, RunKind::Speculative));
        let outcome = if short.is_some() {
            Outcome::Unsatisfied
        } else if provision > 0 {
            Outcome::EmittedSpec
        } else if bootstrap > 0 {
            Outcome::EmittedIdle
        } else {
            Outcome::AbsorbedBySupply
        };
        let domain = row.domain.filter(|_| row.constraint == Constraint::Same);
        let domain = domain.zip(world.topology(row)).map(|(domain, topology)| {
            topology.keys.iter().cloned().zip(topology.values(domain).iter().cloned()).collect()
        });
        Verdict {
            cluster: key.cluster,
            fingerprint: key.fingerprint,
            group: key.group,
            aggregate: row.aggregate.clone(),
            min_unit: world.pools[row.pool].key.unit.clone(),
            folded: world.folded(row).len() as u32,
            satisfied: short.is_none(),
            deficit: short.map(|short| short.deficit.clone()).unwrap_or_default(),
            claimed: row.claims().count() as u32,
            bootstrap,
            provision,
            domain,
            satisfiable: row.satisfiable,
            parked: row.was_parked,
            matching_supply_exists: supply_exists(world, row),
            gang_age: row.age,
            outcome,
            reason: short.map(|short| short.reason),
            detail: short.and_then(|short| short.detail),
        }
    }

    fn actions_of(
        &self,
        order: &[PreparedIx],
        place: impl Fn(PreparedIx) -> NeedIdx,
        turn: impl Fn(PreparedIx) -> u32,
    ) -> Vec<Action> {
        let mut actions = Vec::new();
        let label = |machine: MachineIx| self.world.machines.rows[machine].label;
        for &need in order.iter().filter(|need| !self.world.needs[**need].picks.is_empty()) {
            self.acquisitions(need, place(need), &mut actions);
        }
        let mut victims = self.inversions.victims.clone();
        victims.sort_unstable_by_key(|victim| (turn(victim.need), label(victim.machine)));
        for victim in victims {
            let kind = ActionKind::Preempt {
                cluster: self.cluster_of(victim.machine),
                grace: drain_grace(victim.gap),
                preemptor_priority: self.world.priority(victim.need),
                preemptor: self.key_of(victim.need),
                need: place(victim.need),
            };
            actions.push(self.taking(victim.machine, kind));
        }
        for &machine in &self.decided.reclaimed {
            let cluster = self.cluster_of(machine);
            let kind = ActionKind::Reclaim { cluster, grace: VOLUNTARY_GRACE };
            actions.push(self.taking(machine, kind));
        }
        for &machine in &self.decided.released {
            actions.push(self.taking(machine, ActionKind::Delete));
        }
        actions
    }

    /// Bootstraps and provisions of one need, by machine.
    fn acquisitions(&self, need: PreparedIx, at: NeedIdx, actions: &mut Vec<Action>) {
        let row = &self.world.needs[need];
        let mut picks = row.picks.clone();
        picks.sort_unstable_by_key(|pick| self.world.machines.rows[pick.machine].label);
        let stamp = Arc::new(self.stamp_of(need));
        for pick in picks {
            let acquisition = Acquisition {
                cluster: self.world.names.clusters[row.cluster].id.clone(),
                stamp: stamp.clone(),
                need: at,
            };
            let kind = match self.world.runs[pick.run].kind {
                RunKind::Idle => ActionKind::Bootstrap(acquisition),
                RunKind::Speculative => ActionKind::Provision(acquisition),
                // Already being created: it is waited for.
                _ => continue,
            };
            actions.push(Action {
                machine: self.world.machines.id(pick.machine).into(),
                kind,
                cost: pick.cost,
                runner_up_cost: pick.runner_up,
                domain_rule: row.rule,
            });
        }
    }

    fn cluster_of(&self, machine: MachineIx) -> bigfleet_model::ClusterId {
        let cluster = self.world.machines.rows[machine].cluster;
        cluster.map_or_else(|| "".into(), |cluster| self.world.names.clusters[cluster].id.clone())
    }

    /// An action that takes a machine from somebody costs what the machine costs.
    fn taking(&self, machine: MachineIx, kind: ActionKind) -> Action {
        Action {
            machine: self.world.machines.id(machine).into(),
            kind,
            cost: self.world.classes[self.world.machines.rows[machine].class].price,
            runner_up_cost: None,
            domain_rule: 0,
        }
    }

    /// What the next cycle decides from.
    pub fn input(&self) -> CycleInput {
        let world = &self.world;
        let all = || world.machines.rows.iter().filter(|(_, row)| !row.removed);
        let needs = || world.needs.iter().filter(|(_, row)| !row.removed && !row.is_fold());
        let held = needs().filter_map(|(need, row)| Some((self.key_of(need), row.held?)));
        let held_back = all()
            .filter_map(|(number, row)| Some((world.machines.id(number).into(), row.held_back?)));
        let ready = world.names.clusters.iter().filter(|(_, cluster)| cluster.ready);
        CycleInput {
            snapshot: all().map(|(number, _)| self.tracked_at(number)).collect(),
            demand: needs().map(|(_, row)| self.need(row)).collect(),
            pending: world.machines.pending.values().flatten().cloned().collect(),
            ready: ready.map(|(_, cluster)| cluster.id.clone()).collect(),
            gang_ages: self.gang_ages(),
            no_acquire: held.collect(),
            held_back: held_back.collect(),
            phase2: self.options,
            release: self.release,
            now: self.decided.now,
        }
    }

    pub(crate) fn need(&self, row: &Prepared) -> Need {
        let unit = &self.world.pools[row.pool].key.unit;
        Need {
            cluster: self.world.names.clusters[row.cluster].id.clone(),
            profile: self.world.profiles[row.profile].profile.clone(),
            group: self.world.group(row).clone(),
            aggregate: row.aggregate.clone(),
            min_unit: unit.iter().map(|(dimension, amount)| (dimension, amount as i64)).collect(),
            arrival: row.arrival,
        }
    }

    pub(crate) fn tracked_at(&self, number: MachineIx) -> Tracked {
        let world = &self.world;
        let row = &world.machines.rows[number];
        let reported = world.machines.reported(number);
        let error = world.machines.errors.get(&number);
        let stamp = reported.stamp.map(|stamp| Arc::new(world.names.stamp_text(stamp)));
        Tracked {
            machine: Machine {
                id: world.machines.id(number).into(),
                state: reported.state,
                host: world.machines.host(number).map(|(provider, reference)| HostRef {
                    provider: provider.to_owned(),
                    reference: reference.to_owned(),
                }),
                class: world.classes[row.class].class.clone(),
                cluster: reported.cluster.map(|cluster| world.names.clusters[cluster].id.clone()),
                last_error: error.map(|error| error.to_string()).unwrap_or_default(),
                // All of it is in the stamp, and making it is dear.
                shard_metadata: Default::default(),
                stamp,
            },
            idle_since: world.machines.idle_since.get(&number).copied(),
            drain: world.machines.drains.get(&number).cloned(),
        }
    }
}
