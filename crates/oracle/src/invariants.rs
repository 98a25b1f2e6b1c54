//! The invariants of §15 that one cycle's input and output can show, for any
//! implementation of the cycle.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bigfleet_engine::{
    Action, ActionKind, CycleInput, CycleOutput, NeedKey, Verdict, input::merge, output::NeedIdx,
};
use bigfleet_model::{CapacityType, MachineId, MachineState, Totals};

use crate::{
    acquire::state_rank,
    cycle::Cycle,
    fold::{folded_group, folded_profile},
    need::{Domain, Prepared},
    phase2::effective_priority,
    phase3::awaited,
    prepare::unmarked,
    spread::skew,
};

/// Violations, each beginning with its number. An empty list is no proof: what
/// the output does not tell, such as reservations, is given the benefit of doubt.
pub fn check(input: &CycleInput, output: &CycleOutput) -> Vec<String> {
    let mut found = Vec::new();
    let Some(world) = World::read(input, output, &mut found) else { return found };
    world.claims(&mut found);
    world.every_bound_machine(&mut found);
    world.actions(&mut found);
    world.sizing(&mut found);
    world.priority(&mut found);
    world.topology(&mut found);
    world.folds(&mut found);
    world.reclaims(&mut found);
    world.outgrown(&mut found);
    world.quiet(&mut found);
    found
}

/// The cycle as the output leaves it.
struct World<'a> {
    cycle: Cycle<'a>,
    output: &'a CycleOutput,
    places: BTreeMap<MachineId, usize>,
}

type Found = Vec<String>;

impl<'a> World<'a> {
    fn read(input: &'a CycleInput, output: &'a CycleOutput, found: &mut Found) -> Option<Self> {
        let mut cycle = Cycle::new(input);
        let places: BTreeMap<MachineId, usize> =
            cycle.all().map(|machine| (cycle.machine(machine).id.clone(), machine)).collect();
        let demand: Vec<Prepared> = merge(input.demand.clone()).iter().map(unmarked).collect();
        for (number, verdict) in output.verdicts.iter().enumerate() {
            match need_of(input, output, &demand, verdict) {
                Some(need) => cycle.needs.push(need),
                None => {
                    found.push(format!("9: verdict {number} belongs to no need"));
                    return None;
                }
            }
        }
        let claims = output.claims.iter().map(|claim| (claim, false));
        let outgrown = output.outgrown.iter().map(|claim| (claim, true));
        for ((machine, NeedIdx(need)), outgrown) in claims.chain(outgrown) {
            let of = if outgrown { &mut cycle.outgrown_by } else { &mut cycle.claimed_by };
            match places.get(machine) {
                Some(place) if (*need as usize) < cycle.needs.len() => {
                    of[*place] = Some(*need as usize);
                }
                _ => {
                    found.push(format!("1: {machine} is claimed by {need}: no such thing"));
                    return None;
                }
            }
        }
        cycle.keep_what_is_left();
        let unknown = output.actions.iter().find(|action| !places.contains_key(&action.machine));
        if let Some(action) = unknown {
            found.push(format!("8: action for unknown machine {}", action.machine));
            return None;
        }
        Some(Self { cycle, output, places })
    }

    fn needs(&self) -> impl Iterator<Item = (usize, &Prepared, &Verdict)> {
        let needs = self.cycle.needs.iter().zip(&self.output.verdicts).enumerate();
        needs.map(|(number, (need, verdict))| (number, need, verdict))
    }

    fn actions_of(&self, wanted: fn(&ActionKind) -> Option<NeedIdx>, need: usize) -> Vec<usize> {
        self.output
            .actions
            .iter()
            .filter(|action| wanted(&action.kind).is_some_and(|NeedIdx(n)| n as usize == need))
            .map(|action| self.places[&action.machine])
            .collect()
    }

    fn acquired_by_action(&self, need: usize) -> Vec<usize> {
        self.actions_of(acquirer, need)
    }

    fn victims(&self, need: usize) -> Vec<usize> {
        self.actions_of(preemptor, need)
    }

    /// Claimed this cycle by acquisition: Idle, Speculative, reserved Creating.
    fn picks(&self, need: usize) -> Vec<usize> {
        let mut claims = self.cycle.claims(need);
        claims.retain(|machine| self.cycle.acquirable_state(*machine));
        claims
    }

    fn credit(&self, need: usize) -> Vec<usize> {
        let mut claims = self.cycle.claims(need);
        claims.retain(|machine| !self.cycle.acquirable_state(*machine));
        claims
    }

