//! Requests summed per need (§3.3).
//!
//! A fold that requests were added to and taken from in any order is, byte for
//! byte, the fold of what is left.

use std::{collections::BTreeMap, sync::Arc};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use prost::bytes::Bytes;

use super::{identity::NeedIdentity, message::RollUp, request::Request, row::Row};

/// The demand of one cluster.
#[derive(Debug)]
pub struct Fold {
    cluster: Box<str>,
    rows: Vec<Row>,
    /// Places in `rows` that are free.
    free: Vec<usize>,
    /// By the address, for identities are interned; each row keeps its own alive.
    places: HashMap<usize, usize, RandomState>,
    /// In the order of the message.
    order: BTreeMap<Arc<NeedIdentity>, usize>,
    requests: usize,
    /// Of DaemonSets' pods.
    daemonset: usize,
    /// Rises when a need comes or goes.
    shape: u64,
    /// The needs as last built, if nothing changed since.
    built: Option<Arc<[Bytes]>>,
}

/// Where an identity lies: equal ones lie in one place.
fn address(need: &Arc<NeedIdentity>) -> usize {
    Arc::as_ptr(need).addr()
}

impl Fold {
    /// No demand yet.
    #[must_use]
    pub fn new(cluster: &str) -> Self {
        Self {
            cluster: cluster.into(),
            rows: Vec::new(),
            free: Vec::new(),
            places: HashMap::default(),
            order: BTreeMap::new(),
            requests: 0,
            daemonset: 0,
            shape: 0,
            built: None,
        }
    }

    /// Takes a request in. One that cannot be translated counts, but asks for nothing.
    pub fn add(&mut self, request: &Request) {
        self.built = None;
        self.requests += 1;
        self.daemonset += usize::from(request.daemonset);
        let Ok(demand) = &request.demand else { return };
        let place = match self.places.get(&address(&demand.need)) {
            Some(place) => *place,
            None => self.open(&demand.need),
        };
        self.rows[place].add(&demand.unit);
    }

    fn open(&mut self, need: &Arc<NeedIdentity>) -> usize {
        let row = Row::new(need.clone());
        let place = match self.free.pop() {
            Some(place) => {
                self.rows[place] = row;
                place
            }
            None => {
                self.rows.push(row);
                self.rows.len() - 1
            }
        };
        self.places.insert(address(need), place);
        self.order.insert(need.clone(), place);
        self.shape += 1;
        place
    }

    /// Takes back a request that was taken in.
    pub fn remove(&mut self, request: &Request) {
        self.built = None;
        self.requests = self.requests.saturating_sub(1);
        self.daemonset = self.daemonset.saturating_sub(usize::from(request.daemonset));
        let Ok(demand) = &request.demand else { return };
        let Some(place) = self.places.get(&address(&demand.need)).copied() else { return };
        let row = &mut self.rows[place];
        row.remove(&demand.unit);
        if row.is_empty() {
            let identity = row.identity().clone();
            self.places.remove(&address(&identity));
            self.order.remove(&identity);
            self.free.push(place);
            self.shape += 1;
        }
    }

    /// One request became another of the same name.
    pub fn replace(&mut self, before: &Request, after: &Request) {
        if !before.counts_as(after) {
            self.remove(before);
            self.add(after);
        }
    }

    /// Requests taken in.
    #[must_use]
    pub const fn requests(&self) -> usize {
        self.requests
    }

    /// Whether only DaemonSets' pods are left, which would keep a cluster from ever
    /// reaching zero: each node that they hold has them again.
    #[must_use]
    pub const fn is_daemonsets_only(&self) -> bool {
        self.daemonset == self.requests
    }

    /// Differs when [`Fold::identities`] may differ.
    #[must_use]
    pub const fn shape(&self) -> (u64, bool) {
        (self.shape, self.is_daemonsets_only())
    }

    /// The identities that a roll-up would name, in its order.
    pub fn identities(&self) -> impl Iterator<Item = &Arc<NeedIdentity>> {
        self.order.keys().filter(|_| !self.is_daemonsets_only())
    }

    /// The whole demand as of now. Only what changed since the last is encoded anew.
    pub fn build(&mut self, timestamp: i64) -> RollUp {
        let needs = match &self.built {
            Some(built) => built.clone(),
            None => {
                let built = self.encode();
                self.built.insert(built).clone()
            }
        };
        RollUp::new(&self.cluster, timestamp, needs, self.requests)
    }

    fn encode(&mut self) -> Arc<[Bytes]> {
        if self.is_daemonsets_only() {
            return Arc::new([]);
        }
        let Self { order, rows, .. } = self;
        order.values().map(|place| rows[*place].encoded()).collect()
    }
}
