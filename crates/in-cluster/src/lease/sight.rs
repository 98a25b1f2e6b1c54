use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use tokio::time::Instant;

use super::Record;
use crate::{Lane, Paced};

/// Reads a lease that another process holds; none when there is no such lease.
pub async fn read(
    paced: &Paced,
    namespace: &str,
    name: &str,
) -> Result<Option<Record>, kube::Error> {
    let lease = paced
        .call(Lane::Lease, |client| async move {
            Api::<Lease>::namespaced(client, namespace).get_opt(name).await
        })
        .await?;
    Ok(lease.as_ref().map(Record::of))
}

/// How long ago another's lease was renewed.
///
/// At first sight only the holder's wall clock can tell. From then on every renewal is seen, and
/// our own clock tells how long the last one is ago.
#[derive(Debug, Default)]
pub struct Sight {
    seen: Option<Seen>,
}

#[derive(Debug)]
struct Seen {
    holder: String,
    renewed: Option<Timestamp>,
    since: Instant,
    /// Its age when it was seen first.
    age: Duration,
}

impl Sight {
    /// Looks at the record as just read and tells its age.
    pub fn look(&mut self, record: &Record, wall: Timestamp, now: Instant) -> Duration {
        let seen = match self.seen.take() {
            Some(seen) if seen.holder == record.holder && seen.renewed == record.renewed => seen,
            earlier => Seen {
                holder: record.holder.clone(),
                renewed: record.renewed,
                since: now,
                age: if earlier.is_some() { Duration::ZERO } else { age_of(record, wall) },
            },
        };
        let age = seen.age.saturating_add(now.saturating_duration_since(seen.since));
        self.seen = Some(seen);
        age
    }
}

fn age_of(record: &Record, wall: Timestamp) -> Duration {
    let Some(renewed) = record.renewed else { return Duration::MAX };
    // A holder whose clock is ahead of ours has renewed just now, for all we can tell.
    Duration::try_from(wall.duration_since(renewed)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_dead_lease_is_old_at_first_sight_and_a_skewed_clock_matters_once() {
        let start = Instant::now();
        let wall = Timestamp::UNIX_EPOCH + Duration::from_secs(100_000);
        let second = Duration::from_secs(1);
        let record = |seconds_ago: i64| Record {
            holder: "upc".into(),
            renewed: Some(wall - jiff::SignedDuration::from_secs(seconds_ago)),
            duration: 15 * second,
            transitions: 0,
            annotations: BTreeMap::new(),
        };
        let mut sight = Sight::default();
        assert_eq!(sight.look(&record(300), wall, start), 300 * second);
        assert_eq!(sight.look(&record(300), wall, start + 5 * second), 305 * second);
        // Its clock is five minutes behind ours, and it lives.
        assert_eq!(sight.look(&record(298), wall, start + 7 * second), Duration::ZERO);
        assert_eq!(sight.look(&record(298), wall, start + 9 * second), 2 * second);
        let mut sight = Sight::default();
        assert_eq!(sight.look(&record(-300), wall, start), Duration::ZERO);
    }
}