    /// Unclaimed candidates, in the domain of a gang.
    fn candidates(&self, need: usize) -> Vec<usize> {
        let mut candidates = self.cycle.acquirable(need);
        let prepared = &self.cycle.needs[need];
        candidates.retain(|machine| {
            prepared.within(prepared.domain.as_ref(), self.cycle.machine(*machine))
        });
        candidates
    }

    fn id(&self, machine: usize) -> &MachineId {
        &self.cycle.machine(machine).id
    }

    /// 1–5, 7.
    fn claims(&self, found: &mut Found) {
        for (number, need, verdict) in self.needs() {
            let claims = self.cycle.claims(number);
            if claims.len() != verdict.claimed as usize {
                found.push(format!("1: need {number} says {} claims", verdict.claimed));
            }
            for machine in claims {
                let record = self.cycle.machine(machine);
                if !need.usable(record) {
                    found.push(format!("2: need {number} cannot use {}", record.id));
                }
                match record.state {
                    MachineState::Configured | MachineState::Configuring
                        if record.cluster.as_ref() != Some(&need.cluster) =>
                    {
                        found.push(format!("3: need {number} claims foreign {}", record.id));
                    }
                    MachineState::Creating if record.stamp.is_some() && !need.owns(record) => {
                        found.push(format!("4: need {number} claims bought {}", record.id));
                    }
                    MachineState::Draining | MachineState::Deleting | MachineState::Failed => {
                        found.push(format!("5: need {number} claims {}", record.id));
                    }
                    _ => {}
                }
            }
            if self.cycle.residual(number) != verdict.deficit {
                found.push(format!("7: need {number} has another deficit than it says"));
            }
            if verdict.deficit.is_zero() != verdict.satisfied {
                found.push(format!("7: need {number} is satisfied with a deficit, or not without"));
            }
        }
    }

    /// 6.
    fn every_bound_machine(&self, found: &mut Found) {
        let victims: BTreeSet<usize> =
            (0..self.cycle.needs.len()).flat_map(|need| self.victims(need)).collect();
        let reclaimed: BTreeSet<usize> = self
            .output
            .actions
            .iter()
            .filter(|action| matches!(action.kind, ActionKind::Reclaim { .. }))
            .map(|action| self.places[&action.machine])
            .collect();
        for machine in self.cycle.all() {
            let record = self.cycle.machine(machine);
            let ready = record.cluster.as_ref().is_some_and(|c| self.cycle.input.ready.contains(c));
            if record.state != MachineState::Configured || !ready {
                continue;
            }
            let claimed = !self.cycle.is_left(machine);
            let (victim, reclaim) = (victims.contains(&machine), reclaimed.contains(&machine));
            if claimed && reclaim {
                found.push(format!("6: {} is claimed and reclaimed", record.id));
            } else if !claimed && victim && reclaim {
                found.push(format!("6: {} is a victim and reclaimed", record.id));
            } else if !claimed && !victim && reclaim == awaited(&self.cycle, machine) {
                // A domain taken in Phase 2 awaits nothing, and looks like another.
                let unsure = self.needs().any(|(number, need, verdict)| {
                    need.same() && !verdict.satisfied && self.cycle.claims(number).is_empty()
                });
                if !unsure || !reclaim {
                    found.push(format!("6: {} is reclaimed {reclaim}", record.id));
                }
            }
        }
    }

    /// 8, 41, 43.
    fn actions(&self, found: &mut Found) {
        let mut seen = BTreeSet::new();
        for action in &self.output.actions {
            let place = self.places[&action.machine];
            let machine = self.cycle.machine(place);
            if !seen.insert(&action.machine) {
                found.push(format!("8: two actions for {}", action.machine));
            }
            if machine.state != action.kind.start() {
                found.push(format!("8: {} starts from {:?}", action.machine, machine.state));
            }
            match &action.kind {
                ActionKind::Reclaim { cluster, .. }
                    if !self.cycle.input.ready.contains(cluster) =>
                {
                    found.push(format!("41: {} of a silent cluster is reclaimed", action.machine));
                }
                ActionKind::Delete
                    if !matches!(
                        machine.class.capacity_type,
                        CapacityType::OnDemand | CapacityType::Spot
                    ) =>
                {
                    found.push(format!("43: owned {} is deleted", action.machine));
                }
                ActionKind::Bootstrap(_) | ActionKind::Provision(_)
                    if self.cycle.claimed_by[place].is_none() =>
                {
                    found.push(format!("8: {} is acquired and not claimed", action.machine));
                }
                _ => {}
            }
        }
    }

