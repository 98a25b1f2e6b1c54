//! `--phase-attribution-log`: what the phases made of a cycle, now and then.

use bigfleet_engine::Engine;

/// Which cycles are looked at.
const EVERY: u64 = 20;
/// Gangs named in full.
const GANGS: usize = 8;

/// Logs what a cycle's phases found, if it is such a cycle's turn.
pub(super) fn log_phases(engine: &Engine, cycle: u64) {
    if !cycle.is_multiple_of(EVERY) {
        return;
    }
    let log = engine.phase_log();
    tracing::info!(
        cycle,
        needs = log.needs,
        gangs = log.gangs,
        unsatisfied = log.unsatisfied,
        unsatisfied_gangs = log.unsatisfied_gangs,
        reclaims = log.reclaims,
        "phases"
    );
    if log.reclaims_in_need > 0 {
        tracing::error!(
            cycle,
            machines = log.reclaims_in_need,
            "machines are reclaimed that a need of their cluster lacks: a defect"
        );
    }
    for gang in log.short_gangs.iter().take(GANGS) {
        tracing::info!(
            cycle,
            cluster = %gang.need.cluster,
            group = ?gang.need.group,
            domain = ?gang.domain,
            acquired = gang.acquired,
            residual = ?gang.residual.to_wire(),
            parked = gang.parked,
            "a gang is short"
        );
    }
}
