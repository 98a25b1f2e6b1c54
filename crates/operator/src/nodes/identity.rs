//! Which Node is a machine's.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::mirror::Mirror;
use super::view::NodeView;

/// What is known of a machine that may lead to its Node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clues<'a> {
    /// The machine's id.
    pub machine_id: &'a str,
    /// `node_name` of its latest frame; may be empty.
    pub node_name: &'a str,
    /// `provider_id` of its latest frame; may be empty.
    pub provider_id: &'a str,
}

/// Where the clues lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link<'a> {
    /// To this Node.
    Node(&'a Arc<NodeView>),
    /// To several Nodes at one step: none is taken, or one node would be drained for another.
    Several,
    /// To none.
    None,
}

impl<'a> Link<'a> {
    /// The Node, when there is exactly one.
    #[must_use]
    pub fn node(self) -> Option<&'a Arc<NodeView>> {
        match self {
            Self::Node(node) => Some(node),
            Self::Several | Self::None => None,
        }
    }
}

/// The Nodes, to be found by name, by the machine of their label, and by provider id.
#[derive(Debug, Default)]
pub struct NodeIndex {
    nodes: Mirror<NodeView>,
    by_machine: HashMap<Arc<str>, BTreeSet<Arc<str>>>,
    by_provider_id: HashMap<Arc<str>, BTreeSet<Arc<str>>>,
}

impl NodeIndex {
    /// The Node of a machine.
    #[must_use]
    pub fn link(&self, clues: Clues<'_>) -> Link<'_> {
        let labelled = self.by_machine.get(clues.machine_id);
        let named = |name: &str| if name.is_empty() { None } else { self.get(name) };
        let provided = self.by_provider_id.get(clues.provider_id);
        if let Some(names) = labelled {
            return self.one_of(names, clues.provider_id);
        }
        if let Some(node) = named(clues.node_name) {
            return Link::Node(node);
        }
        if let Some(names) = provided {
            return self.one_of(names, clues.provider_id);
        }
        named(clues.machine_id).map_or(Link::None, Link::Node)
    }

    fn one_of(&self, names: &BTreeSet<Arc<str>>, provider_id: &str) -> Link<'_> {
        let nodes = || names.iter().filter_map(|name| self.get(name));
        let mut fitting = nodes().filter(|node| {
            !provider_id.is_empty() && node.provider_id.as_deref() == Some(provider_id)
        });
        let mut all = nodes();
        match (all.next(), all.next()) {
            (None, _) => Link::None,
            (Some(only), None) => Link::Node(only),
            (Some(_), Some(_)) => match (fitting.next(), fitting.next()) {
                (Some(fits), None) => Link::Node(fits),
                _ => Link::Several,
            },
        }
    }

    /// The Node of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<NodeView>> {
        self.nodes.get(name)
    }

    /// Every Node.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<NodeView>> {
        self.nodes.iter()
    }

    /// The watch shows the Node.
    pub fn shown(&mut self, node: Arc<NodeView>) {
        self.change(&node.name.clone(), |nodes| nodes.shown(node));
    }

    /// The watch shows that the Node is gone.
    pub fn vanished(&mut self, name: &Arc<str>, uid: &str) {
        self.change(name, |nodes| nodes.vanished(name, uid));
    }

    /// A new list was shown.
    pub fn relisted(&mut self) {
        self.nodes.relisted();
    }

    /// The server answered a write or a read with this Node.
    pub fn wrote(&mut self, node: Arc<NodeView>) {
        self.change(&node.name.clone(), |nodes| nodes.wrote(node));
    }

    /// The server said that the Node is gone.
    pub fn deleted(&mut self, name: &Arc<str>) {
        self.change(name, |nodes| nodes.deleted(name));
    }

    fn change(&mut self, name: &Arc<str>, change: impl FnOnce(&mut Mirror<NodeView>)) {
        if let Some(before) = self.nodes.get(name).cloned() {
            strike(&mut self.by_machine, before.machine.as_ref(), name);
            strike(&mut self.by_provider_id, before.provider_id.as_ref(), name);
        }
        change(&mut self.nodes);
        if let Some(after) = self.nodes.get(name).cloned() {
            self.enter(&after);
        }
    }

    fn enter(&mut self, node: &NodeView) {
        if let Some(machine) = &node.machine {
            self.by_machine.entry(machine.clone()).or_default().insert(node.name.clone());
        }
        if let Some(id) = &node.provider_id {
            self.by_provider_id.entry(id.clone()).or_default().insert(node.name.clone());
        }
    }
}

