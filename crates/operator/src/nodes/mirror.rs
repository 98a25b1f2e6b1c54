//! A watch cache with our own writes over it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// A resource version. They rise with every write of the object, so that two can be compared; one
/// that is no number is older than every other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Version(u64);

impl Version {
    /// Reads `metadata.resourceVersion`.
    #[must_use]
    pub fn of(text: Option<&str>) -> Self {
        Self(text.and_then(|text| text.parse().ok()).unwrap_or_default())
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An object that can be mirrored.
pub trait Mirrored {
    /// Its name.
    fn name(&self) -> &Arc<str>;
    /// Its uid.
    fn uid(&self) -> &str;
    /// Its resource version.
    fn version(&self) -> Version;
}

/// [`Mirrored`] for views that keep the three under their names.
macro_rules! mirrored {
    ($($view:ty),+) => {
        $(impl $crate::nodes::mirror::Mirrored for $view {
            fn name(&self) -> &std::sync::Arc<str> {
                &self.name
            }

            fn uid(&self) -> &str {
                &self.uid
            }

            fn version(&self) -> $crate::nodes::mirror::Version {
                self.version
            }
        })+
    };
}
pub(crate) use mirrored;

/// What the watch showed, and over it what we wrote and the watch has not shown yet.
///
/// The cache may be older than our own last write; until it has caught up, what we wrote is the
/// truth. Else a create followed at once by a departure would leak the object.
#[derive(Debug)]
pub struct Mirror<V> {
    cached: HashMap<Arc<str>, Arc<V>>,
    own: HashMap<Arc<str>, Own<V>>,
}

#[derive(Debug)]
enum Own<V> {
    Written(Arc<V>),
    /// The uid of the object we deleted.
    Deleted(Arc<str>),
}

impl<V> Default for Mirror<V> {
    fn default() -> Self {
        Self { cached: HashMap::new(), own: HashMap::new() }
    }
}

impl<V: Mirrored> Mirror<V> {
    /// The object as it stands, as far as we know.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<V>> {
        let cached = self.cached.get(name);
        match self.own.get(name) {
            None => cached,
            Some(Own::Written(own)) => match cached {
                Some(cached) if cached.version() >= own.version() => Some(cached),
                _ => Some(own),
            },
            Some(Own::Deleted(uid)) => cached.filter(|cached| cached.uid() != &**uid),
        }
    }

    /// Every object as it stands.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<V>> {
        let fresh = self.own.keys().filter(|name| !self.cached.contains_key(*name));
        self.cached.keys().chain(fresh).filter_map(|name| self.get(name))
    }

    /// The watch shows the object.
    pub fn shown(&mut self, object: Arc<V>) {
        let name = object.name().clone();
        let caught_up = match self.own.get(&name) {
            None => false,
            Some(Own::Written(own)) => object.version() >= own.version(),
            Some(Own::Deleted(uid)) => object.uid() != &**uid,
        };
        if caught_up {
            self.own.remove(&name);
        }
        self.cached.insert(name, object);
    }

    /// The watch shows that an object is gone.
    pub fn vanished(&mut self, name: &str, uid: &str) {
        self.cached.remove(name);
        let caught_up = match self.own.get(name) {
            None => false,
            Some(Own::Written(own)) => own.uid() == uid,
            Some(Own::Deleted(_)) => true,
        };
        if caught_up {
            self.own.remove(name);
        }
    }

    /// A new list was shown; what it no longer holds will not be shown again.
    pub fn relisted(&mut self) {
        let cached = &self.cached;
        self.own.retain(|name, own| match own {
            // Absent from the list, it was listed before our write.
            Own::Written(_) => true,
            Own::Deleted(_) => cached.contains_key(name),
        });
    }

    /// The server answered a write, or a read past the cache, with this object.
    pub fn wrote(&mut self, object: Arc<V>) {
        let name = object.name().clone();
        let newer = |known: &Arc<V>| known.version() >= object.version();
        if self.cached.get(&name).is_some_and(newer) {
            self.own.remove(&name);
        } else {
            self.own.insert(name, Own::Written(object));
        }
    }

    /// The server said that the object is gone.
    pub fn deleted(&mut self, name: &Arc<str>) {
        // Even when nothing of it was shown yet: the watch will still show its creation first.
        if let Some(uid) = self.get(name).map(|object| Arc::from(object.uid())) {
            self.own.insert(name.clone(), Own::Deleted(uid));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Thing(Arc<str>, &'static str, u64);

    impl Mirrored for Thing {
        fn name(&self) -> &Arc<str> {
            &self.0
        }
        fn uid(&self) -> &str {
            self.1
        }
        fn version(&self) -> Version {
            Version(self.2)
        }
    }

    fn thing(uid: &'static str, version: u64) -> Arc<Thing> {
        Arc::new(Thing("a".into(), uid, version))
    }

    #[test]
    fn our_write_stands_until_the_watch_has_caught_up() {
        let mut mirror = Mirror::default();
        mirror.shown(thing("u", 1));
        mirror.wrote(thing("u", 3));
        mirror.shown(thing("u", 2));
        assert_eq!(mirror.get("a").unwrap().2, 3);
        mirror.shown(thing("u", 3));
        mirror.vanished("a", "u");
        assert!(mirror.get("a").is_none());
    }

    #[test]
    fn a_create_that_the_watch_has_not_shown_is_there() {
        let mut mirror = Mirror::default();
        mirror.wrote(thing("u", 3));
        assert!(mirror.get("a").is_some());
        assert_eq!(mirror.iter().count(), 1);
        mirror.relisted();
        assert!(mirror.get("a").is_some());
    }

    #[test]
    fn what_we_deleted_is_gone_whatever_the_watch_still_shows_of_it() {
        let mut mirror = Mirror::default();
        mirror.wrote(thing("u", 3));
        mirror.deleted(&"a".into());
        mirror.shown(thing("u", 3));
        assert!(mirror.get("a").is_none());
        mirror.vanished("a", "u");
        mirror.shown(thing("v", 9));
        assert_eq!(mirror.get("a").unwrap().1, "v");
    }

    #[test]
    fn a_late_answer_does_not_hide_what_the_watch_shows() {
        let mut mirror = Mirror::default();
        mirror.shown(thing("u", 5));
        mirror.wrote(thing("u", 4));
        assert_eq!(mirror.get("a").unwrap().2, 5);
    }
}
