//! A shard that shares its provider, as its coordinator sees it: it keeps its fleet, its mark
//! and what it was assigned, and lets go at once of what it loses (coordinator chapter §4,
//! §8). Whoever has it carries its reports and brings it the answers.

use bigfleet_model::FleetId;
use bigfleet_wire::v1alpha1::{Assignment, ReportAck, ShardReport};

/// Such a shard.
#[derive(Clone, Debug)]
pub struct Holder {
    id: String,
    cycle: i64,
    /// Whose word counts; empty before the first.
    pub fleet: String,
    /// Highest term heard.
    pub mark: i64,
    /// What it was assigned, and claims to hold.
    pub stored: Assignment,
    /// The coordinator asked for what it holds.
    asked: bool,
}

impl Holder {
    /// One that has never reported.
    #[must_use]
    pub fn new(id: &str) -> Self {
        // No Assignment has this digest, and 0 would be a shard that shares nothing.
        let stored = Assignment { digest: 1, ..Assignment::default() };
        Self { id: id.to_owned(), cycle: 0, fleet: String::new(), mark: 0, stored, asked: false }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its next report.
    pub fn report(&mut self) -> ShardReport {
        self.cycle += 1;
        let holdings = || Assignment {
            domains: self.stored.domains.clone(),
            clusters: self.stored.clusters.clone(),
            ..Assignment::default()
        };
        ShardReport {
            shard_id: self.id.clone(),
            shard_address: format!("{}:7780", self.id),
            shard_epoch: 1,
            instance: 1,
            cycle: self.cycle,
            fleet_id: self.fleet.clone(),
            observed_term: self.mark,
            assignment_digest: self.stored.digest,
            assignment_version: self.stored.version,
            holdings: self.asked.then(holdings),
            ..ShardReport::default()
        }
    }

    /// The answer to it.
    ///
    /// # Panics
    ///
    /// If it goes back: I2, the mark and the generation never fall.
    pub fn take(&mut self, ack: &ReportAck) {
        let generation = |fleet: &str| {
            let fleet: Option<FleetId> = fleet.parse().ok();
            fleet.map(|fleet| (fleet.uuid().to_owned(), fleet.generation()))
        };
        if ack.fleet_id != self.fleet {
            let (mine, theirs) = (generation(&self.fleet), generation(&ack.fleet_id));
            let follows = match (&mine, &theirs) {
                (None, Some(_)) => true,
                (Some(mine), Some(theirs)) => mine.0 == theirs.0 && mine.1 < theirs.1,
                (_, None) => false,
            };
            assert!(follows, "I2: {} of {} hears {}", self.id, self.fleet, ack.fleet_id);
            ack.fleet_id.clone_into(&mut self.fleet);
            self.stored.version = 0;
        }
        assert!(ack.coordinator_term >= self.mark, "I2: {} below its mark", self.id);
        self.mark = ack.coordinator_term;
        self.asked = ack.want_holdings;
        if let Some(assignment) = &ack.assignment {
            self.stored.clone_from(assignment);
        }
    }

    /// Its domains, by their values.
    #[must_use]
    pub fn domains(&self) -> Vec<&str> {
        self.stored.domains.iter().map(|domain| domain.topology_value.as_str()).collect()
    }
}
