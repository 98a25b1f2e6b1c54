//! What a test does to the server and asks of it.

use std::sync::{Arc, Mutex};

use k8s_openapi::{
    api::{
        coordination::v1::Lease,
        core::v1::{Event, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, Secret},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::Resource;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    Call, Eviction, Fault, Server, Verb,
    collection::{Collection, Place},
    world::World,
};

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

impl Server {
    /// A server that knows the resources every server knows, as far as we use them.
    #[must_use]
    pub fn new() -> Self {
        let server = Self { world: Arc::new(Mutex::new(World::new())) };
        server.serve_with::<Pod>(json!({"status": {"phase": "Pending"}}));
        server.serve::<Node>();
        server.serve::<Namespace>();
        server.serve::<Event>();
        server.serve::<Secret>();
        server.serve::<PersistentVolume>();
        server.serve::<PersistentVolumeClaim>();
        server.serve::<Lease>();
        server.serve::<CustomResourceDefinition>();
        server
    }

    /// Knows a resource from now on, with no objects.
    pub fn serve<K: Resource<DynamicType = ()>>(&self) {
        self.know::<K>(None);
    }

    /// Knows a resource whose new objects are laid over these defaults.
    pub fn serve_with<K: Resource<DynamicType = ()>>(&self, defaults: Value) {
        self.know::<K>(Some(defaults));
    }

    fn know<K: Resource<DynamicType = ()>>(&self, defaults: Option<Value>) {
        let mut world = self.lock();
        let collection = Collection::new(&K::kind(&()), defaults, world.version());
        world.collections.insert(key::<K>(), collection);
    }

    /// Knows a resource no more, as when its CRD is deleted: its objects go first, watches see
    /// them go and end.
    pub fn withdraw<K: Resource<DynamicType = ()>>(&self) {
        let places: Vec<Place> = self.read::<K, _>(|all| all.objects.keys().cloned().collect());
        for place in &places {
            self.take(&key::<K>(), place);
        }
        if let Some(collection) = self.lock().collections.get_mut(&key::<K>()) {
            collection.gone = true;
            collection.round.send_modify(|_| {});
        }
    }

    /// Writes an object as it is, its status included, whether it was there or not.
    ///
    /// # Panics
    ///
    /// When the resource is not served or the object cannot be JSON.
    pub fn put<K: Resource<DynamicType = ()> + Serialize>(&self, object: &K) {
        let mut value = match serde_json::to_value(object) {
            Ok(value) => value,
            Err(error) => panic!("not JSON: {error}"),
        };
        let meta = object.meta();
        let place =
            (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default());
        let mut world = self.lock();
        let uid = world.next_uid();
        let version = world.next_version();
        let Some(collection) = world.collections.get_mut(&key::<K>()) else {
            panic!("{} is not served", K::plural(&()));
        };
        let known: Option<Value> =
            collection.objects.get(&place).and_then(|text| serde_json::from_str(text).ok());
        let fill = |field: &str, fresh: Value| {
            let known = known.as_ref().map(|known| known["metadata"][field].clone());
            known.filter(|known| !known.is_null()).unwrap_or(fresh)
        };
        let created = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let metadata = &mut value["metadata"];
        for (field, fresh) in [
            ("uid", format!("uid-{uid}").into()),
            ("creationTimestamp", created.into()),
            ("generation", 1.into()),
        ] {
            if metadata[field].is_null() {
                metadata[field] = fill(field, fresh);
            }
        }
        collection.put(place, value, version);
    }

    /// Takes an object away; whether it was there.
    pub fn remove<K: Resource<DynamicType = ()>>(
        &self,
        namespace: Option<&str>,
        name: &str,
    ) -> bool {
        self.take(&key::<K>(), &(namespace.unwrap_or_default().to_owned(), name.to_owned()))
    }

    fn take(&self, key: &(String, String), place: &Place) -> bool {
        let mut world = self.lock();
        let version = world.next_version();
        let Some(collection) = world.collections.get_mut(key) else { return false };
        let known = collection.objects.contains_key(place);
        collection.remove(place, version);
        known
    }

    /// An object as it is now.
    #[must_use]
    pub fn get<K: Resource<DynamicType = ()> + DeserializeOwned>(
        &self,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<K> {
        let place = (namespace.unwrap_or_default().to_owned(), name.to_owned());
        let text = self.read::<K, _>(|all| all.objects.get(&place).cloned())?;
        serde_json::from_str(&text).ok()
    }

    /// All objects of a resource as they are now.
    ///
    /// # Panics
    ///
    /// When one of them is not what it should be.
    #[must_use]
    pub fn all<K: Resource<DynamicType = ()> + DeserializeOwned>(&self) -> Vec<K> {
        let texts: Vec<Arc<str>> = self.read::<K, _>(|all| all.objects.values().cloned().collect());
        let parse = |text: &Arc<str>| match serde_json::from_str(text) {
            Ok(object) => object,
            Err(error) => panic!("{error}: {text}"),
        };
        texts.iter().map(parse).collect()
    }

    /// How many objects of a resource there are.
    #[must_use]
    pub fn number_of<K: Resource<DynamicType = ()>>(&self) -> usize {
        self.read::<K, _>(|all| all.objects.len())
    }

    fn read<K: Resource<DynamicType = ()>, T: Default>(
        &self,
        read: impl FnOnce(&Collection) -> T,
    ) -> T {
        self.lock().collections.get(&key::<K>()).map(read).unwrap_or_default()
    }

    /// Adds a trouble.
    pub fn inject(&self, fault: Fault) {
        self.lock().faults.push(fault);
    }

    /// Ends all troubles that were injected.
    pub fn heal(&self) {
        self.lock().faults.clear();
    }

    /// Goes away, or comes back: no call is answered and every watch breaks.
    pub fn away(&self, away: bool) {
        self.lock().away = away;
        if away {
            self.cut_watches();
        }
    }

    /// Ends every watch. Nothing is lost: they can be resumed.
    pub fn cut_watches(&self) {
        self.lock().collections.values().for_each(Collection::cut);
    }

    /// Forgets all changes so far and ends every watch: who resumes one is told 410.
    pub fn gap(&self) {
        let mut world = self.lock();
        // Also one who has seen everything has a version that is too old.
        let version = world.next_version();
        for collection in world.collections.values_mut() {
            collection.compact(version);
            collection.cut();
        }
    }

    /// Decides over evictions from now on; the rule sees the pod.
    pub fn on_eviction(&self, rule: impl FnMut(&Value) -> Eviction + Send + 'static) {
        self.lock().evictions = Some(Box::new(rule));
    }

    /// Lets deleted pods that have a node stay, as they do until the kubelet has ended them; to
    /// end one, delete it with grace 0 or [`Server::remove`] it.
    pub fn linger(&self, linger: bool) {
        self.lock().linger = linger;
    }

    /// How many such calls came, answered or not.
    #[must_use]
    pub fn count(&self, verb: Verb, plural: &str) -> u64 {
        self.lock().counts.get(&(verb, plural.to_owned())).copied().unwrap_or_default()
    }

    /// How many calls came that write.
    #[must_use]
    pub fn writes(&self) -> u64 {
        let reads = [Verb::Get, Verb::List, Verb::Watch];
        let world = self.lock();
        let writes = world.counts.iter().filter(|((verb, _), _)| !reads.contains(verb));
        writes.map(|(_, count)| count).sum()
    }

    /// Remembers every call from now on.
    pub fn record(&self) {
        self.lock().calls.get_or_insert_default();
    }

    /// Takes out the calls remembered.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.lock().calls.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

fn key<K: Resource<DynamicType = ()>>() -> (String, String) {
    (K::api_version(&()).into_owned(), K::plural(&()).into_owned())
}
