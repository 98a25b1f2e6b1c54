//! Which pods name a node, a claim or a group, so that a change of it finds them.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use bigfleet_in_cluster::ObjectKey;

use crate::pod::{Phase, Pod};

/// Something that a pod names and that its request depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Mention {
    /// The node it is bound to.
    Node(Arc<str>),
    /// The claim of one of its volumes.
    Claim(ObjectKey),
    /// Its PodGroup.
    Group(ObjectKey),
}

/// Pods by what they name.
#[derive(Debug, Default)]
pub(crate) struct Mentions(HashMap<Mention, HashSet<ObjectKey>>);

impl Mentions {
    /// A pod came, changed or went.
    pub(crate) fn update(&mut self, key: &ObjectKey, before: Option<&Pod>, after: Option<&Pod>) {
        let (before, after) = (of(before), of(after));
        for gone in before.iter().filter(|mention| !after.contains(mention)) {
            if let Some(pods) = self.0.get_mut(gone) {
                pods.remove(key);
                if pods.is_empty() {
                    self.0.remove(gone);
                }
            }
        }
        for new in after.into_iter().filter(|mention| !before.contains(mention)) {
            self.0.entry(new).or_default().insert(key.clone());
        }
    }

    /// The pods that name it.
    pub(crate) fn pods(&self, mention: &Mention) -> impl Iterator<Item = &ObjectKey> {
        self.0.get(mention).into_iter().flatten()
    }
}

fn of(pod: Option<&Pod>) -> Vec<Mention> {
    let Some(pod) = pod.filter(|pod| pod.phase == Phase::Alive) else { return Vec::new() };
    let here = |name: &str| ObjectKey { namespace: Some(pod.namespace.clone()), name: name.into() };
    let node = pod.node.clone().map(Mention::Node);
    let group = pod.group.as_deref().map(|group| Mention::Group(here(group)));
    let claims = pod.claims.iter().map(|claim| Mention::Claim(here(claim)));
    node.into_iter().chain(group).chain(claims).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_found_by_what_they_name() {
        let pod = |node: Option<&str>, claims: &[&str]| Pod {
            namespace: "apps".into(),
            node: node.map(Into::into),
            group: Some("g".into()),
            claims: claims.iter().map(|claim| Box::from(*claim)).collect(),
            ..Pod::default()
        };
        let (a, b) = (ObjectKey::namespaced("apps", "a"), ObjectKey::namespaced("apps", "b"));
        let claim = |name| Mention::Claim(ObjectKey::namespaced("apps", name));
        let node = Mention::Node("n".into());
        let mut mentions = Mentions::default();
        let unbound = pod(None, &["c", "d"]);
        mentions.update(&a, None, Some(&unbound));
        mentions.update(&b, None, Some(&pod(Some("n"), &["d"])));
        let bound = pod(Some("n"), &["c"]);
        mentions.update(&a, Some(&unbound), Some(&bound));
        let pods = |mentions: &Mentions, mention: &Mention| {
            let mut pods: Vec<_> = mentions.pods(mention).cloned().collect();
            pods.sort();
            pods
        };
        assert_eq!(pods(&mentions, &node), [a.clone(), b.clone()]);
        assert_eq!(pods(&mentions, &claim("c")), std::slice::from_ref(&a));
        assert_eq!(pods(&mentions, &claim("d")), std::slice::from_ref(&b));
        let group = Mention::Group(ObjectKey::namespaced("apps", "g"));
        assert_eq!(pods(&mentions, &group), [a.clone(), b.clone()]);
        mentions.update(&a, Some(&bound), None);
        let over = Pod { phase: Phase::Over, ..pod(Some("n"), &["d"]) };
        mentions.update(&b, Some(&pod(Some("n"), &["d"])), Some(&over));
        assert!(mentions.0.is_empty());
    }
}
