//! The slow tier: one committed log, and whoever leads. The replicas behind it are
//! proven elsewhere (`coordinator/src/consensus/sim`); what matters here is that a new
//! leader has no memory, and that an old one may not know that it is deposed.

use std::{collections::BTreeMap, rc::Rc, time::Duration};

use bigfleet_coordinator::{
    consensus::coordinator_term,
    rebalance::{Due, Rebalancer, Settings},
    reports::{Begun, LivenessLimits, Now, Rejected, Reports, Taken, batches},
    state::{Command, Effect, QuotaKey, Refused, State},
};
use bigfleet_model::FleetId;
use bigfleet_wire::v1alpha1 as wire;

use crate::random::Dice;

/// Why a report was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// The coordinator will have nothing to do with it.
    Rejected(Rejected),
    /// No quorum, no leader, a commit that did not come through.
    Unavailable,
}

/// A report that a leader is working on: commits take time.
#[derive(Clone, Debug)]
pub struct Working {
    term: i64,
    stage: Stage,
}

#[derive(Clone, Debug)]
enum Stage {
    Arrived(Box<wire::ShardReport>),
    Registered(Box<wire::ShardReport>),
    Taken(Rc<Taken>, Vec<Command>),
}

/// What became of a report so far.
#[derive(Clone, Debug)]
pub enum Progress {
    /// More commits are due.
    Working(Box<Working>),
    /// It is answered.
    Answered(Box<wire::ReportAck>),
    /// It is not.
    Unanswered(Unanswered),
}

/// The coordinator.
#[derive(Clone, Debug)]
pub struct Tier {
    /// What is committed.
    pub state: State,
    fleet: FleetId,
    consensus_term: u64,
    reports: Reports,
    rebalancer: Rebalancer,
    settings: Settings,
    /// Deposed, and does not know it: it cannot commit.
    deposed: bool,
    /// What broke a rule of the log.
    pub broken: Option<String>,
}

fn sums(state: &State) -> BTreeMap<QuotaKey, i64> {
    let sum = |row: &BTreeMap<_, i32>| row.values().map(|slice| i64::from(*slice)).sum();
    state.quotas().iter().map(|(key, row)| (key.clone(), sum(row))).collect()
}

/// I5: only these change quota sums.
fn changes_sums(command: &Command) -> bool {
    match command {
        Command::SetQuota { .. } | Command::RemoveShard { .. } => true,
        Command::Batch { commands } => commands.iter().any(changes_sums),
        _ => false,
    }
}

impl Tier {
    /// A fleet that has just opened.
    #[must_use]
    pub fn open(settings: Settings) -> Self {
        let fleet = FleetId::new("f", 0);
        let mut tier = Self::led(State::default(), fleet.clone(), 1, settings, Duration::ZERO);
        let fleet_id = fleet.to_string();
        drop(tier.commit(&Command::InitFleet { fleet_id }, Duration::ZERO));
        tier
    }

    /// A backup, restored: another generation of its fleet.
    #[must_use]
    pub fn restored(&self, backup: &State, now: Duration) -> Self {
        let fleet = FleetId::new(self.fleet.uuid(), self.fleet.generation() + 1);
        let mut state = backup.clone();
        state.begin_recovery(&fleet, 0);
        Self::led(state, fleet, self.consensus_term, self.settings.clone(), now)
    }

    fn led(
        state: State,
        fleet: FleetId,
        consensus_term: u64,
        settings: Settings,
        now: Duration,
    ) -> Self {
        let term = coordinator_term(&fleet, consensus_term);
        // Ids are drawn from this: no two leaders draw the same ones.
        let mut dice = Dice::seeded(u64::try_from(term).unwrap_or_default());
        let (first, second) = (dice.draw(), dice.draw());
        Self {
            reports: Reports::new(term, LivenessLimits::default(), first),
            rebalancer: Rebalancer::new(settings.clone(), now, second),
            state,
            fleet,
            consensus_term,
            settings,
            deposed: false,
            broken: None,
        }
    }

    /// Another replica leads. It has everything that was committed, and no memory.
    pub fn new_leader(&mut self, now: Duration) {
        let index = self.state.applied_index() + 1;
        let mut state = std::mem::take(&mut self.state);
        state.skip(index);
        let (fleet, settings) = (self.fleet.clone(), self.settings.clone());
        *self = Self::led(state, fleet, self.consensus_term + 1, settings, now);
    }

    /// The leader that is about to be deposed and will not know.
    #[must_use]
    pub fn unaware(&self) -> Self {
        Self { deposed: true, ..self.clone() }
    }