    /// 10, 11, 13, 14, 16, 17.
    fn sizing(&self, found: &mut Found) {
        for Action { machine, cost, runner_up_cost, .. } in &self.output.actions {
            if cost.is_nan() || runner_up_cost.is_some_and(|cost| !cost.is_finite()) {
                found.push(format!("17: cost of {machine}"));
            }
        }
        for (number, need, verdict) in self.needs() {
            let credit = self.credit(number);
            let picks = self.picks(number);
            let covered = self.cycle.residual_with(number, &credit).is_zero();
            if covered && !(picks.is_empty() && self.victims(number).is_empty()) {
                found.push(format!("10: need {number} is covered by credit and acts"));
            }
            if verdict.satisfied {
                for pick in &picks {
                    if self.redundant(number, *pick) {
                        found.push(format!("11: need {number} could drop {}", self.id(*pick)));
                    }
                }
            }
            let spread = need.spread().is_some();
            if verdict.provision > 0 && !spread {
                let idle = |m: &usize| self.cycle.machine(*m).state == MachineState::Idle;
                let mut enough = credit.clone();
                enough.extend(picks.iter().copied().filter(idle));
                enough.extend(self.candidates(number).into_iter().filter(idle));
                if self.cycle.residual_with(number, &enough).is_zero() {
                    found.push(format!("13: need {number} buys while idle machines cover it"));
                }
            }
            if need.same() || spread {
                continue;
            }
            for pick in &picks {
                for other in self.candidates(number) {
                    if self.cheaper_twin(number, *pick, other) {
                        let (pick, other) = (self.id(*pick), self.id(other));
                        found.push(format!("14: need {number} took {pick} before {other}"));
                    }
                }
            }
            if !verdict.satisfied && need.held.is_none() {
                for other in self.candidates(number) {
                    if self.cycle.lowers(number, other, &verdict.deficit) {
                        found.push(format!("16: need {number} leaves {}", self.id(other)));
                    }
                }
            }
        }
    }

    /// Without the pick the need is covered, and so is its spread: even with every
    /// domain that could be known when it acquired.
    fn redundant(&self, need: usize, pick: usize) -> bool {
        let cycle = &self.cycle;
        let mut rest = cycle.claims(need);
        rest.retain(|machine| *machine != pick);
        let even = || {
            let counts = cycle.spread_counts(need, &rest, &self.ever(need));
            cycle.needs[need].spread().is_none() || skew(&counts) <= cycle.max_skew(need)
        };
        cycle.residual_with(need, &rest).is_zero() && even()
    }

    /// Candidates of the need or of whoever took them.
    fn ever(&self, need: usize) -> Vec<usize> {
        let cycle = &self.cycle;
        let candidate = |machine: &usize| {
            cycle.acquirable_state(*machine)
                && !cycle.held_back(*machine)
                && cycle.usable(need, *machine)
        };
        cycle.all().filter(candidate).collect()
    }

    fn cheaper_twin(&self, need: usize, pick: usize, other: usize) -> bool {
        let (a, b) = (self.cycle.machine(pick), self.cycle.machine(other));
        let cost = |machine: usize| self.cycle.effective_cost(need, machine);
        state_rank(a.state) == state_rank(b.state)
            && a.class.capacity() == b.class.capacity()
            && cost(other)
                .total_cmp(&cost(pick))
                .then_with(|| self.cycle.price(other).total_cmp(&self.cycle.price(pick)))
                .then_with(|| b.id.cmp(&a.id))
                .is_lt()
    }

    /// 21, 22, 24.
    fn priority(&self, found: &mut Found) {
        for (number, need, verdict) in self.needs() {
            let victims = self.victims(number);
            for victim in &victims {
                if effective_priority(&self.cycle, *victim) >= Some(need.profile.priority()) {
                    found.push(format!("21: need {number} evicts {}", self.id(*victim)));
                }
                if self.cycle.claimed_by[*victim] == Some(number) {
                    found.push(format!("22: need {number} evicts its own {}", self.id(*victim)));
                }
                let mut rest = verdict.deficit.clone();
                for other in victims.iter().filter(|other| *other != victim) {
                    rest.sub_sat_assign(&need.contribution(self.cycle.machine(*other)));
                }
                if rest.is_zero() {
                    found.push(format!("24: need {number} could spare {}", self.id(*victim)));
                }
            }
        }
    }

    /// 23, 26, 29.
    fn topology(&self, found: &mut Found) {
        for (number, need, _) in self.needs() {
            if need.same() {
                let inside = |machine: &usize| {
                    need.within(need.domain.as_ref(), self.cycle.machine(*machine))
                };
                if !self.victims(number).iter().all(inside) {
                    found.push(format!("23: need {number} evicts outside its domain"));
                }
                if !self.cycle.claims(number).iter().all(inside) {
                    found.push(format!("26: need {number} claims outside its domain"));
                }
            }
            if need.spread().is_some() {
                self.spread_kept(number, found);
            }
        }
    }

