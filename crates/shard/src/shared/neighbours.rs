//! Machines of a shared provider that are not ours, as far as they matter to us.

use bigfleet_model::{Machine, MachineId, MachineState};
use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};

use super::quota::{REGION_LABEL, is_elastic};
use crate::holdings::{Draw, Ownership};

/// One of them.
#[derive(Clone, Debug)]
struct Neighbour {
    state: MachineState,
    /// It draws on our share of an account: whose, and where.
    draws: Option<(Option<String>, Option<String>)>,
    /// It lacks the label that says whose it is.
    nobodys: bool,
}

/// What Lists told of them.
#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    by_id: HashMap<MachineId, Neighbour, RandomState>,
    /// Of a List of changes: those that it told of and that do not matter any more.
    gone: Option<HashSet<MachineId, RandomState>>,
}

impl Neighbours {
    /// Of a List that tells only what changed.
    pub(crate) fn of_changes() -> Self {
        Self { gone: Some(HashSet::default()), ..Self::default() }
    }

    /// A List told of these while what is ours changed: what has been noted since, of
    /// machines that it still took for ours, stays until the next.
    pub(crate) fn add_to_known(&mut self) {
        self.gone.get_or_insert_default();
    }

    /// Takes in a record, whoever has the machine.
    pub(crate) fn note(&mut self, ownership: &Ownership, record: &Machine, ours: bool) {
        let class = &record.class;
        let away = ownership.is_away(&record.id);
        let nobodys = ownership.is_nobodys(class);
        // A slot out on transfer is drawn, whether it has been created or not.
        let drawn = record.state != MachineState::Speculative || away;
        let draws = drawn && is_elastic(class) && ownership.is_home(class);
        if (ours && !nobodys) || !(draws || away || nobodys) {
            self.by_id.remove(&record.id);
            if let Some(gone) = &mut self.gone {
                gone.insert(record.id.clone());
            }
            return;
        }
        let account = || {
            let provider = record.host.as_ref().map(|host| host.provider.clone());
            (provider, class.labels.get(REGION_LABEL).cloned())
        };
        let draws = (draws && !ours).then(account);
        let neighbour = Neighbour { state: record.state, draws, nobodys };
        if let Some(gone) = &mut self.gone {
            gone.remove(&record.id);
        }
        self.by_id.insert(record.id.clone(), neighbour);
    }

    /// What a machine that is not ours was last seen as.
    pub(crate) fn state(&self, machine: &MachineId) -> Option<MachineState> {
        self.by_id.get(machine).map(|one| one.state)
    }

    /// Machines that are not ours and draw on our share.
    pub(crate) fn draws(&self) -> impl Iterator<Item = Draw<'_>> {
        let drawing = self.by_id.values().filter_map(|one| one.draws.as_ref());
        drawing.map(|(provider, region)| Draw {
            provider: provider.as_deref(),
            region: region.as_deref(),
        })
    }

    /// Machines without the label that says whose they are.
    pub(crate) fn nobodys(&self) -> usize {
        self.by_id.values().filter(|one| one.nobodys).count()
    }

    /// A full List told of these and no others; one of changes, of these besides, and
    /// of those that are gone. What was noted `since` it began is newer than its word.
    pub(crate) fn replace(&mut self, others: Self, since: impl Fn(&MachineId) -> bool) {
        let gone = others.gone;
        let stays = |id: &MachineId| gone.as_ref().is_some_and(|gone| !gone.contains(id));
        self.by_id.retain(|id, _| since(id) || stays(id));
        let told = others.by_id.into_iter().filter(|(id, _)| !since(id));
        self.by_id.extend(told);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holdings::{Assignment, Domain, Event, Holdings, Key, tests::machines::class};

    fn record(id: &str, state: MachineState, zone: Option<&str>) -> Machine {
        Machine {
            id: id.into(),
            state,
            class: class(zone),
            host: None,
            cluster: None,
            stamp: None,
            shard_metadata: Default::default(),
            last_error: String::new(),
        }
    }

    /// A List of changes tells, too, which machines a neighbour has no more.
    #[test]
    fn what_changed_replaces_what_was_known_of_it() {
        use MachineState::{Configured, Idle, Speculative};
        let home = Domain::new("zone".to_owned(), "a".to_owned()).expect("a domain");
        let assignment = Assignment {
            version: 1,
            held: [Key::Domain(home)].into_iter().collect(),
            ..Assignment::default()
        };
        let held = Holdings::default().apply(&Event::Assigned(assignment)).expect("taken").after;
        let ownership = Ownership::of(&held);
        let mut all = Neighbours::default();
        for id in ["home", "deleted", "used"] {
            all.note(&ownership, &record(id, Configured, Some("a")), false);
        }
        all.note(&ownership, &record("labelled", Idle, None), false);
        let mut known = Neighbours::default();
        let never = |_: &MachineId| false;
        known.replace(all, never);
        assert_eq!((known.draws().count(), known.nobodys()), (3, 1));

        let mut changes = Neighbours::of_changes();
        changes.note(&ownership, &record("home", Idle, Some("a")), true);
        changes.note(&ownership, &record("deleted", Speculative, Some("a")), false);
        changes.note(&ownership, &record("labelled", Idle, Some("a")), true);
        known.replace(changes, never);
        assert_eq!((known.draws().count(), known.nobodys()), (1, 0));
        assert_eq!(known.state(&"used".into()), Some(Configured));

        // Of two records of one machine the last counts.
        let mut changes = Neighbours::of_changes();
        changes.note(&ownership, &record("home", Idle, Some("a")), true);
        changes.note(&ownership, &record("home", Configured, Some("a")), false);
        known.replace(changes, never);
        assert_eq!(known.draws().count(), 2);

        // What left us since the List began is known better than by it.
        known.replace(Neighbours::default(), |id| *id == "used".into());
        assert_eq!(known.draws().count(), 1);
        assert_eq!(known.state(&"used".into()), Some(Configured));
    }
}
