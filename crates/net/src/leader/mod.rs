//! Finding the leader among the replicas of a coordinator (coordinator chapter §3):
//! the last known one, then whom a follower names, then every address. A connection
//! to a replica that does not lead is never kept.

mod attempt;
mod queue;
mod resolve;
mod round;

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use futures_util::future::join_all;
use tokio::time::{Instant, timeout_at};
use tonic::transport::Channel;

use self::queue::{Queue, Target};
pub use self::{
    attempt::{Attempt, Turn},
    resolve::Resolver,
    round::Round,
};
use crate::{grpc, rule::Rule, tls::Security};

/// Trailer in which a follower says where the leader is.
pub const LEADER_ADDR: &str = "bigfleet-leader-addr";
/// Trailer in which a follower says who the leader is.
pub const LEADER_ID: &str = "bigfleet-leader-id";

/// A silent name service must leave time for the addresses that are known.
const LOOKUP: Duration = Duration::from_secs(2);

/// Addresses as a flag writes them: one or more, separated by commas.
#[must_use]
pub fn split(flag: &str) -> Vec<String> {
    let trimmed = flag.split(',').map(str::trim);
    trimmed.filter(|address| !address.is_empty()).map(str::to_owned).collect()
}

/// The replicas, as far as they are known.
#[derive(Debug)]
pub struct Replicas {
    addresses: Vec<String>,
    security: Security,
    resolver: Resolver,
    leader: Option<(Target, Channel)>,
    /// What each configured address last resolved to.
    resolved: BTreeMap<String, Vec<SocketAddr>>,
}

impl Replicas {
    /// Replicas behind these `host:port`, each of which may stand for several. Dials
    /// nothing yet.
    #[must_use]
    pub fn new(addresses: Vec<String>, security: Security, resolver: Resolver) -> Self {
        Self { addresses, security, resolver, leader: None, resolved: BTreeMap::new() }
    }

    /// Begins to ask: the replicas come in turn, and all of it ends by the deadline.
    pub async fn round(&mut self, deadline: Instant) -> Round<'_> {
        self.look_up(deadline).await;
        let leader = self.leader.as_ref().map(|(leader, _)| leader.clone());
        let everybody = self.addresses.iter().flat_map(|name| {
            let at = self.resolved.get(name).into_iter().flatten();
            at.map(|at| Target { name: name.clone(), at: Some(*at) })
        });
        let queue = Queue::new(leader, everybody);
        Round { replicas: self, queue, deadline }
    }

    /// A channel to every replica behind the addresses, by what it is called: for
    /// questions that each answers for itself. Addresses that do not resolve are
    /// dialled by name, so that the call says what is wrong with them.
    pub async fn every(&mut self) -> Vec<(String, Channel)> {
        self.look_up(Instant::now() + LOOKUP).await;
        let targets = self.addresses.iter().flat_map(|name| {
            let at = self.resolved.get(name).map(Vec::as_slice).unwrap_or_default();
            let unresolved = at.is_empty().then(|| Target { name: name.clone(), at: None });
            let known = at.iter().map(|at| Target { name: name.clone(), at: Some(*at) });
            known.chain(unresolved)
        });
        let dial = |target: Target| Some((target.to_string(), self.dial(&target)?));
        targets.filter_map(dial).collect()
    }

    fn dial(&self, target: &Target) -> Option<Channel> {
        if let Some((leader, channel)) = &self.leader
            && leader == target
        {
            return Some(channel.clone());
        }
        let channel = match target.at {
            Some(at) => {
                grpc::connect_lazy_at(&target.name, at, &self.security, Rule::coordinators())
            }
            None => grpc::connect_lazy(&target.name, &self.security, Rule::coordinators()),
        };
        // Our own addresses were checked at start, so this one came as a hint.
        let undialled = |error: &crate::Error| {
            tracing::warn!(%error, "coordinator named a leader that cannot be dialled");
        };
        channel.inspect_err(undialled).ok()
    }

    /// Names are looked up every time: replicas come back at other addresses.
    async fn look_up(&mut self, deadline: Instant) {
        let resolver = &self.resolver;
        let until = deadline.min(Instant::now() + LOOKUP);
        let lookups = self
            .addresses
            .iter()
            .map(|name| async move { (name, timeout_at(until, resolver.lookup(name)).await) });
        for (name, found) in join_all(lookups).await {
            match found {
                Ok(Ok(found)) if !found.is_empty() => {
                    self.resolved.insert(name.clone(), found);
                }
                Ok(Err(error)) => tracing::debug!(name, %error, "coordinator's name not resolved"),
                Ok(Ok(_)) | Err(_) => tracing::debug!(name, "coordinator's name not resolved"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_holds_one_or_more_addresses() {
        assert_eq!(split("a:1, b:2,"), ["a:1", "b:2"]);
        assert!(split("").is_empty());
    }
}
