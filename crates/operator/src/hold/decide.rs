//! Whether a roll-up may be sent. Silence is never "zero demand": when unsure, none is
//! (§3.4).

use std::time::Duration;

use bigfleet_in_cluster::store::State;
use bigfleet_net::labels;

use tokio::time::Instant;

use crate::metrics::HoldReason;

/// A demand source whose lease is older is not alive.
const ALIVE: Duration = Duration::from_secs(60);

/// Requests that have been at rest for so long after the definition's return are all there are.
const SETTLED: Duration = Duration::from_secs(60);

labels! {
    /// Who writes CapacityRequests.
    DemandSource {
        /// The pod controller if it has a lease, else anybody.
        Auto = "auto",
        /// The pod controller.
        Upc = "upc",
        /// Others, whose life cannot be seen.
        External = "external",
    }
}

/// What was seen of the pod controller's lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// There is none.
    Absent,
    /// It says this.
    Found {
        /// Who holds it; empty when it was given back.
        holder: String,
        /// Who has made a whole pass, if anybody has.
        synced: Option<String>,
        /// How long ago it was renewed.
        age: Duration,
    },
    /// The server refuses to show it.
    Refused(String),
}

/// Why the demand source is not to be relied on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotLive {
    /// Nobody has looked yet.
    #[error("the lease of the pod controller has not been seen yet")]
    Unseen,
    /// It was to be there.
    #[error("the pod controller has no lease; start it, or set --demand-source=external")]
    NoLease,
    /// Its holder stopped.
    #[error(
        "nobody holds the lease of the pod controller; start it, or delete the lease if it is not \
         used any more"
    )]
    Released,
    /// Its holder is silent.
    #[error("the pod controller has not renewed its lease for {}s", .0.as_secs())]
    Silent(Duration),
    /// Its holder has not seen all pods yet.
    #[error("the pod controller has not made its first pass over all pods")]
    NotSynced,
    /// The server does not let us look.
    #[error("cannot read the lease of the pod controller: {0}")]
    Refused(String),
    /// The server is away, and demand changed since it was last there.
    #[error("the API server is away, and requests went since the pod controller was last seen")]
    Changed,
}

impl DemandSource {
    /// Whether requests say what pods there are.
    pub fn judge(self, look: &Look) -> Result<(), NotLive> {
        match (self, look) {
            (Self::External, _) | (Self::Auto, Look::Absent) => Ok(()),
            (Self::Upc, Look::Absent) => Err(NotLive::NoLease),
            (_, Look::Refused(problem)) => Err(NotLive::Refused(problem.clone())),
            (_, Look::Found { holder, synced, age }) => match synced {
                _ if holder.is_empty() => Err(NotLive::Released),
                _ if *age >= ALIVE => Err(NotLive::Silent(*age)),
                Some(synced) if synced == holder => Ok(()),
                _ => Err(NotLive::NotSynced),
            },
        }
    }
}

/// What is known of the demand source, and as of when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The last look that told anything, and how many requests had gone by then.
    pub look: Option<(Look, u64)>,
    /// Whether the server has been away since.
    pub away: bool,
}

impl Seen {
    /// The server's absence proves nothing: what is cached is as old as what was seen, so
    /// it may be sent on for as long as nothing of it has gone.
    pub fn judge(&self, source: DemandSource, departures: u64) -> Result<(), NotLive> {
        if source == DemandSource::External {
            return Ok(());
        }
        let (look, then) = self.look.as_ref().ok_or(NotLive::Unseen)?;
        source.judge(look)?;
        if self.away && *then != departures { Err(NotLive::Changed) } else { Ok(()) }
    }
}

/// What was seen of the definition of CapacityRequest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crd {
    /// It stands.
    Stands,
    /// It stands, and is another than the one that stood before: the objects of that one went
    /// with it.
    Replaced,
    /// It is absent or about to be: its objects go first.
    Going,
    /// The server did not tell.
    Unknown,
}

/// Everything that a decision looks at.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Of the cache.
    pub cache: State,
    /// Whether the ledger has taken in a whole list.
    pub ledger_synced: bool,
    /// The demand source.
    pub source: Result<(), NotLive>,
    /// Requests now.
    pub requests: usize,
    /// Requests at the last roll-up that was sent.
    pub last_sent: Option<usize>,
    /// The definition, if it was looked at for this.
    pub crd: Option<Crd>,
    /// If the definition went since the last roll-up: how long requests have been at rest.
    pub lost: Option<Duration>,
}

