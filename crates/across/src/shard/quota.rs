//! Shares of the provider's account: the rules of the shard's `shared::quota`.

use bigfleet_model::{Machine, MachineId, MachineState};
use bigfleet_shard::holdings::{Draw, Holdings, Room};

use super::{Process, Shard, desk::Entry};

fn draw(machine: &Machine) -> Draw<'_> {
    Draw { provider: machine.host.as_ref().map(|host| host.provider.as_str()), region: None }
}

/// Before a call it is decided what is bought, and without an answer it may have been.
fn is_bought(entry: &Entry) -> bool {
    entry.record.state != MachineState::Speculative
        || entry.pending.is_some()
        || entry.hold.is_some()
}

impl Process {
    /// What may still be bought; none while it is not known what is drawn.
    fn room(&self, holdings: &Holdings) -> Option<Room> {
        let slices = holdings.slices();
        let mut room = Room::of(slices);
        if room.is_unlimited() {
            return Some(room);
        }
        self.listed.filter(|listed| *listed >= self.domains_since)?;
        let home = |machine: &&Machine| self.in_force.is_home(&machine.class);
        let ours = self.desk.values().filter(|entry| is_bought(entry)).map(|entry| &entry.record);
        let others = self.neighbours.values().filter(|machine| {
            !self.desk.contains_key(&machine.id)
                && (machine.state != MachineState::Speculative
                    || self.in_force.is_away(&machine.id))
        });
        ours.chain(others).filter(home).for_each(|machine| room.drawn(draw(machine)));
        Some(room)
    }
}

impl Shard {
    /// Whether a slot may be bought.
    pub(crate) fn may_buy(&self, machine: &MachineId) -> bool {
        let Some(process) = &self.process else { return false };
        let Some(entry) = process.desk.get(machine) else { return false };
        // Whoever received it draws on the share of its home.
        !process.in_force.is_home(&entry.record.class)
            || process.room(&self.holdings).is_some_and(|mut room| room.take(draw(&entry.record)))
    }

    /// Slots that may be lent, for whoever has them may buy them.
    pub(super) fn within_the_share(&self) -> impl Fn(&MachineId) -> bool {
        let mut room = self.process.as_ref().and_then(|process| process.room(&self.holdings));
        let desk = self.process.iter().flat_map(|process| &process.desk);
        let slots = desk.filter(|(_, entry)| !is_bought(entry));
        let within = slots
            .filter(|(_, entry)| room.as_mut().is_some_and(|room| room.take(draw(&entry.record))));
        let within: Vec<MachineId> = within.map(|(machine, _)| machine.clone()).collect();
        move |machine| within.contains(machine)
    }

    /// Whether this process has decided to buy a slot.
    fn buys(&self, machine: &MachineId) -> bool {
        let entry = self.process.as_ref().and_then(|process| process.desk.get(machine));
        entry.is_some_and(|entry| entry.pending.is_some() || entry.hold.is_some())
    }

    /// More of these machines are drawn on a share than it has: told after a purchase. What
    /// broke is not counted, for nobody bought it.
    pub(crate) fn past_its_share<'a>(
        &self,
        bought: &Machine,
        machines: impl Iterator<Item = &'a Machine>,
    ) -> Option<String> {
        let assignment = self.holdings.assignment.as_ref()?;
        let slice = i64::from(assignment.slices.first()?.slice);
        // What is being lost counts no more, although the disk does not have it yet.
        let ownership = &self.process.as_ref()?.in_force;
        if !ownership.is_home(&bought.class) || !self.buys(&bought.id) {
            return None;
        }
        let drawn = machines.filter(|machine| {
            ownership.is_home(&machine.class)
                && match machine.state {
                    MachineState::Failed => false,
                    MachineState::Speculative => {
                        ownership.is_away(&machine.id) || self.buys(&machine.id)
                    }
                    _ => true,
                }
        });
        let drawn: Vec<&MachineId> = drawn.map(|machine| &machine.id).collect();
        let more = i64::try_from(drawn.len()).unwrap_or(i64::MAX) > slice;
        more.then(|| format!("{} buys past its share of {slice}: {drawn:?}", self.id))
    }
}
