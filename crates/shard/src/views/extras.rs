//! What of a row is computed when somebody reads it, and remembered for the cycle
//! (engine chapter §9). The engine is held only for moments, so that no reader
//! ever lengthens a cycle.

use std::{sync::Arc, time::Duration, time::Instant as Stopwatch};

use bigfleet_engine::{Detail, DomainCoverage, Engine, Supply};
use bigfleet_model::Attributes;

use super::NeedRow;
use crate::{live::Live, shard::Shard};

/// Longest text that goes with a detail, in bytes.
const MAX_TEXT: usize = 1024;
/// How long domains are computed before the engine is let go.
const MOMENT: Duration = Duration::from_millis(5);

/// The costly part of a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extras {
    /// Of which cycle; 0 if none.
    cycle: u64,
    /// Of an unmet need.
    pub(crate) supply: Option<Supply>,
    /// The best of a gang.
    pub(crate) domains: Option<Vec<DomainCoverage>>,
    /// Goes with the detail.
    pub(crate) text: String,
}

impl Extras {
    /// Of a need that was explained.
    pub(crate) const fn of(supply: Supply, domains: Vec<DomainCoverage>, text: String) -> Self {
        Self { cycle: 0, supply: Some(supply), domains: Some(domains), text }
    }
}

impl NeedRow {
    /// Whether there is anything to compute.
    fn is_plain(&self) -> bool {
        self.short.is_none() && !self.is_same()
    }

    /// What was computed.
    pub(crate) fn known_extras(&self) -> Extras {
        self.extras().clone()
    }
}

impl Shard {
    /// Computes what these rows lack. It blocks, in short holds of the engine.
    pub(crate) fn fill_extras(&self, rows: &[Arc<NeedRow>]) {
        let rows: Vec<&NeedRow> =
            rows.iter().map(|row| &**row).filter(|row| !row.is_plain()).collect();
        if rows.is_empty() {
            return;
        }
        let cycle = self.fill_supply(&rows);
        let mut gangs = rows.into_iter().filter(|row| row.is_same()).peekable();
        while gangs.peek().is_some() {
            let decider = self.decider.blocking_read();
            let (reader, begun) = (decider.engine.reader(), Stopwatch::now());
            while let Some(row) = gangs.next_if(|_| begun.elapsed() < MOMENT) {
                let known = row.extras().cycle == cycle && row.extras().domains.is_some();
                if !known {
                    let best = reader.domains(&row.key(), Some(DomainCoverage::IN_A_ROW));
                    row.extras().domains = Some(best);
                }
            }
        }
    }

    /// Supplies and texts, from one count of the machines; the engine's cycle.
    fn fill_supply(&self, rows: &[&NeedRow]) -> u64 {
        let decider = self.decider.blocking_read();
        let engine = &decider.engine;
        let (reader, cycle) = (engine.reader(), engine.cycles());
        for row in rows.iter().filter(|row| row.extras().cycle != cycle) {
            let unmet = row.short.is_some();
            let supply = if unmet { reader.supply(&row.key()) } else { None };
            let text = self.detail_text(engine, row);
            *row.extras() = Extras { cycle, supply, domains: None, text };
        }
        cycle
    }

    /// What goes with the detail of an unmet need (§15). The moving part is locked
    /// only if it has something to say.
    pub(crate) fn detail_text(&self, engine: &Engine, row: &NeedRow) -> String {
        let detail = row.short.as_ref().and_then(|short| short.detail);
        let mut text = match detail {
            Some(Detail::BootstrapRefused) => self.refusal_text(row),
            Some(Detail::ProviderFailing) => failing_text(engine, &self.live(), row),
            _ => String::new(),
        };
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        text
    }

    /// What the operator said. Gangs that share machines are bootstrapped under the
    /// profile that they fold to.
    fn refusal_text(&self, row: &NeedRow) -> String {
        let (cluster, profile) = (&row.need.cluster, &row.need.profile);
        let refusals = self.refusals();
        let own = refusals.text(cluster, profile.fingerprint());
        let text = own.or_else(|| {
            let folded = row.is_same().then(|| profile.folded())?;
            refusals.text(cluster, folded.fingerprint())
        });
        text.unwrap_or_default().to_owned()
    }
}

/// The last error of the lowest machine that would serve if its provider did not
/// fail on it.
fn failing_text(engine: &Engine, live: &Live, row: &NeedRow) -> String {
    let would_serve = |machine: &str| {
        engine.view(machine).is_some_and(|view| {
            let class = &**view.class();
            let domain = row.domain.iter().flatten();
            row.need.usable(class, class.capacity())
                && domain.into_iter().all(|(key, value)| class.attribute(key) == Some(value))
        })
    };
    let failing = live.backoffs.held().filter(|(machine, _)| would_serve(machine));
    let lowest = failing.min_by(|(a, _), (b, _)| a.cmp(b));
    lowest.map(|(_, failing)| failing.error.clone()).unwrap_or_default()
}