    /// Of all answers.
    #[must_use]
    pub const fn term(&self) -> i64 {
        self.reports.term()
    }

    /// Which fleet, and which generation.
    #[must_use]
    pub const fn fleet(&self) -> &FleetId {
        &self.fleet
    }

    /// Epoch and cycle of a shard's last report that counted for this leader.
    #[must_use]
    pub fn last_report(&self, shard: &str) -> Option<(i64, i64)> {
        self.reports.last_report(shard)
    }

    /// Instructions that wait, by shard.
    pub(crate) fn pending(&self) -> impl Iterator<Item = (&str, usize)> {
        self.reports.pending().map(|(shard, count)| (shard.as_str(), count))
    }

    fn clocks(now: Duration) -> Now {
        Now { monotonic: now, unix_nanos: i64::try_from(now.as_nanos()).unwrap_or(i64::MAX) }
    }

    /// Commits and applies; `None` for whoever cannot.
    pub fn commit(&mut self, command: &Command, now: Duration) -> Option<Result<Effect, Refused>> {
        if self.deposed {
            return None;
        }
        let before = sums(&self.state);
        let index = self.state.applied_index() + 1;
        let outcome = self.state.apply(index, command);
        if before != sums(&self.state) && !changes_sums(command) {
            self.broken = Some(format!("I5: {command:?} changed quota sums"));
        }
        self.reports.committed(&self.state, &outcome, Self::clocks(now));
        Some(outcome)
    }

    /// A report arrives.
    #[must_use]
    pub fn accept(&self, report: wire::ShardReport) -> Working {
        Working { term: self.term(), stage: Stage::Arrived(Box::new(report)) }
    }

    /// Does the next thing about a report.
    pub fn work(&mut self, working: Working, now: Duration) -> Progress {
        let clocks = Self::clocks(now);
        let unavailable = Progress::Unanswered(Unanswered::Unavailable);
        if working.term != self.term() {
            return unavailable;
        }
        let next = |term, stage| Progress::Working(Box::new(Working { term, stage }));
        match working.stage {
            Stage::Arrived(report) => {
                match self.reports.begin(&self.state, &report, clocks) {
                    Err(rejected) => return Progress::Unanswered(Unanswered::Rejected(rejected)),
                    Ok(Begun::Answer(ack)) => return Progress::Answered(ack),
                    Ok(Begun::Known) => {}
                    Ok(Begun::Commit(command)) => match self.commit(&command, now) {
                        Some(Ok(_) | Err(Refused::ShardExists(_))) => {}
                        Some(Err(Refused::StaleEpoch { shard, known })) => {
                            let shard = shard.to_string();
                            let stale = Rejected::StaleEpoch { shard, epoch: known, known };
                            return Progress::Unanswered(Unanswered::Rejected(stale));
                        }
                        Some(Err(_)) | None => return unavailable,
                    },
                }
                next(working.term, Stage::Registered(report))
            }
            Stage::Registered(report) => match self.reports.take(&self.state, *report, clocks) {
                Err(rejected) => Progress::Unanswered(Unanswered::Rejected(rejected)),
                Ok(mut taken) => {
                    let commands = batches(std::mem::take(&mut taken.commands));
                    next(working.term, Stage::Taken(Rc::new(taken), commands))
                }
            },
            Stage::Taken(taken, mut commands) => {
                if !commands.is_empty() {
                    let command = commands.remove(0);
                    let Some(outcome) = self.commit(&command, now) else {
                        return unavailable;
                    };
                    self.reports.count_conflicts(&outcome);
                    return next(working.term, Stage::Taken(taken, commands));
                }
                Progress::Answered(Box::new(self.reports.answer(&self.state, &taken, clocks)))
            }
        }
    }

    /// One second's upkeep: what is too old goes, donors that were asked too long are let
    /// be, and shortages are served from what others have.
    pub fn upkeep(&mut self, now: Duration) -> Vec<Command> {
        let clocks = Self::clocks(now);
        self.reports.expire(&self.state, clocks);
        for command in batches(self.reports.give_up(&self.state, clocks)) {
            self.commit(&command, now);
        }
        drop(self.rebalancer.observe(&self.state, now));
        let heard = self.reports.heard(&self.state);
        if self.rebalancer.due(heard, self.state.recovering(), now) != Due::Yes {
            return Vec::new();
        }
        let picture = self.reports.picture(&self.state, clocks);
        let begun = self.rebalancer.pass(&picture, now).begin;
        for command in batches(begun.clone()) {
            self.commit(&command, now);
        }
        begun.iter().for_each(|command| self.rebalancer.begun(command));
        begun
    }
}
