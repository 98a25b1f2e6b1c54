//! Every machine into its run.

use std::hash::BuildHasher;

use bigfleet_model::MachineState;
use foldhash::fast::FixedState;

use super::{Few, Place, RunKind, RunRow, World};
use crate::{
    handle::{ClassIx, Handle, MachineIx, RunIx},
    input::HeldBack,
};

/// Which way a machine goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Out,
    In,
}

/// A machine that leaves a run or joins it: run, way, and place among those that
/// move, as one number, for they are sorted by the ten thousand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Move(u64);

impl Move {
    fn new(run: RunIx, way: Way, place: usize) -> Self {
        // Runs and machines are far fewer than what fits.
        Self((run.index() as u64) << 33 | (way as u64) << 32 | place as u64)
    }

    fn run(self) -> RunIx {
        RunIx::at((self.0 >> 33) as usize)
    }

    fn way(self) -> Way {
        if self.0 >> 32 & 1 == 0 { Way::Out } else { Way::In }
    }

    fn place(self) -> usize {
        self.0 as u32 as usize
    }
}

fn hash(id: &super::RunId) -> u64 {
    FixedState::default().hash_one(id)
}

impl World {
    /// Brings runs up to date with machines.
    pub(crate) fn seat(&mut self) {
        self.machines.put_in_order();
        let mut moved = std::mem::take(&mut self.moved);
        self.last_run = None;
        let mut moves: Vec<Move> = Vec::with_capacity(moved.len());
        for (place, &number) in moved.iter().enumerate() {
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
            moves.extend(row.run.map(|run| Move::new(run, Way::Out, place)));
            moves.extend(target.map(|run| Move::new(run, Way::In, place)));
            self.machines.rows[number].run = target;
        }
        moves.sort_unstable();
        let mut labelled: Vec<Labelled> = Vec::new();
        for of_run in moves.chunk_by(|a, b| a.run() == b.run()) {
            let run = of_run[0].run();
            let outs = of_run.partition_point(|one| one.way() == Way::Out);
            let rows = &self.machines.rows;
            labelled.clear();
            labelled.extend(of_run.iter().map(|one| {
                let number = moved[one.place()];
                (rows[number].label, number)
            }));
            let (out, into) = labelled.split_at_mut(outs);
            out.sort_unstable();
            into.sort_unstable();
            let labels = |at: &MachineIx| rows[*at].label;
            let row = &mut self.runs[run];
            let first_out = take_out(&mut row.members, out, labels);
            let first_in = put_in(&mut row.members, into, labels);
            // Those before all that changed are claimed as before.
            row.next = row.next.min(first_out.min(first_in) as u32);
            self.runs[run].view = 0;
            if let Some(account) = self.runs[run].account {
                let machines = &mut self.names.accounts[account].machines;
                *machines = *machines + into.len() as u32 - out.len() as u32;
            }
            self.list(run);
        }
        // Loading a fleet moves every machine; the room for that is not needed again.
        const AGAIN: usize = 1 << 14;
        moved.clear();
        moved.shrink_to(AGAIN);
        self.moved = moved;
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
                row.cluster?;
                Some(self.run((RunKind::Bound, row.class, row.cluster, row.stamp)))
            }
            MachineState::Creating => match row.stamp {
                None => acquirable(1),
                Some(stamp) => {
                    let cluster = self.names.stamps[stamp].for_cluster?;
                    Some(self.run((RunKind::Bought, row.class, Some(cluster), row.stamp)))
                }
            },
            MachineState::Idle => acquirable(0),
            MachineState::Speculative => acquirable(2),
            MachineState::Draining => Some(unbound.draining),
            MachineState::Deleting | MachineState::Failed => None,
        }
    }

    /// The run of machines that somebody holds, whose stamp says to whom they count.
    fn run(&mut self, id: super::RunId) -> RunIx {
        let is = |known: &RunIx| self.runs[*known].id() == id;
        // Machines of one run change one after the other, as a rule.
        if let Some(last) = self.last_run.filter(is) {
            return last;
        }
        if let Some(known) = self.run_numbers.find(hash(&id), is) {
            self.last_run = Some(*known);
            return *known;
        }
        let account = id.2.zip(id.3).map(|(cluster, stamp)| {
            let key = self.names.stamps[stamp].key;
            self.names.account(cluster, key)
        });
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
        self.last_run = Some(number);
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
}

