//! Every machine into its run, and claims on the machines of runs.

use std::hash::BuildHasher;

use bigfleet_model::MachineState;
use foldhash::fast::FixedState;

use super::{Few, KeepLevel, Place, RunKind, RunRow, Unit, World};
use crate::{
    handle::{AccountIx, ClassIx, MachineIx, PreparedIx, RunIx},
    input::HeldBack,
};

/// Which way a machine goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Out,
    In,
}

fn hash(id: &super::RunId) -> u64 {
    FixedState::default().hash_one(id)
}

impl World {
    /// Brings runs up to date with machines.
    pub(crate) fn seat(&mut self) {
        self.machines.put_in_order();
        let mut moved = std::mem::take(&mut self.moved);
        let mut moves: Vec<(RunIx, Way, u64, MachineIx)> = Vec::new();
        for &number in &moved {
            self.machines.rows[number].moved = false;
            let target = self.run_of(number);
            let row = self.machines.rows[number];
            if row.run == target {
                continue;
            }
            if let Some(claimant) = row.claimant {
                self.touch(claimant);
                self.lose(claimant, number);
            }
            for run in [row.run, target].into_iter().flatten() {
                if let Some(account) = self.runs[run].account {
                    self.touch_account(account);
                }
            }
            if let Some(target) = target {
                self.gain(target, row.label);
            }
            moves.extend(row.run.map(|run| (run, Way::Out, row.label, number)));
            moves.extend(target.map(|run| (run, Way::In, row.label, number)));
            self.machines.rows[number].run = target;
        }
        moved.clear();
        self.moved = moved;
        moves.sort_unstable_by_key(|(run, way, label, _)| (*run, *way, *label));
        for of_run in moves.chunk_by(|a, b| a.0 == b.0) {
            let run = of_run[0].0;
            let outs = of_run.partition_point(|one| one.1 == Way::Out);
            let (out, into) = of_run.split_at(outs);
            let labels = |at: &MachineIx| self.machines.rows[*at].label;
            take_out(&mut self.runs[run].members, out, labels);
            put_in(&mut self.runs[run].members, into, labels);
            self.runs[run].next = 0;
            self.runs[run].view = 0;
            if let Some(account) = self.runs[run].account {
                let machines = &mut self.names.accounts[account].machines;
                *machines = *machines + into.len() as u32 - out.len() as u32;
            }
            self.list(run);
        }
    }

    /// The run in which a machine belongs.
    fn run_of(&mut self, number: MachineIx) -> Option<RunIx> {
        let row = self.machines.rows[number];
        if row.removed {
            return None;
        }
        let unbound = self.classes[row.class].unbound;
        let acquirable = |at: usize| match row.held_back {
            None => Some(unbound.acquirable[at]),
            Some(HeldBack::ProviderFailing) => Some(unbound.withheld[0]),
            Some(HeldBack::Quota) => Some(unbound.withheld[1]),
        };
        match row.state {
            MachineState::Configured | MachineState::Configuring => {
                let cluster = row.cluster?;
                let account = row.stamp.map(|stamp| {
                    let key = self.names.stamps[stamp].key;
                    self.names.account(cluster, key)
                });
                let id = (RunKind::Bound, row.class, row.cluster, row.stamp);
                Some(self.run(id, account))
            }
            MachineState::Creating => match row.stamp {
                None => acquirable(1),
                Some(stamp) => {
                    let row_of_stamp = &self.names.stamps[stamp];
                    let (key, cluster) = (row_of_stamp.key, row_of_stamp.for_cluster?);
                    let account = self.names.account(cluster, key);
                    let id = (RunKind::Bought, row.class, Some(cluster), row.stamp);
                    Some(self.run(id, Some(account)))
                }
            },
            MachineState::Idle => acquirable(0),
            MachineState::Speculative => acquirable(2),
            MachineState::Draining => Some(unbound.draining),
            MachineState::Deleting | MachineState::Failed => None,
        }
    }