/// Remembers that the definition went, and its requests with it, until demand is whole again.
/// Whoever wrote them writes them anew when it is back, and until then a whole list is not
/// the whole demand.
#[derive(Clone, Debug, Default)]
pub struct Loss {
    /// When requests last came or went, and what there was then.
    rest: Option<(Instant, (usize, u64))>,
}

impl Loss {
    /// Takes in a look: whether the definition is gone, requests there are, requests that went
    /// ever. How long they have been at rest, if it was gone.
    pub fn look(
        &mut self,
        gone: bool,
        requests: usize,
        departures: u64,
        now: Instant,
    ) -> Option<Duration> {
        let mark = (requests, departures);
        match self.rest {
            None if !gone => None,
            Some((since, before)) if !gone && before == mark => {
                Some(now.saturating_duration_since(since))
            }
            _ => {
                self.rest = Some((now, mark));
                Some(Duration::ZERO)
            }
        }
    }
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Send.
    Send,
    /// Look at the definition first.
    LookAtCrd,
    /// Send nothing; the shard keeps what it has.
    Hold(HoldReason, String),
}

/// Whether a roll-up may be sent.
#[must_use]
pub fn decide(facts: &Facts) -> Decision {
    let hold = |reason, text: &str| Decision::Hold(reason, text.to_owned());
    match facts.cache {
        State::Missing => return hold(HoldReason::CrdMissing, "there is no CRD"),
        State::Unsynced => return hold(HoldReason::Unsynced, "the first list is not complete"),
        State::Synced if !facts.ledger_synced => {
            return hold(HoldReason::Unsynced, "the first list is being read");
        }
        State::Synced => {}
    }
    if let Err(why) = &facts.source {
        return hold(HoldReason::DemandSource, &why.to_string());
    }
    let fewer = facts.last_sent.is_some_and(|last| facts.requests < last);
    if fewer && facts.lost.is_some_and(|rest| rest < SETTLED) {
        return hold(
            HoldReason::CrdMissing,
            "the CRD was gone; its requests are still coming back",
        );
    }
    // Deleting a definition deletes its objects first, however slowly: each roll-up on the way
    // would be a little smaller. Nor does a process that has sent nothing yet know whether what
    // it lists is all there was.
    let looks = fewer || facts.last_sent.is_none();
    let halved = facts.last_sent.is_none_or(|last| facts.requests.saturating_mul(2) < last);
    match facts.crd {
        _ if !looks => Decision::Send,
        None => Decision::LookAtCrd,
        Some(Crd::Stands | Crd::Replaced) => Decision::Send,
        Some(Crd::Going) => hold(HoldReason::CrdMissing, "the CRD is absent or being deleted"),
        Some(Crd::Unknown) if halved => {
            hold(HoldReason::CrdMissing, "many requests went, and the CRD cannot be seen")
        }
        // A server that is away shows no more departures either: this is the last step down.
        Some(Crd::Unknown) => Decision::Send,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            cache: State::Synced,
            ledger_synced: true,
            source: Ok(()),
            requests: 100,
            last_sent: Some(100),
            crd: None,
            lost: None,
        }
    }

    fn held(facts: &Facts) -> Option<HoldReason> {
        match decide(facts) {
            Decision::Hold(reason, _) => Some(reason),
            _ => None,
        }
    }

    fn found(holder: &str, synced: Option<&str>, seconds: u64) -> Look {
        Look::Found {
            holder: holder.to_owned(),
            synced: synced.map(str::to_owned),
            age: Duration::from_secs(seconds),
        }
    }

    #[test]
    fn operator_inv_04_no_roll_up_before_the_list_is_whole_or_after_the_crd_went() {
        assert_eq!(decide(&facts()), Decision::Send);
        let unsynced = Facts { cache: State::Unsynced, ..facts() };
        assert_eq!(held(&unsynced), Some(HoldReason::Unsynced));
        let unread = Facts { ledger_synced: false, ..facts() };
        assert_eq!(held(&unread), Some(HoldReason::Unsynced));
        let missing = Facts { cache: State::Missing, ..facts() };
        assert_eq!(held(&missing), Some(HoldReason::CrdMissing));
    }

    #[test]
    fn operator_inv_04_a_smaller_roll_up_looks_at_the_crd_first() {
        for (requests, last_sent, looks, halved) in [
            (101, Some(100), false, false),
            (100, Some(100), false, false),
            (99, Some(100), true, false),
            (50, Some(100), true, false),
            (49, Some(100), true, true),
            (0, Some(1), true, true),
            (0, Some(0), false, false),
            (0, None, true, true),
            (1_000, None, true, true),
        ] {
            let facts = Facts { requests, last_sent, ..facts() };
            let expected = if looks { Decision::LookAtCrd } else { Decision::Send };
            assert_eq!(decide(&facts), expected, "{requests} after {last_sent:?}");
            for (crd, held_then) in [
                (Crd::Stands, false),
                (Crd::Replaced, false),
                (Crd::Going, looks),
                (Crd::Unknown, halved),
            ] {
                let facts = Facts { crd: Some(crd), ..facts.clone() };
                let reason = held_then.then_some(HoldReason::CrdMissing);
                assert_eq!(held(&facts), reason, "{requests} after {last_sent:?}, {crd:?}");
            }
        }
    }

    #[test]
    fn operator_inv_04_a_crd_that_came_back_holds_until_its_requests_did() {
        let lost = |requests, rest| Facts {
            requests,
            lost: Some(Duration::from_secs(rest)),
            crd: Some(Crd::Stands),
            ..facts()
        };
        for (requests, rest, sent) in
            [(0, 0, false), (99, 59, false), (100, 0, true), (0, 60, true), (99, 60, true)]
        {
            let reason = (!sent).then_some(HoldReason::CrdMissing);
            assert_eq!(held(&lost(requests, rest)), reason, "{requests} at rest for {rest} s");
        }
        let first = Facts { last_sent: None, ..lost(0, 0) };
        assert_eq!(decide(&first), Decision::Send, "nothing was lost that was ever sent");
    }

    #[test]
    fn requests_are_at_rest_when_none_comes_or_goes() {
        let (mut loss, begin) = (Loss::default(), Instant::now());
        let second = Duration::from_secs(1);
        assert_eq!(loss.look(false, 5, 0, begin), None);
        assert_eq!(loss.look(true, 5, 0, begin), Some(Duration::ZERO));
        assert_eq!(loss.look(true, 5, 0, begin + second), Some(Duration::ZERO));
        assert_eq!(loss.look(false, 5, 0, begin + 3 * second), Some(2 * second));
        assert_eq!(loss.look(false, 5, 1, begin + 4 * second), Some(Duration::ZERO));
        assert_eq!(loss.look(false, 6, 1, begin + 5 * second), Some(Duration::ZERO));
        assert_eq!(loss.look(false, 6, 1, begin + 6 * second), Some(second));
    }

    #[test]
    fn operator_inv_04_a_dead_demand_source_holds() {
        let facts = Facts { source: Err(NotLive::NotSynced), ..facts() };
        assert_eq!(held(&facts), Some(HoldReason::DemandSource));
    }

    #[test]
    fn only_a_synced_holder_that_renews_is_alive() {
        use DemandSource::{Auto, External, Upc};
        for (look, live) in [
            (Look::Absent, [true, false, true]),
            (found("a", Some("a"), 0), [true, true, true]),
            (found("a", Some("a"), 59), [true, true, true]),
            (found("a", Some("a"), 60), [false, false, true]),
            (found("a", None, 0), [false, false, true]),
            (found("b", Some("a"), 0), [false, false, true]),
            (found("", Some(""), 0), [false, false, true]),
            (Look::Refused("403".to_owned()), [false, false, true]),
        ] {
            let judged = [Auto, Upc, External].map(|source| source.judge(&look).is_ok());
            assert_eq!(judged, live, "{look:?}");
        }
    }

    #[test]
    fn while_the_server_is_away_what_was_seen_holds_for_what_was_cached() {
        let source = DemandSource::Auto;
        let seen = |look, away| Seen { look, away };
        assert_eq!(Seen::default().judge(source, 0), Err(NotLive::Unseen));
        assert_eq!(Seen::default().judge(DemandSource::External, 0), Ok(()));
        let live = Some((found("a", Some("a"), 1), 7));
        assert_eq!(seen(live.clone(), false).judge(source, 9), Ok(()));
        assert_eq!(seen(live.clone(), true).judge(source, 7), Ok(()));
        assert_eq!(seen(live, true).judge(source, 8), Err(NotLive::Changed));
        let dead = Some((found("a", None, 1), 7));
        assert_eq!(seen(dead, true).judge(source, 7), Err(NotLive::NotSynced));
    }
}