    /// Invariant 29. Which domains there were when the need acquired is not told: those left
    /// now make the skew after it, all that ever were the skew before it.
    fn spread_kept(&self, need: usize, found: &mut Found) {
        let cycle = &self.cycle;
        if self.picks(need).is_empty() {
            return;
        }
        let left = cycle.acquirable(need);
        let before = skew(&cycle.spread_counts(need, &self.credit(need), &self.ever(need)));
        let after = skew(&cycle.spread_counts(need, &cycle.claims(need), &left));
        if after > before.max(cycle.max_skew(need)) {
            found.push(format!("29: need {need} has skew {after} after {before}"));
        }
    }

    /// 31.
    fn folds(&self, found: &mut Found) {
        for (number, need, verdict) in self.needs().filter(|(_, need, _)| need.is_fold()) {
            let unit = &need.min_unit;
            let places = |machine: &usize| -> i128 {
                let capacity = self.cycle.machine(*machine).class.capacity();
                let fit = unit.iter().map(|(dim, amount)| i128::from(capacity.get(dim)) / amount);
                fit.min().unwrap_or(0)
            };
            let places: i128 = self.cycle.claims(number).iter().map(places).sum();
            if verdict.satisfied != (places >= i128::from(verdict.folded)) {
                found.push(format!("31: fold {number} has {places} places"));
            }
            let demand = merge(self.cycle.input.demand.clone());
            let spans = |key: &NeedKey| {
                let gang = demand.iter().find(|gang| NeedKey::of(gang) == *key);
                gang.is_some_and(|gang| !gang.min_unit.covers(&gang.aggregate))
            };
            if !verdict.satisfied && need.members.iter().all(spans) {
                found.push(format!("31: fold {number} of spanning gangs is short"));
            }
        }
    }

    /// Invariant 37. The walk of a hard spread is one pass: what it found closed may be open
    /// in the end, so spreads are left out.
    fn reclaims(&self, found: &mut Found) {
        let reclaim = |action: &&Action| matches!(action.kind, ActionKind::Reclaim { .. });
        for action in self.output.actions.iter().filter(reclaim) {
            let machine = self.places[&action.machine];
            let record = self.cycle.machine(machine);
            for (number, need, verdict) in self.needs() {
                if record.cluster.as_ref() == Some(&need.cluster)
                    && !verdict.satisfied
                    && !need.parked
                    && need.spread().is_none()
                    && need.usable(record)
                    && need.within(need.domain.as_ref(), record)
                    && self.cycle.lowers(number, machine, &verdict.deficit)
                {
                    found.push(format!("37: {} would help need {number}", record.id));
                }
            }
        }
    }

    /// 51.
    fn outgrown(&self, found: &mut Found) {
        let cycle = &self.cycle;
        let configured =
            |machine: &usize| cycle.machine(*machine).state == MachineState::Configured;
        for (machine, NeedIdx(number)) in &self.output.outgrown {
            let (machine, number) = (self.places[machine], *number as usize);
            let (record, need) = (cycle.machine(machine), &cycle.needs[number]);
            if cycle.claimed_by[machine].is_some()
                || !need.owns(record)
                || need.usable(record)
                || !need.profile.matches(&*record.class)
            {
                found.push(format!("51: need {number} did not outgrow {}", record.id));
            }
        }
        let reclaim = |action: &&Action| matches!(action.kind, ActionKind::Reclaim { .. });
        let reclaimed: BTreeSet<usize> = self
            .output
            .actions
            .iter()
            .filter(reclaim)
            .map(|action| self.places[&action.machine])
            .collect();
        for (number, need, _) in self.needs().filter(|(_, need, _)| !need.is_fold()) {
            let matches = |machine: &usize| {
                let record = cycle.machine(*machine);
                record.cluster.as_ref() == Some(&need.cluster)
                    && need.profile.matches(&*record.class)
            };
            // What stays unclaimed houses it, whomever it is kept for.
            let stays = |machine: &usize| cycle.is_left(*machine) && !reclaimed.contains(machine);
            let mut open = cycle.unhoused(number);
            for machine in cycle.all().filter(configured).filter(matches).filter(stays) {
                open.sub_sat_assign(&need.contribution(cycle.machine(machine)));
            }
            for machine in reclaimed.iter().copied().filter(matches) {
                let record = cycle.machine(machine);
                let own = need.owns(record) && cycle.lowers(number, machine, &open);
                // The walk is one pass: what it passed over in the beginning stays so.
                let alike =
                    !open.is_zero() && need.contribution(record).spans(&cycle.unhoused(number));
                if !need.usable(record) && (own || (alike && !need.same())) {
                    found.push(format!("51: need {number} still runs on {}", record.id));
                }
            }
        }
    }

