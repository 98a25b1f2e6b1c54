//! The donor's part of a transfer (coordinator chapter §9).

use bigfleet_engine::{Action, ActionKind};
use bigfleet_model::{
    Attributes, ClusterId, MachineId, MachineState,
    grace::{drain_grace, priority_gap},
};

use super::{Answered, Shared};
use crate::{
    holdings::{
        Candidate, Chosen, Domain, Drain, Effect, Event, Out, Refused, Selector, TransferId,
    },
    live::Desk,
    shard::Shard,
};

impl Shard {
    /// Lets machines go for a transfer.
    pub(super) async fn release(
        &self,
        shared: &Shared,
        transfer: TransferId,
        selector: &Selector,
    ) -> Result<Answered, Refused> {
        let _turn = shared.writer.lock().await;
        let event = {
            let desk = self.desk().await;
            let holdings = shared.holdings.load();
            let candidates = || desk.candidates(shared, selector);
            let out = match holdings.choose(&transfer, selector, shared.announced(), candidates) {
                Chosen::These(out) => out,
                Chosen::Nothing => return Ok(Answered::Nothing),
                Chosen::NotYet => return Ok(Answered::Later),
            };
            desk.lend(shared, &out);
            let event = Event::Picked { transfer, out };
            shared.foresee(&event)?;
            event
        };
        let effects = self.take_in_turn(shared, &event).await?;
        let out = effects.into_iter().find_map(|effect| match effect {
            Effect::Answer { out, .. } => Some(out),
            _ => None,
        });
        Ok(Answered::of(out, &self.options.id))
    }
}

impl Desk<'_> {
    /// Slots of these draw on our share from now on.
    fn lend(&self, shared: &Shared, out: &Out) {
        let mut quota = shared.quota();
        for machine in &out.machines {
            let view = self.decider.engine.view(machine);
            if let Some(slot) = view.filter(|view| view.state() == MachineState::Speculative) {
                quota.lend(slot.class());
            }
        }
    }

    /// Machines of a kind that may be let go of: quiet, of domains that we hold, ours by
    /// them, no slots that we may not create, and at no work that must not end.
    fn candidates(&self, shared: &Shared, selector: &Selector) -> Vec<Candidate> {
        let holdings = shared.holdings.load();
        let in_force = shared.in_force();
        let ownership = &in_force.ownership;
        let domains = holdings.held().map(|held| &held.domains);
        let Some(label) = domains.and_then(|all| all.first()).map(|one| one.key.clone()) else {
            return Vec::new();
        };
        let views = self.decider.engine.views_after(None).filter(|view| {
            let class = view.class();
            selector.asks_for(view.state(), class)
                && ownership.is_home(class)
                && view.cluster().is_none_or(|cluster| self.may_end_work_of(cluster))
                && !ownership.is_received(view.id())
                && !ownership.is_away(view.id())
                && ownership.owns(view.id(), view.state(), view.cluster(), class)
        });
        let (quota, known) = (shared.quota(), shared.knows_domains());
        let quiet = views.filter(|view| !quota.keeps(view, known)).filter(|view| {
            let id = view.id();
            self.live.entries.get(id).is_none_or(|entry| {
                entry.pending.is_none()
                    && !entry.is_gone()
                    && entry.tracked.machine.state == view.state()
            }) && !self.live.holds.contains_key(id)
        });
        let candidate = |view: bigfleet_engine::MachineView<'_>| {
            let value = view.class().attribute(&label)?.to_owned();
            Some(Candidate {
                id: view.id().into(),
                home: Domain { key: label.clone(), value },
                state: view.state(),
                class: view.class().clone(),
                stamp: view.stamp().map(Into::into),
            })
        };
        quiet.filter_map(candidate).collect()
    }

    /// Whether a neighbour's need may end the work of a cluster: not before its first
    /// roll-up in this process (§21, invariant 7). Until then a machine is known by its
    /// stamp at birth, which need not be what it serves now. And not while its operator is
    /// away, who alone can drain it: it would be waited for, and chosen again next time.
    fn may_end_work_of(&self, cluster: &ClusterId) -> bool {
        self.decider.engine.is_ready(cluster) && self.shard.sessions.is_connected(cluster)
    }

    /// Drains that transfers wait for and that have not begun, as voluntary releases:
    /// they pass the rails like any other, and no operator's budget is skipped. A victim
    /// that has come to dearer work since it was chosen is passed over.
    pub(crate) fn drains_to_begin(&self) -> Vec<Action> {
        let Some(shared) = &self.shard.shared else { return Vec::new() };
        let holdings = shared.holdings.load();
        let drains = holdings.out.values().filter_map(|out| {
            let drain = out.drain.filter(|drain| !drain.over)?;
            Some(out.machines.iter().map(move |machine| (machine, drain)))
        });
        let begin = |(machine, drain): (&MachineId, Drain)| {
            let known = self.tracked(machine)?.machine;
            let cluster = known.cluster?;
            if known.state != MachineState::Configured || self.live.pending(machine).is_some() {
                return None;
            }
            if !self.may_end_work_of(&cluster) || !drain.may_evict(known.stamp.as_deref()) {
                return None;
            }
            let victim = known.stamp.as_ref().and_then(|stamp| stamp.priority);
            let grace = drain_grace(priority_gap(drain.priority, victim));
            Some(Action {
                machine: machine.clone(),
                kind: ActionKind::Reclaim { cluster, grace },
                cost: known.class.price_per_hour,
                runner_up_cost: None,
                domain_rule: 0,
            })
        };
        drains.flatten().filter_map(begin).collect()
    }
}
