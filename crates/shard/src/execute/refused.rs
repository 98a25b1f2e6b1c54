//! Clusters whose operator refuses to bootstrap a profile are not bought for,
//! for a while (§7): failing the machine would burn the idle pool on one bad
//! template.

use std::time::Duration;

use bigfleet_model::{ClusterId, Fingerprint};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tokio::time::Instant;

const FIRST: Duration = Duration::from_secs(30);
const MOST: Duration = Duration::from_secs(600);
/// A refusal so long over does not make the next one longer.
const FORGOTTEN: Duration = Duration::from_secs(3600);

type Key = (ClusterId, Fingerprint);

#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    delay: Duration,
    until: Instant,
    /// What the operator said.
    pub(crate) text: String,
    told: bool,
}

/// Profiles that operators refuse.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    of: HashMap<Key, Refusal, RandomState>,
    changed: Vec<Key>,
}

impl Refusals {
    /// An operator answered with an error.
    pub(crate) fn refused(&mut self, cluster: &ClusterId, profile: &Fingerprint, text: &str) {
        let key = (cluster.clone(), profile.clone());
        let known = self.of.get(&key);
        // Answers to requests of the same moment are one refusal.
        let still = known.filter(|known| known.until > Instant::now()).map(|known| known.delay);
        let delay =
            still.or_else(|| known.map(|known| (known.delay * 2).min(MOST))).unwrap_or(FIRST);
        let refusal =
            Refusal { delay, until: Instant::now() + delay, text: text.to_owned(), told: false };
        self.of.insert(key.clone(), refusal);
        self.changed.push(key);
    }

    /// An operator gave a blob.
    pub(crate) fn delivered(&mut self, cluster: &ClusterId, profile: &Fingerprint) {
        let key = (cluster.clone(), profile.clone());
        if self.of.remove(&key).is_some() {
            self.changed.push(key);
        }
    }

    /// What an operator said, while it counts.
    pub(crate) fn text(&self, cluster: &ClusterId, profile: &Fingerprint) -> Option<&str> {
        let refusal = self.of.get(&(cluster.clone(), profile.clone()))?;
        (refusal.until > Instant::now()).then_some(&*refusal.text)
    }

    /// Profiles refused to a cluster now.
    pub(crate) fn of_cluster<'a>(
        &'a self,
        cluster: &'a ClusterId,
    ) -> impl Iterator<Item = &'a Fingerprint> {
        let now = Instant::now();
        let held = self.of.iter().filter(move |(_, refusal)| refusal.until > now);
        held.filter(move |((of, _), _)| of == cluster).map(|((_, profile), _)| profile)
    }

    /// Clusters with a hold that began or ended since the last time.
    pub(crate) fn changed(&mut self) -> Vec<ClusterId> {
        let now = Instant::now();
        self.of.retain(|_, refusal| refusal.until + FORGOTTEN > now);
        let mut clusters: Vec<ClusterId> =
            self.changed.drain(..).map(|(cluster, _)| cluster).collect();
        for ((cluster, _), refusal) in &mut self.of {
            // It stays, so that the next refusal doubles.
            if refusal.until <= now && !refusal.told {
                refusal.told = true;
                clusters.push(cluster.clone());
            }
        }
        clusters.sort_unstable();
        clusters.dedup();
        clusters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_hold_doubles_and_a_blob_ends_it() {
        let mut refusals = Refusals::default();
        let (cluster, profile) = (ClusterId::from("c"), Fingerprint::from("p"));
        let mut holds = Vec::new();
        for _ in 0..6 {
            refusals.refused(&cluster, &profile, "bad template");
            refusals.refused(&cluster, &profile, "bad template");
            let began = Instant::now();
            while refusals.text(&cluster, &profile).is_some() {
                tokio::time::advance(Duration::from_secs(1)).await;
            }
            holds.push(began.elapsed().as_secs());
        }
        assert_eq!(holds, [30, 60, 120, 240, 480, 600]);
        refusals.delivered(&cluster, &profile);
        refusals.refused(&cluster, &profile, "bad template");
        tokio::time::advance(Duration::from_secs(31)).await;
        assert_eq!(refusals.text(&cluster, &profile), None, "from the beginning");
    }
}
