use std::{fmt, sync::Arc};

use foldhash::fast::FixedState;
use hashbrown::{Equivalent, HashSet};
use kube::Resource;

/// Where an object is: its namespace, unless it belongs to the whole cluster, and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Shared by all objects of the namespace.
    pub namespace: Option<Arc<str>>,
    /// Unique within it.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// The key of a namespaced object.
    #[must_use]
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        Self { namespace: Some(namespace.into()), name: name.into() }
    }

    /// The key of an object of the whole cluster.
    #[must_use]
    pub fn cluster(name: &str) -> Self {
        Self { namespace: None, name: name.into() }
    }

    /// The key of an object.
    #[must_use]
    pub fn of<K: Resource>(object: &K) -> Self {
        let key = KeyRef::of(object);
        Self { namespace: key.namespace.map(Into::into), name: key.name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(formatter, "{namespace}/{}", self.name),
            None => self.name.fmt(formatter),
        }
    }
}

/// An [`ObjectKey`] that owns nothing; hashes alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct KeyRef<'a> {
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
}

impl<'a> KeyRef<'a> {
    pub(crate) fn of<K: Resource>(object: &'a K) -> Self {
        let meta = object.meta();
        Self {
            namespace: meta.namespace.as_deref(),
            name: meta.name.as_deref().unwrap_or_default(),
        }
    }
}

impl Equivalent<ObjectKey> for KeyRef<'_> {
    fn equivalent(&self, key: &ObjectKey) -> bool {
        self.namespace == key.namespace.as_deref() && self.name == &*key.name
    }
}

/// Every namespace is written once, however many objects it holds.
#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    known: HashSet<Arc<str>, FixedState>,
}

impl Namespaces {
    pub(crate) fn key(&mut self, key: KeyRef<'_>) -> ObjectKey {
        let namespace = key.namespace.map(|name| match self.known.get(name) {
            Some(known) => known.clone(),
            None => {
                let namespace: Arc<str> = name.into();
                self.known.insert(namespace.clone());
                namespace
            }
        });
        ObjectKey { namespace, name: key.name.into() }
    }

    /// Forgets namespaces that no key uses any more.
    pub(crate) fn prune(&mut self) {
        self.known.retain(|namespace| Arc::strong_count(namespace) > 1);
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn a_borrowed_key_finds_the_owned_one() {
        for (namespace, name) in [(Some("a"), "b"), (None, "ab"), (Some(""), "ab")] {
            let borrowed = KeyRef { namespace, name };
            let owned = Namespaces::default().key(borrowed);
            let hasher = FixedState::default();
            assert_eq!(hasher.hash_one(borrowed), hasher.hash_one(&owned));
            assert!(borrowed.equivalent(&owned));
        }
        let other = KeyRef { namespace: None, name: "b" };
        assert!(!other.equivalent(&ObjectKey::namespaced("a", "b")));
    }

    #[test]
    fn a_namespace_is_written_once_and_forgotten_with_its_last_key() {
        let mut namespaces = Namespaces::default();
        let mut key = |name| namespaces.key(KeyRef { namespace: Some("apps"), name });
        let (one, two) = (key("one"), key("two"));
        assert!(Arc::ptr_eq(one.namespace.as_ref().unwrap(), two.namespace.as_ref().unwrap()));
        namespaces.prune();
        assert_eq!(namespaces.known.len(), 1);
        drop((one, two));
        namespaces.prune();
        assert!(namespaces.known.is_empty());
    }
}
