//! What time brings about: keys that fall quiet, machines that are done with, drains that
//! are over.

use std::{collections::BTreeSet, time::Duration};

use bigfleet_model::{MachineId, MachineState};
use bigfleet_shard::holdings::{
    Drain, Event, Received, TransferId, TransferMachine, done, drained, quiet,
};

use super::{Act, Hold, Process, Shard};

impl Shard {
    /// Looks once; the first thing that is due is done. `all_due`: as if everything had
    /// waited for long.
    pub fn tend(&mut self, now: Duration, all_due: bool, over: impl Fn(&MachineId, &Hold) -> bool) {
        if self.is_writing() {
            return;
        }
        let Some(process) = self.process.as_mut() else { return };
        process.follow_time(&self.holdings, now);
        let event = self.falls_quiet(over).or_else(|| self.is_done_with(now, all_due));
        let event = event.or_else(|| self.drained(now, all_due));
        if let Some(event) = event {
            // Refused if the coordinator has had its say meanwhile.
            drop(self.take(&event, None));
        }
    }

    fn falls_quiet(&mut self, over: impl Fn(&MachineId, &Hold) -> bool) -> Option<Event> {
        let process = self.process.as_mut()?;
        if self.holdings.releasing.is_empty() {
            return None;
        }
        process.let_go();
        let busy = process.under_way(over);
        let keys = quiet(&self.holdings.releasing, busy, process.announced);
        (!keys.is_empty()).then_some(Event::Quiet(keys))
    }

    fn is_done_with(&self, now: Duration, all_due: bool) -> Option<Event> {
        let process = self.process.as_ref()?;
        let assignment = self.holdings.assignment.as_ref()?;
        if process.listed.is_none_or(|listed| listed < process.revision) {
            return None;
        }
        let is_done = |one: &&TransferMachine| {
            let entry = process.desk.get(&one.machine);
            let pending =
                entry.is_some_and(|entry| entry.pending.is_some() || entry.hold.is_some());
            let known = entry.map(|entry| entry.record.state);
            let since = process.received.get(&(one.transfer.clone(), one.machine.clone()));
            let since = since.map_or(Duration::ZERO, |since| now.saturating_sub(*since));
            done(&Received {
                state: if pending { Some(MachineState::Creating) } else { known },
                since: if all_due { Duration::MAX } else { since },
                quiet: !pending && process.announced,
                unwanted: process.unwanted.contains(&one.machine)
                    || assignment.held.domains.contains(&one.home),
            })
        };
        let done = assignment.machines_in.iter().filter(is_done);
        let done: BTreeSet<(TransferId, MachineId)> =
            done.map(|one| (one.transfer.clone(), one.machine.clone())).collect();
        (!done.is_empty()).then_some(Event::Done(done))
    }

    fn drained(&self, now: Duration, all_due: bool) -> Option<Event> {
        let process = self.process.as_ref()?;
        self.holdings.out.iter().filter(|(_, out)| !out.is_released()).find_map(|(id, out)| {
            let is_idle = |machine: &&MachineId| {
                !process.desk.contains_key(*machine)
                    && process
                        .neighbours
                        .get(*machine)
                        .is_some_and(|one| one.state == MachineState::Idle)
            };
            let idle: BTreeSet<MachineId> = out.machines.iter().filter(is_idle).cloned().collect();
            let since = process.out.get(id).map_or(Duration::ZERO, |began| now - *began);
            let since = if all_due { Duration::MAX } else { since };
            drained(out, &idle, since, process.announced)
                .then(|| Event::Drained { transfer: id.clone(), idle })
        })
    }

    /// Drains that transfers wait for.
    #[must_use]
    pub fn drains_to_begin(&self) -> Vec<MachineId> {
        let Some(process) = &self.process else { return Vec::new() };
        let drains = self.holdings.out.values().filter_map(|out| {
            let drain = out.drain.filter(|drain| !drain.over)?;
            Some(out.machines.iter().map(move |machine| (machine, drain)))
        });
        let may_begin = |(machine, drain): &(&MachineId, Drain)| {
            let stamp = process.desk.get(*machine).and_then(|entry| entry.record.stamp.as_deref());
            drain.may_evict(stamp) && process.may_act(machine, &Act::Drain)
        };
        drains.flatten().filter(may_begin).map(|(machine, _)| machine.clone()).collect()
    }
}

impl Process {
    /// Keeps account of since when things are as they are.
    fn follow_time(&mut self, holdings: &bigfleet_shard::holdings::Holdings, now: Duration) {
        self.out.retain(|transfer, _| holdings.out.contains_key(transfer));
        for transfer in holdings.out.keys() {
            self.out.entry(transfer.clone()).or_insert(now);
        }
        let received = holdings.assignment.iter().flat_map(|one| &one.machines_in);
        let received: BTreeSet<(TransferId, MachineId)> =
            received.map(|one| (one.transfer.clone(), one.machine.clone())).collect();
        self.received.retain(|one, _| received.contains(one));
        self.unwanted.retain(|id| received.iter().any(|(_, machine)| machine == id));
        for one in received {
            self.received.entry(one).or_insert(now);
        }
    }
}