    fn run(&mut self, id: super::RunId, account: Option<AccountIx>) -> RunIx {
        let is = |known: &RunIx| self.runs[*known].id() == id;
        if let Some(known) = self.run_numbers.find(hash(&id), is) {
            return *known;
        }
        let row = RunRow::new(id.0, id.1, id.2, id.3, account);
        let number = match self.free_runs.pop() {
            Some(number) => {
                self.runs[number] = row;
                number
            }
            None => self.runs.push(row),
        };
        let runs = &self.runs;
        self.run_numbers.insert_unique(hash(&id), number, |known| hash(&runs[*known].id()));
        number
    }

    /// Makes a run of bound or bought machines known to those who look for
    /// machines, and forgets it once it is empty.
    fn list(&mut self, number: RunIx) {
        let run = &self.runs[number];
        let (Some(cluster), class, account, kind) = (run.cluster, run.class, run.account, run.kind)
        else {
            return;
        };
        let wanted = !run.members.is_empty();
        if wanted != run.listed {
            self.runs[number].listed = wanted;
            if let Some(account) = account {
                let row = &mut self.names.accounts[account];
                if wanted {
                    let capacity = |class: ClassIx| &self.classes[class].capacity;
                    let alike = |known: &ClassIx| capacity(*known) == capacity(class);
                    row.uniform =
                        if row.runs.is_empty() { Some(class) } else { row.uniform.filter(alike) };
                    row.unchecked = true;
                    row.runs.push(number);
                } else {
                    row.runs.retain(|known| *known != number);
                }
            }
            if kind == RunKind::Bound {
                let shelf = self.names.clusters[cluster].shelves.of(class);
                let bound = &mut self.classes[class].bound;
                if wanted {
                    shelf.push(number);
                    bound.push(number);
                } else {
                    shelf.retain(|known| *known != number);
                }
                if !wanted && let Some(at) = bound.iter().position(|known| *known == number) {
                    bound.swap_remove(at);
                }
            }
        }
        self.open_or_close(number);
        if !wanted {
            let hashed = hash(&self.runs[number].id());
            if let Ok(entry) = self.run_numbers.find_entry(hashed, |known| *known == number) {
                entry.remove();
            }
            self.free_runs.push(number);
        }
    }