/// How many of the first places hold what is asked, where those that do come first.
/// Looks near the beginning first: what changes lies close together, and each look
/// is at another machine's row.
fn first_steps(places: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut known, mut step) = (0, 1);
    while known + step <= places && holds(known + step - 1) {
        known += step;
        step *= 2;
    }
    // The answer is at least `known`, and below `known + step`.
    let mut end = places.min(known + step - 1);
    while known < end {
        let middle = known.midpoint(end);
        if holds(middle) {
            known = middle + 1;
        } else {
            end = middle;
        }
    }
    known
}

/// A machine that moves, behind its label.
type Labelled = (u64, MachineIx);

/// How many members are looked through one by one.
const NEAR: usize = 128;

/// Closes the gaps in one pass. The place of the first.
fn take_out(members: &mut Few, out: &[Labelled], label: impl Fn(&MachineIx) -> u64) -> usize {
    let (mut to, mut from) = (0, 0);
    let mut first = members.len();
    for (gone, number) in out {
        let rest = &members[from..];
        // Few numbers in a row are read sooner than one machine's label.
        let near = rest.iter().take(NEAR).position(|member| member == number);
        let at =
            from + near.unwrap_or_else(|| first_steps(rest.len(), |at| label(&rest[at]) < *gone));
        if to < from {
            members.copy_within(from..at, to);
        }
        to += at - from;
        from = at + 1;
        first = first.min(at);
    }
    if from > 0 {
        let len = members.len();
        members.copy_within(from..len, to);
        members.truncate(to + len - from);
    }
    first
}

/// Opens the gaps in one pass, from the end. The place of the first.
fn put_in(members: &mut Few, into: &[Labelled], label: impl Fn(&MachineIx) -> u64) -> usize {
    let mut from = members.len();
    members.extend(into.iter().map(|one| one.1));
    let mut to = members.len();
    for (new, number) in into.iter().rev() {
        let at = from - first_steps(from, |at| label(&members[from - 1 - at]) > *new);
        let len = from - at;
        members.copy_within(at..from, to - len);
        to -= len + 1;
        members[to] = *number;
        from = at;
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(numbers: &[usize]) -> Few {
        numbers.iter().map(|at| MachineIx::at(*at)).collect()
    }

    /// Machines whose labels are their numbers.
    fn labelled(numbers: &[usize]) -> Vec<Labelled> {
        numbers.iter().map(|at| (*at as u64, MachineIx::at(*at))).collect()
    }

    #[test]
    fn machines_come_and_go_in_order_and_the_first_place_is_told() {
        let label = |one: &MachineIx| one.index() as u64;
        let all: Vec<usize> = (0..NEAR + 40).collect();
        for step in 1..all.len() {
            let (gone, kept): (Vec<usize>, Vec<usize>) =
                all.iter().partition(|at| *at % step == step - 1);
            let mut run = members(&all);
            assert_eq!(take_out(&mut run, &labelled(&gone), label), step - 1);
            assert_eq!(run, members(&kept), "every {step}th goes");
            assert_eq!(put_in(&mut run, &labelled(&gone), label), step - 1);
            assert_eq!(run, members(&all), "every {step}th comes");
        }
        let mut run = members(&all);
        assert_eq!(take_out(&mut run, &[], label), all.len());
        assert_eq!(put_in(&mut run, &[], label), all.len());
    }

    #[test]
    fn the_first_steps_are_found_wherever_they_end() {
        for places in 0..70 {
            for holding in 0..=places {
                assert_eq!(first_steps(places, |at| at < holding), holding, "of {places}");
            }
        }
    }
}