    /// 46.
    fn quiet(&self, found: &mut Found) {
        for action in &self.output.actions {
            let acts = acquirer(&action.kind).or_else(|| preemptor(&action.kind));
            if acts.is_some() && self.cycle.held_back(self.places[&action.machine]) {
                found.push(format!("46: {} is held back and taken", action.machine));
            }
        }
        for (number, need, verdict) in self.needs() {
            for pick in self.picks(number) {
                if self.cycle.held_back(pick) {
                    found.push(format!("46: {} is held back and claimed", self.id(pick)));
                }
            }
            if !need.quiet() {
                continue;
            }
            if !(self.picks(number).is_empty()
                && self.acquired_by_action(number).is_empty()
                && self.victims(number).is_empty())
            {
                found.push(format!("46: quiet need {number} acts"));
            }
            // Numbers follow the total order, so a higher number is no higher need.
            for (machine, claimant) in self.cycle.claimed_by.iter().enumerate() {
                let record = self.cycle.machine(machine);
                if claimant.is_some_and(|claimant| claimant > number)
                    && need.owns(record)
                    && need.usable(record)
                    && need.within(need.domain.as_ref(), record)
                    && self.cycle.lowers(number, machine, &verdict.deficit)
                {
                    found.push(format!("46: quiet need {number} loses {}", record.id));
                }
            }
        }
    }
}

fn acquirer(kind: &ActionKind) -> Option<NeedIdx> {
    match kind {
        ActionKind::Bootstrap(acquisition) | ActionKind::Provision(acquisition) => {
            Some(acquisition.need)
        }
        _ => None,
    }
}

fn preemptor(kind: &ActionKind) -> Option<NeedIdx> {
    match kind {
        ActionKind::Preempt { need, .. } => Some(*need),
        _ => None,
    }
}

/// The need that a verdict speaks of, with the parts of it that the verdict tells.
fn need_of(
    input: &CycleInput,
    output: &CycleOutput,
    demand: &[Prepared],
    verdict: &Verdict,
) -> Option<Prepared> {
    let mut need = if verdict.folded > 0 {
        fold_of(output, demand, verdict)?
    } else {
        let identity = |need: &&Prepared| {
            need.cluster == verdict.cluster
                && *need.profile.fingerprint() == verdict.fingerprint
                && need.group == verdict.group
        };
        demand.iter().find(identity)?.clone()
    };
    if (&need.aggregate, &need.min_unit) != (&verdict.aggregate, &verdict.min_unit) {
        return None;
    }
    need.parked = verdict.parked;
    need.held = if need.is_fold() {
        let members = need.members.iter();
        let held: Option<Vec<_>> = members.map(|key| input.no_acquire.get(key).copied()).collect();
        held.and_then(|held| held.first().copied())
    } else {
        input.no_acquire.get(&need.key()).copied()
    };
    need.domain =
        verdict.domain.as_ref().map(|domain| domain.values().cloned().collect::<Domain>());
    Some(need)
}

/// Members of a fold are the gangs of its class without a verdict of their own.
fn fold_of(output: &CycleOutput, demand: &[Prepared], verdict: &Verdict) -> Option<Prepared> {
    let alone = |gang: &Prepared| {
        output.verdicts.iter().any(|other| {
            other.folded == 0
                && other.cluster == gang.cluster
                && other.fingerprint == *gang.profile.fingerprint()
                && other.group == gang.group
        })
    };
    let gangs: Vec<&Prepared> = demand
        .iter()
        .filter(|gang| gang.same() && gang.cluster == verdict.cluster && !alone(gang))
        .filter(|gang| folded_group(&gang.aggregate) == *verdict.group)
        .filter(|gang| *folded_profile(&gang.profile).fingerprint() == verdict.fingerprint)
        .collect();
    let first = *gangs.first()?;
    let unit: Totals = first.aggregate.clone();
    (gangs.len() == verdict.folded as usize).then(|| Prepared {
        profile: Arc::new(folded_profile(&first.profile)),
        group: verdict.group.clone(),
        aggregate: unit.scale(gangs.len() as u64),
        min_unit: unit,
        members: gangs.iter().map(|gang| gang.key()).collect(),
        ..first.clone()
    })
}
