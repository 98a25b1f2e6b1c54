use std::time::Duration;

use bigfleet_crds::UpcomingNodePhase as Phase;
use jiff::Timestamp;

use super::{Key, Ledger, Want};
use crate::dispatch::Moment;
use crate::nodes::effect::{Effect, NodeId, Told};

/// How long a machine may be said to be ready without a ready Node.
const JOINS_WITHIN: Duration = Duration::from_secs(120);

/// How long a departed machine is remembered when no Node is linked to it.
const REMEMBERED: Duration = Duration::from_secs(600);

impl Ledger {
    /// Looks at what only time changes; how many machines are phantom capacity.
    pub(crate) fn sweep(&mut self, now: Moment, wall: Timestamp) -> usize {
        self.sweep_departed(now, wall);
        self.forget_instructions();
        self.forget_records();
        self.sweep_phantoms(now)
    }

    /// Machines Ready for two minutes whose Node is absent or not ready.
    fn sweep_phantoms(&mut self, now: Moment) -> usize {
        let keys: Vec<Key> = self.records.keys().cloned().collect();
        let mut phantoms = 0;
        for key in keys {
            let is_ready = self.phase(&key) == Some(Phase::Ready);
            let node = self.linked(&key).cloned();
            let Some(record) = self.records.get_mut(&key) else { continue };
            if !is_ready {
                (record.ready_since, record.told_not_ready) = (None, false);
                continue;
            }
            let since = *record.ready_since.get_or_insert(now);
            if node.as_ref().is_some_and(|node| node.is_ready()) {
                record.told_not_ready = false;
                continue;
            }
            if now.saturating_sub(since) <= JOINS_WITHIN {
                continue;
            }
            phantoms += 1;
            let told = std::mem::replace(&mut record.told_not_ready, true);
            if let (false, Some(machine)) = (told, record.machine_id.clone()) {
                let node =
                    node.map(|node| NodeId { name: node.name.clone(), uid: node.uid.clone() });
                self.effects.push(Effect::Tell(Told::NotReady { node, object: key, machine }));
            }
        }
        phantoms
    }

    fn sweep_departed(&mut self, now: Moment, wall: Timestamp) {
        let keys: Vec<Key> = self.departed.keys().cloned().collect();
        for key in keys {
            if self.dead_node(&key, wall).is_some() {
                self.records.entry(key.clone()).or_default();
                self.due(&key, false);
                continue;
            }
            let Some(departed) = self.departed.get(&key) else { continue };
            let linked = self.nodes.link(departed.clues()).node().is_some();
            let Some(departed) = self.departed.get_mut(&key) else { continue };
            if linked {
                departed.unlinked = None;
            } else if now.saturating_sub(*departed.unlinked.get_or_insert(now)) > REMEMBERED {
                self.departed.remove(&key);
            }
        }
    }

    /// A machine that is gone, with nothing left to do for it, needs no record.
    fn forget_records(&mut self) {
        let idle: Vec<Key> = self
            .records
            .iter()
            .filter(|(key, record)| {
                let settled = matches!(record.want, Want::AsItIs | Want::Absent { sure: true });
                let seen = self.session == Some(record.seen) && record.want == Want::AsItIs;
                settled
                    && !seen
                    && record.parts.is_empty()
                    && record.unmark.is_none()
                    && self.objects.get(key).is_none()
                    && !self.departed.contains_key(*key)
                    && self.drains.values().all(|drain| drain.key != **key)
            })
            .map(|(key, _)| key.clone())
            .collect();
        for key in idle {
            self.forget(&key);
        }
    }
}
