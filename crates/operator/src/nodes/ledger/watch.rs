use std::sync::Arc;

use bigfleet_crds::upcoming_node_name;

use super::{Key, Ledger};
use crate::nodes::view::{NodeView, UpcomingView};

impl Ledger {
    /// The watch shows a Node.
    pub(crate) fn node_shown(&mut self, node: Arc<NodeView>) {
        let name = node.name.clone();
        let before = self.nodes.get(&name).cloned();
        self.nodes.shown(node);
        let after = self.nodes.get(&name).cloned();
        self.check_drain(&name);
        let changed = match (&before, &after) {
            (Some(before), Some(after)) => {
                (&before.uid, &before.machine, &before.provider_id, &before.instruction)
                    != (&after.uid, &after.machine, &after.provider_id, &after.instruction)
            }
            _ => true,
        };
        if changed {
            for node in before.iter().chain(&after) {
                for key in self.candidates(node) {
                    self.due(&key, false);
                }
            }
        }
    }

    /// The watch shows that a Node is gone.
    pub(crate) fn node_vanished(&mut self, name: &Arc<str>, uid: &str) {
        self.nodes.vanished(name, uid);
        self.check_drain(name);
    }

    /// A drain belongs to one Node, whatever later bears its name.
    fn check_drain(&mut self, name: &Arc<str>) {
        let Some(drain) = self.drains.get(name) else { return };
        if self.nodes.get(name).is_none_or(|node| node.uid != drain.uid) {
            self.stop_drain(name);
        }
    }

    /// The watch shows an object.
    pub(crate) fn object_shown(&mut self, object: Arc<UpcomingView>) {
        let name = object.name.clone();
        self.objects.shown(object);
        self.adopt(&name);
    }

    /// The watch shows that an object is gone.
    pub(crate) fn object_vanished(&mut self, name: &str, uid: &str) {
        self.objects.vanished(name, uid);
    }

    /// New lists were shown.
    pub(crate) fn relisted(&mut self) {
        self.nodes.relisted();
        self.objects.relisted();
    }

    /// Every object has a record, so that it can be linked and pruned.
    fn adopt(&mut self, name: &Key) {
        let Some(object) = self.objects.get(name).cloned() else { return };
        if self.records.get(name).is_some_and(|record| record.machine_id.is_some()) {
            return;
        }
        let record = self.records.entry(name.clone()).or_default();
        // An object that does not bear its machine's name stands for none.
        record.machine_id =
            object.machine.clone().filter(|machine| upcoming_node_name(machine) == **name);
        let provider_id = object.status.as_ref().and_then(|status| status.provider_id.clone());
        self.learn(name, "", &provider_id.unwrap_or_default());
    }
}
