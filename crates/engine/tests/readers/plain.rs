//! The chapter's words on needs as sent, from input and output alone.

use std::cmp::Reverse;

use bigfleet_engine::{
    Action, ActionKind, CycleInput, CycleOutput, NeedKey, Tracked, Verdict, output::NeedIdx,
};
use bigfleet_model::{ClusterId, MachineState, Need, Operator, Profile, Requirement, Totals};

pub(crate) struct Plain<'a> {
    pub(crate) input: &'a CycleInput,
    pub(crate) output: &'a CycleOutput,
}

/// A claimed machine of a fold.
pub(crate) struct Claim<'a> {
    pub(crate) tracked: &'a Tracked,
    turn: u8,
    /// Kind of the action on it, if any.
    pub(crate) action: Option<&'static str>,
}

fn rank(action: &Action) -> u8 {
    match action.kind {
        ActionKind::Bootstrap(_) => 0,
        ActionKind::Provision(_) => 1,
        ActionKind::Preempt { .. } => 2,
        ActionKind::Reclaim { .. } => 3,
        ActionKind::Delete => 4,
    }
}

fn folded(profile: &Profile) -> Profile {
    let fold = |requirement: &Requirement| Requirement {
        operator: match requirement.operator {
            Operator::Same if requirement.values.is_empty() => Operator::Exists,
            Operator::Same => Operator::In,
            other => other,
        },
        ..requirement.clone()
    };
    Profile::new(
        profile.requirements().iter().map(fold).collect(),
        profile.spread().to_vec(),
        profile.priority(),
        profile.interruption(),
        profile.reclamation(),
    )
}

/// The total order (§5).
pub(crate) fn in_order(needs: &mut [&Need]) {
    needs.sort_by(|a, b| {
        let key = |need: &Need| {
            let profile = &need.profile;
            (
                Reverse(profile.priority()),
                Reverse(profile.interruption().to_wire()),
                Reverse(profile.reclamation().to_wire()),
                need.arrival,
                need.cluster.clone(),
                profile.fingerprint().clone(),
                need.group.clone(),
            )
        };
        key(a).cmp(&key(b)).then_with(|| a.aggregate.cmp_by_name(&b.aggregate))
    });
}

pub(crate) fn units(capacity: &Totals, unit: &Totals) -> usize {
    let whole = unit.iter().map(|(dimension, of_unit)| capacity.get(dimension) / of_unit).min();
    usize::try_from(whole.unwrap()).unwrap()
}

pub(crate) fn capacity(tracked: &Tracked) -> Totals {
    tracked.machine.class.capacity().scale(1)
}

pub(crate) fn usable(need: &Need, tracked: &Tracked) -> bool {
    need.usable(&*tracked.machine.class, tracked.machine.class.capacity())
}