    /// Keeps the list of bound runs with unclaimed machines.
    pub(super) fn open_or_close(&mut self, number: RunIx) {
        let run = &mut self.runs[number];
        let Some(cluster) = run.cluster.filter(|_| run.kind == RunKind::Bound) else { return };
        let open = &mut self.names.clusters[cluster].open;
        match (run.has_unclaimed(), run.open_at) {
            (true, None) => {
                self.open_runs += 1;
                run.open_at = Some(Place::at(open.len()));
                open.push(number);
            }
            (false, Some(at)) => {
                self.open_runs -= 1;
                run.open_at = None;
                open.swap_remove(at.index());
                if let Some(moved) = open.get(at.index()).copied() {
                    self.runs[moved].open_at = Some(at);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn claim(&mut self, machine: MachineIx, need: PreparedIx) {
        self.claim_digests.add(machine, need);
        let row = &mut self.machines.rows[machine];
        row.claimant = Some(need);
        let ready = row.state == MachineState::Configured;
        if let Some(number) = row.run {
            let run = &mut self.runs[number];
            run.claimed += 1;
            if let Some(account) = run.account {
                self.names.accounts[account].claimed += 1;
            }
            if !run.has_unclaimed() {
                self.open_or_close(number);
            }
        }
        if !ready {
            self.count_unready(need, true);
        }
    }

    /// Ends the last claim of those that a need has on a run, all of its first
    /// machines.
    pub(crate) fn unclaim_last(&mut self, machine: MachineIx) {
        self.unclaim(machine);
        let row = &self.machines.rows[machine];
        if let Some(run) = row.run {
            let label = |known: &MachineIx| self.machines.rows[*known].label;
            let before = self.runs[run].members.partition_point(|known| label(known) < row.label);
            self.runs[run].next = before as u32;
        }
    }

    pub(crate) fn unclaim(&mut self, machine: MachineIx) {
        let row = &mut self.machines.rows[machine];
        let Some(need) = row.claimant.take() else { return };
        self.claim_digests.take(machine, need);
        let ready = row.state == MachineState::Configured;
        if let Some(number) = row.run {
            let run = &mut self.runs[number];
            run.claimed -= 1;
            if let Some(account) = run.account {
                self.names.accounts[account].claimed -= 1;
            }
            run.next = 0;
            run.view = 0;
            if let Some(cluster) = run.cluster {
                let returns = &mut self.names.clusters[cluster].returns;
                *returns = returns.wrapping_add(1);
            }
            if run.open_at.is_none() {
                self.open_or_close(number);
            }
        }
        if !ready {
            self.count_unready(need, false);
        }
    }

    /// One more machine of a need that is not Configured yet, or one fewer.
    pub(super) fn count_unready(&mut self, need: PreparedIx, more: bool) {
        let row = &mut self.needs[need];
        if !more {
            row.unready = row.unready.saturating_sub(1);
            return;
        }
        row.unready += 1;
        if !row.listed_unready {
            row.listed_unready = true;
            self.unready.push(need);
        }
    }

    /// A kept claim ends, for its machine changes.
    fn lose(&mut self, need: PreparedIx, machine: MachineIx) {
        let row = &self.machines.rows[machine];
        if !self.needs[need].kept || row.claimant != Some(need) {
            return;
        }
        if let Some(run) = row.run {
            let capacity = &self.classes[self.runs[run].class].capacity;
            let row = &mut self.needs[need];
            row.covered.sub_sat_assign(self.pools[row.pool].contribution(capacity).as_ref());
            row.has_gaps = true;
        }
        self.unclaim(machine);
    }

    /// A machine joins a run: if a kept claim would not have been made before it,
    /// its owner starts over.
    fn gain(&mut self, run: RunIx, label: u64) {
        let of_run = &self.runs[run];
        let owner = of_run.account.and_then(|account| self.names.accounts[account].need);
        let Some(need) = owner.filter(|need| self.needs[*need].kept) else { return };
        let row = &self.needs[need];
        let Some(last) = row.credits.last() else { return };
        let last = &self.machines.rows[*last];
        let goes_after = !row.has_gaps
            && last.run.is_some_and(|other| {
                let order = self.keep_level(other).cmp(&self.keep_level(run));
                order.then_with(|| last.label.cmp(&label)).is_lt()
            });
        if !goes_after && self.usable(row, of_run.class) {
            self.start_afresh(need);
        }
    }

    /// A run's place in a walk, but for the id: bound before bought, then keep
    /// order (§2, §6.1).
    pub(crate) fn keep_level(&self, run: RunIx) -> KeepLevel {
        let row = &self.runs[run];
        let stamp = row.stamp.map(|stamp| &self.names.stamps[stamp]);
        KeepLevel {
            kind: row.kind,
            price: self.classes[row.class].price,
            reclamation: stamp.map_or(0.0, |stamp| stamp.reclamation),
        }
    }

    /// A queued need gives back what it kept: somebody more important takes of
    /// it, or it cannot tell what it would take now.
    pub(crate) fn start_afresh(&mut self, need: PreparedIx) {
        if self.end_rest(need) {
            self.release(need);
        }
    }

    /// A need no longer holds what it kept; false if it kept nothing.
    pub(crate) fn end_rest(&mut self, need: PreparedIx) -> bool {
        let tier = self.precedence(need);
        let row = &mut self.needs[need];
        let kept = std::mem::take(&mut row.kept);
        if kept {
            self.names.clusters[row.cluster].end_rest(tier);
        }
        kept
    }

    /// Takes from a need of a lower tier, which must be decided again.
    pub(crate) fn rob(&mut self, need: PreparedIx) {
        // Robbed once, it waits for its turn already.
        if self.is_settled(need) {
            if !self.needs[need].kept {
                self.touch(need);
            }
            self.start_afresh(need);
        }
    }

    /// Gives back what a need meant to acquire, and leaves it its own machines:
    /// its next walk begins with the same ones.
    fn keep(&mut self, need: PreparedIx) {
        let row = &mut self.needs[need];
        (row.kept, row.has_gaps) = (true, false);
        let mut picks = std::mem::take(&mut row.picks);
        for pick in picks.drain(..) {
            let capacity = &self.classes[self.runs[pick.run].class].capacity;
            let row = &mut self.needs[need];
            row.covered.sub_sat_assign(self.pools[row.pool].contribution(capacity).as_ref());
            self.unclaim(pick.machine);
        }
        self.needs[need].picks = picks;
    }

    /// Gives back all that a need counts on.
    pub(crate) fn release(&mut self, need: PreparedIx) {
        let row = &mut self.needs[need];
        let (mut credits, mut picks) =
            (std::mem::take(&mut row.credits), std::mem::take(&mut row.picks));
        row.covered = bigfleet_model::Totals::zero();
        (row.looked_around, row.even) = (false, true);
        if std::mem::take(&mut row.has_gaps) {
            credits.retain(|machine| self.machines.rows[*machine].claimant == Some(need));
        }
        credits.drain(..).for_each(|machine| self.unclaim(machine));
        picks.drain(..).for_each(|pick| self.unclaim(pick.machine));
        let row = &mut self.needs[need];
        (row.credits, row.picks) = (credits, picks);
    }

    /// The need must be decided again.
    pub(crate) fn touch(&mut self, need: PreparedIx) {
        match self.needs[need].gangs {
            Some(gangs) => self.enqueue(Unit::Gangs(gangs)),
            None => self.enqueue(Unit::Need(need)),
        }
    }

    pub(crate) fn touch_account(&mut self, account: AccountIx) {
        let row = &self.names.accounts[account];
        for need in [row.need, row.fold].into_iter().flatten() {
            self.touch(need);
        }
    }

    /// Notes what must be decided, and gives back what it counted on but for what
    /// it is sure to count on again.
    pub(crate) fn enqueue(&mut self, unit: Unit) {
        match unit {
            Unit::Need(need) => {
                let row = &mut self.needs[need];
                if std::mem::replace(&mut row.queued, true) {
                    return;
                }
                let settled = std::mem::take(&mut row.settled);
                let keeps = row.tidy && row.even;
                let cluster = &mut self.names.clusters[row.cluster];
                let tier = self.profiles[row.profile].precedence;
                if settled {
                    cluster.end_rest(tier);
                }
                if keeps {
                    cluster.begin_rest(tier);
                    self.keep(need);
                } else {
                    self.release(need);
                }
            }
            Unit::Gangs(gangs) => {
                let row = &mut self.gangs[gangs];
                if std::mem::replace(&mut row.queued, true) {
                    return;
                }
                let settled = std::mem::take(&mut row.settled);
                let (fold, members) = (row.fold, std::mem::take(&mut row.members));
                if settled {
                    let tier = self.precedence(fold);
                    self.names.clusters[self.needs[fold].cluster].end_rest(tier);
                }
                self.release(fold);
                members.iter().for_each(|member| self.release(*member));
                self.gangs[gangs].members = members;
            }
        }
        self.queue.push(unit);
    }

    /// The first member at or after a place that nobody claims.
    pub(crate) fn unclaimed_from(&self, run: RunIx, mut at: u32) -> u32 {
        let members = &self.runs[run].members;
        while let Some(member) = members.get(at as usize)
            && self.machines.rows[*member].claimant.is_some()
        {
            at += 1;
        }
        at
    }
}

type Moves<'m> = &'m [(RunIx, Way, u64, MachineIx)];

/// Closes the gaps in one pass.
fn take_out(members: &mut Few, out: Moves<'_>, label: impl Fn(&MachineIx) -> u64) {
    let (mut to, mut from) = (0, 0);
    for (_, _, gone, _) in out {
        let at = from + members[from..].partition_point(|known| label(known) < *gone);
        if to < from {
            members.copy_within(from..at, to);
        }
        to += at - from;
        from = at + 1;
    }
    if from > 0 {
        let len = members.len();
        members.copy_within(from..len, to);
        members.truncate(to + len - from);
    }
}

/// Opens the gaps in one pass, from the end.
fn put_in(members: &mut Few, into: Moves<'_>, label: impl Fn(&MachineIx) -> u64) {
    if into.is_empty() {
        return;
    }
    let mut from = members.len();
    members.extend(into.iter().map(|one| one.3));
    let mut to = members.len();
    for (_, _, new, number) in into.iter().rev() {
        let at = members[..from].partition_point(|known| label(known) < *new);
        let len = from - at;
        members.copy_within(at..from, to - len);
        to -= len + 1;
        members[to] = *number;
        from = at;
    }
}
