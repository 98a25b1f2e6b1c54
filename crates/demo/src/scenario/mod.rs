//! Scenarios: each establishes what it needs, acts, and checks its own claims against what the
//! engine says.

mod baseline;
mod brake;
mod clouds;
mod crashes;
mod demand;
mod gang;
mod preemption;
pub(crate) mod record;
mod rollups;
pub(crate) mod stage;
pub(crate) mod view;

use std::{pin::Pin, sync::Arc, sync::Mutex};

pub(crate) use baseline::reset;
use record::Run;
use stage::{Played, Stage, now};

use crate::fleet::Fleet;

/// What plays a scenario.
type Play = for<'a> fn(&'a Stage<'a>) -> Pin<Box<dyn Future<Output = Played> + Send + 'a>>;

/// One scenario.
pub(crate) struct Scenario {
    /// As `--scenario` names it.
    pub(crate) name: &'static str,
    /// As people read it.
    pub(crate) title: &'static str,
    /// What it does.
    pub(crate) action: &'static str,
    /// What must be seen.
    pub(crate) must_be_seen: &'static str,
    claims: &'static [&'static str],
    play: Play,
}

macro_rules! scenario {
    ($name:literal, $title:literal, $action:literal, $seen:literal, $($place:ident)::+) => {
        Scenario {
            name: $name,
            title: $title,
            action: $action,
            must_be_seen: $seen,
            claims: $($place)::+::CLAIMS,
            play: |stage| Box::pin($($place)::+::play(stage)),
        }
    };
}

/// In the order of the chapter.
static SCENARIOS: [Scenario; 15] = [
    scenario!(
        "move",
        "Move",
        "drop demand in A, raise it in B",
        "machines drain to Idle, go to B; $/h unchanged",
        demand::moved
    ),
    scenario!(
        "burst",
        "Burst",
        "+24 units in C, then drop",
        "committed first, then cloud; cloud shed first",
        demand::burst
    ),
    scenario!(
        "saturate",
        "Saturate",
        "load all",
        "ceiling reached, shortfalls appear with reasons",
        demand::saturate
    ),
    scenario!(
        "preemption",
        "Preemption",
        "full fleet, then critical",
        "preempts with grace by priority gap; only batch short",
        preemption
    ),
    scenario!(
        "spot-interruption",
        "Spot interruption",
        "provider reclaims 30 % of spot",
        "replacements by effective cost; critical untouched",
        clouds::spot
    ),
    scenario!(
        "zone-outage",
        "Zone outage",
        "one zone fails",
        "spread and groups rebuilt elsewhere; recovery time shown",
        clouds::zone
    ),
    scenario!(
        "gang",
        "Gang",
        "16 GPU machines in one rack",
        "one domain chosen; the explain drawer opens",
        gang
    ),
    scenario!(
        "stock-out",
        "Stock-out",
        "one cloud refuses Create for a type",
        "served from the next cheapest; shortfall with reason where none is left",
        clouds::stock_out
    ),
    scenario!(
        "provider-brown-out",
        "Provider brown-out",
        "one provider slow and failing for 2 min",
        "backoff, no machine lost, no double buy; recovers by itself",
        clouds::brown_out
    ),
    scenario!(
        "leader-loss",
        "Leader loss",
        "kill the coordinator's leader",
        "new leader < 2 s; data plane unaffected",
        crashes::leader
    ),
    scenario!(
        "coordinator-loss",
        "Coordinator loss",
        "kill all replicas",
        "data plane continues; reports resume on return",
        crashes::coordinator
    ),
    scenario!(
        "shard-crash",
        "Shard crash",
        "kill a shard mid-bootstrap",
        "nothing drained; state rebuilt from the provider",
        crashes::shard
    ),
    scenario!(
        "everything-down",
        "Everything down",
        "stop BigFleet",
        "pods run on; clock shows it",
        crashes::everything
    ),
    scenario!(
        "accident",
        "Accident",
        "a cluster sends empty roll-ups by mistake, three in a row",
        "held twice with the gauge up; then the reclaim cap bounds the loss per cycle; a good \
         roll-up stops it",
        rollups
    ),
    scenario!(
        "kill-switch-and-dry-run",
        "Kill switch and dry-run",
        "pause, watch intentions",
        "suppressed actions counted",
        brake
    ),
];

/// All of them.
pub(crate) fn all() -> &'static [Scenario] {
    &SCENARIOS
}

/// The scenario of a name.
pub(crate) fn named(name: &str) -> Option<&'static Scenario> {
    all().iter().find(|scenario| scenario.name == name)
}

impl Scenario {
    /// The record that it begins with.
    pub(crate) fn opening(&self) -> Run {
        Run::begin(self.name, self.claims, now())
    }

    /// Plays it from the baseline to its end. What was found is in the record.
    pub(crate) async fn play(&self, fleet: &Fleet, guided: bool, record: &Arc<Mutex<Run>>) {
        let stage = Stage::new(fleet, guided, record.clone());
        let played = match reset(&stage).await {
            Ok(()) => (self.play)(&stage).await,
            Err(stop) => Err(stop),
        };
        lock(record).end(played.err().map(|stop| stop.0).as_deref(), now());
    }
}

/// The record that a reset begins with.
pub(crate) fn opening_of_reset() -> Run {
    Run::begin("reset", &[], now())
}

/// Back to the baseline, as a run of its own.
pub(crate) async fn play_reset(fleet: &Fleet, record: &Arc<Mutex<Run>>) {
    let stage = Stage::new(fleet, false, record.clone());
    let played = reset(&stage).await;
    lock(record).end(played.err().map(|stop| stop.0).as_deref(), now());
}

fn lock(record: &Mutex<Run>) -> std::sync::MutexGuard<'_, Run> {
    record.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_are_those_of_the_chapter() {
        let spec =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/spec/experience.md");
        let spec = std::fs::read_to_string(spec).unwrap();
        let (_, table) = spec.split_once("| scenario | action | must be seen |\n").unwrap();
        let rows: Vec<[String; 3]> = table
            .lines()
            .skip(1)
            .take_while(|line| line.starts_with('|'))
            .map(|line| {
                let mut cells = line.trim_matches('|').split('|').map(str::trim);
                let name = cells.next().unwrap().replace(" **(beyond)**", "").replace(' ', "-");
                [name, cells.next().unwrap().to_owned(), cells.next().unwrap().to_owned()]
            })
            .collect();
        let row = |it: &Scenario| [it.name, it.action, it.must_be_seen].map(str::to_owned);
        assert_eq!(all().iter().map(row).collect::<Vec<_>>(), rows);
        for scenario in all() {
            assert!(!scenario.claims.is_empty(), "{}", scenario.name);
        }
        assert!(named("move").is_some() && named("other").is_none());
    }
}