impl<'a> Plain<'a> {
    pub(crate) fn verdict(&self, key: &NeedKey) -> Option<&'a Verdict> {
        self.output.verdicts.iter().find(|verdict| {
            verdict.folded == 0
                && verdict.cluster == key.cluster
                && verdict.fingerprint == key.fingerprint
                && verdict.group == key.group
        })
    }

    pub(crate) fn tracked(&self, id: &str) -> &'a Tracked {
        self.input.snapshot.iter().find(|one| &*one.machine.id == id).expect("known machines")
    }

    /// State, cluster, and whether it carries a stamp, with what is pending.
    pub(crate) fn seen(&self, tracked: &Tracked) -> (MachineState, Option<ClusterId>, bool) {
        let machine = &tracked.machine;
        let of_machine = self.input.pending.iter().filter(|action| action.machine == machine.id);
        let action = of_machine
            .filter(|action| action.kind.start() == machine.state)
            .min_by_key(|action| rank(action));
        let stamped = machine.stamp.is_some();
        match action.map(|action| &action.kind) {
            None => (machine.state, machine.cluster.clone(), stamped),
            Some(ActionKind::Bootstrap(acquisition)) => {
                (MachineState::Configuring, Some(acquisition.cluster.clone()), true)
            }
            Some(ActionKind::Provision(_)) => (MachineState::Creating, None, true),
            Some(ActionKind::Preempt { .. } | ActionKind::Reclaim { .. }) => {
                (MachineState::Draining, machine.cluster.clone(), stamped)
            }
            Some(ActionKind::Delete) => (MachineState::Deleting, None, stamped),
        }
    }

    /// Number of the fold that a need without a verdict of its own is in.
    pub(crate) fn fold_of(&self, need: &Need) -> usize {
        let text: Vec<String> = need
            .aggregate
            .by_name()
            .iter()
            .map(|(name, milli)| format!("{name}={milli}"))
            .collect();
        let group = format!("fold:{}", text.join(","));
        let fingerprint = folded(&need.profile).fingerprint().clone();
        let is_it = |verdict: &Verdict| {
            verdict.folded > 0
                && verdict.cluster == need.cluster
                && verdict.fingerprint == fingerprint
                && *verdict.group == *group
        };
        self.output.verdicts.iter().position(is_it).expect("a need without a verdict is folded")
    }

    /// Gangs of a fold, in the total order.
    pub(crate) fn members(&self, fold: usize) -> Vec<&'a Need> {
        let folded = self.input.demand.iter().filter(|need| {
            self.verdict(&NeedKey::of(need)).is_none() && self.fold_of(need) == fold
        });
        let mut members: Vec<&Need> = folded.collect();
        in_order(&mut members);
        members
    }

    /// Claims of a fold: bound, Creating, this cycle's picks; then price, ID.
    pub(crate) fn claims(&self, fold: usize) -> Vec<Claim<'a>> {
        let number = NeedIdx(fold as u32);
        let claims = self.output.claims.iter().filter(|(_, need)| **need == number);
        let mut claims: Vec<Claim<'a>> = claims
            .map(|(machine, _)| {
                let tracked = self.tracked(machine);
                let action = self.output.actions.iter().find(|action| {
                    action.machine == *machine
                        && matches!(
                            action.kind,
                            ActionKind::Bootstrap(_) | ActionKind::Provision(_)
                        )
                });
                let (state, _, stamped) = self.seen(tracked);
                let turn = match state {
                    MachineState::Configured | MachineState::Configuring => 0,
                    MachineState::Creating if stamped => 1,
                    _ => 2,
                };
                Claim { tracked, turn, action: action.map(|action| action.kind.name()) }
            })
            .collect();
        claims.sort_by(|a, b| {
            let (x, y) = (&a.tracked.machine, &b.tracked.machine);
            a.turn
                .cmp(&b.turn)
                .then(x.class.price_per_hour.total_cmp(&y.class.price_per_hour))
                .then(x.id.cmp(&y.id))
        });
        claims
    }

    /// Needs as sent with what is missing of them after Phase 2.
    pub(crate) fn missing(&self) -> Vec<(NeedKey, Totals)> {
        let mut missing = Vec::new();
        for entry in &self.output.unresolved {
            let number = entry.need.0 as usize;
            let verdict = &self.output.verdicts[number];
            if verdict.folded == 0 {
                let key = NeedKey {
                    cluster: verdict.cluster.clone(),
                    fingerprint: verdict.fingerprint.clone(),
                    group: verdict.group.clone(),
                };
                missing.push((key, entry.deficit.clone()));
                continue;
            }
            let left = units(&entry.deficit, &verdict.min_unit);
            assert_eq!(verdict.min_unit.scale(left as u64), entry.deficit, "whole units");
            let members = self.members(number);
            for member in &members[members.len() - left..] {
                missing.push((NeedKey::of(member), member.aggregate.clone()));
            }
        }
        missing
    }
}

impl Plain<'_> {
    /// Creating, with the stamp of this very need.
    pub(crate) fn is_bought_for(&self, tracked: &Tracked, key: &NeedKey) -> bool {
        let provision = self.input.pending.iter().find_map(|action| match &action.kind {
            ActionKind::Provision(acquisition) if action.machine == tracked.machine.id => {
                Some(acquisition.stamp.clone())
            }
            _ => None,
        });
        let pending = provision.filter(|_| tracked.machine.state == MachineState::Speculative);
        let stamp = pending.or_else(|| tracked.machine.stamp.clone());
        stamp.is_some_and(|stamp| {
            stamp.fingerprint == key.fingerprint
                && stamp.group == key.group
                && stamp.for_cluster.as_ref() == Some(&key.cluster)
        })
    }
}
