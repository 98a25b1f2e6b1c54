//! Coordinator chapter §5, §6 and §9 in a few lines.

use std::collections::{BTreeMap, BTreeSet};

use super::super::super::*;

#[derive(Clone, Debug, Default)]
struct Row {
    owner: Option<usize>,
    releasing_from: Option<usize>,
    since: i64,
}

#[derive(Clone, Debug)]
struct Transfer {
    from: usize,
    to: usize,
    /// None while Releasing.
    moved: Option<(Domain, BTreeSet<MachineId>)>,
}

#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) shard: usize,
    pub(super) version: i64,
    pub(super) releasing: Keys,
    pub(super) settled: BTreeSet<TransferMachine>,
    pub(super) answers: Vec<(TransferId, Out)>,
}

pub(super) struct Coordinator {
    index: i64,
    rows: BTreeMap<Key, Row>,
    transfers: BTreeMap<TransferId, Transfer>,
    changed_at: Vec<i64>,
    begun: usize,
}

impl Coordinator {
    pub(super) fn new(shards: usize) -> Self {
        Self {
            index: 1,
            rows: BTreeMap::new(),
            transfers: BTreeMap::new(),
            changed_at: vec![1; shards],
            begun: 0,
        }
    }

    fn change_all(&mut self) {
        let index = self.index;
        self.changed_at.iter_mut().for_each(|at| *at = index);
    }

    pub(super) fn move_key(&mut self, key: Key, to: usize) {
        self.index += 1;
        let row = self.rows.entry(key).or_default();
        if row.owner == Some(to) {
            return;
        }
        let hold = row.releasing_from.or(row.owner);
        *row = Row {
            owner: Some(to),
            releasing_from: hold.filter(|hold| *hold != to),
            since: self.index,
        };
        self.change_all();
    }

    pub(super) fn begin_transfer(&mut self, from: usize, to: usize) {
        if from == to || self.transfers.len() > 2 {
            return;
        }
        self.index += 1;
        self.begun += 1;
        let id = TransferId::from(format!("t{}", self.begun));
        self.transfers.insert(id, Transfer { from, to, moved: None });
        self.change_all();
    }

    /// Transfers that were never answered end.
    pub(super) fn give_up(&mut self) {
        self.index += 1;
        self.transfers.retain(|_, transfer| transfer.moved.is_some());
        self.change_all();
    }

    /// Steps 5 and 6 of a report, also of one that is late.
    pub(super) fn take(&mut self, report: &Report) {
        for (id, out) in &report.answers {
            self.index += 1;
            let taken: BTreeSet<MachineId> = self
                .transfers
                .values()
                .filter_map(|transfer| transfer.moved.as_ref())
                .flat_map(|(_, machines)| machines.iter().cloned())
                .collect();
            let Some(transfer) = self.transfers.get(id) else { continue };
            if transfer.from != report.shard || transfer.moved.is_some() {
                continue;
            }
            let home = self.rows.get(&Key::Domain(out.home.clone()));
            let ours = home
                .is_some_and(|row| row.owner == Some(report.shard) && row.releasing_from.is_none());
            if ours && out.machines.is_disjoint(&taken) {
                let moved = Some((out.home.clone(), out.machines.clone()));
                self.transfers.entry(id.clone()).and_modify(|one| one.moved = moved);
            } else {
                self.transfers.remove(id);
            }
            self.change_all();
        }
        for one in &report.settled {
            self.index += 1;
            let Some(transfer) = self.transfers.get_mut(&one.transfer) else { continue };
            let Some((_, machines)) = transfer.moved.as_mut() else { continue };
            if transfer.to != report.shard || !machines.remove(&one.machine) {
                continue;
            }
            if machines.is_empty() {
                self.transfers.remove(&one.transfer);
            }
            self.change_all();
        }
        let mut released = false;
        for (key, row) in &mut self.rows {
            let from = row.releasing_from == Some(report.shard) && row.since <= report.version;
            if from && !report.releasing.contains(key) {
                row.releasing_from = None;
                released = true;
            }
        }
        if released {
            self.index += 1;
            self.change_all();
        }
    }

    /// The Assignment if it is due, and the transfers that are asked for.
    pub(super) fn answer(&self, report: &Report) -> (Option<Assignment>, Vec<TransferId>) {
        let shard = report.shard;
        let due = report.version < self.changed_at[shard];
        let open = self
            .transfers
            .iter()
            .filter(|(_, transfer)| transfer.from == shard && transfer.moved.is_none());
        let open: Vec<TransferId> = open.map(|(id, _)| id.clone()).collect();
        (due.then(|| self.assignment(shard, &open)), open)
    }

    pub(super) fn held_by(&self, shard: usize) -> Keys {
        let held = self
            .rows
            .iter()
            .filter(|(_, row)| row.owner == Some(shard) && row.releasing_from.is_none());
        held.map(|(key, _)| key.clone()).collect()
    }

    fn assignment(&self, shard: usize, open: &[TransferId]) -> Assignment {
        let held = self.held_by(shard);
        let (mut machines_in, mut machines_out) = (BTreeSet::new(), BTreeSet::new());
        for (id, transfer) in &self.transfers {
            let Some((home, machines)) = &transfer.moved else { continue };
            for machine in machines {
                let one = TransferMachine {
                    transfer: id.clone(),
                    machine: machine.clone(),
                    home: home.clone(),
                    from: transfer.from.to_string(),
                };
                if transfer.to == shard {
                    machines_in.insert(one);
                } else if held.domains.contains(home) {
                    machines_out.insert(one);
                }
            }
        }
        Assignment {
            version: self.index,
            digest: 7,
            held,
            machines_in,
            machines_out,
            slices: Vec::new(),
            open_transfers: open.iter().cloned().collect(),
        }
    }

    /// What has not settled.
    pub(super) fn unsettled(&self) -> Vec<String> {
        let rows = self.rows.iter().filter(|(_, row)| row.releasing_from.is_some());
        let rows = rows.map(|(key, row)| format!("{key:?} {row:?}"));
        rows.chain(self.transfers.iter().map(|(id, one)| format!("{id} {one:?}"))).collect()
    }
}