fn strike(
    index: &mut HashMap<Arc<str>, BTreeSet<Arc<str>>>,
    key: Option<&Arc<str>>,
    name: &Arc<str>,
) {
    let Some(key) = key else { return };
    if let Some(names) = index.get_mut(key) {
        names.remove(name);
        if names.is_empty() {
            index.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::mirror::Version;

    fn node(name: &str, machine: &str, provider_id: &str) -> Arc<NodeView> {
        let filled = |text: &str| (!text.is_empty()).then(|| text.into());
        Arc::new(NodeView {
            name: name.into(),
            uid: format!("uid-{name}").into(),
            version: Version::of(Some("1")),
            machine: filled(machine),
            provider_id: filled(provider_id),
            unschedulable: false,
            instruction: None,
            deadline: None,
            cordoned_by_human: false,
            ready: None,
        })
    }

    fn index(nodes: &[Arc<NodeView>]) -> NodeIndex {
        let mut index = NodeIndex::default();
        nodes.iter().for_each(|node| index.shown(node.clone()));
        index
    }

    fn linked(index: &NodeIndex, machine_id: &str, node_name: &str, provider_id: &str) -> String {
        match index.link(Clues { machine_id, node_name, provider_id }) {
            Link::Node(node) => node.name.to_string(),
            Link::Several => "several".to_owned(),
            Link::None => "none".to_owned(),
        }
    }

    #[test]
    fn the_steps_go_in_order() {
        let all = [
            node("labelled", "m", ""),
            node("named", "", ""),
            node("provided", "", "p"),
            node("m", "", ""),
        ];
        for (skipped, expected) in ["labelled", "named", "provided", "m", "none"].iter().enumerate()
        {
            let index = index(&all[skipped.min(all.len())..]);
            assert_eq!(linked(&index, "m", "named", "p"), *expected);
        }
    }

    #[test]
    fn two_labels_are_told_apart_by_the_provider_id_or_not_at_all() {
        let index = index(&[node("a", "m", "p"), node("b", "m", "q"), node("m", "", "")]);
        assert_eq!(linked(&index, "m", "", "q"), "b");
        assert_eq!(linked(&index, "m", "", "r"), "several");
        assert_eq!(linked(&index, "m", "a", ""), "several", "a later step does not heal it");
    }

    #[test]
    fn two_nodes_of_one_provider_id_are_none() {
        let index = index(&[node("a", "", "p"), node("b", "", "p")]);
        assert_eq!(linked(&index, "m", "", "p"), "several");
        assert_eq!(linked(&index, "m", "a", "p"), "a");
    }

    #[test]
    fn empty_clues_lead_nowhere() {
        let index = index(&[node("a", "", "")]);
        assert_eq!(linked(&index, "m", "", ""), "none");
    }

    #[test]
    fn the_index_follows_every_change() {
        let mut index = index(&[node("a", "m", "p")]);
        index.shown(node("a", "other", "q"));
        assert_eq!(linked(&index, "m", "", "p"), "none");
        assert_eq!(linked(&index, "other", "", ""), "a");
        index.vanished(&"a".into(), "uid-a");
        assert_eq!(linked(&index, "other", "a", "q"), "none");
        assert!(index.by_machine.is_empty() && index.by_provider_id.is_empty());
    }
}
