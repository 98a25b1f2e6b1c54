//! Timing the cycles of a driven world.

use bigfleet_engine::Tracked;
use bigfleet_model::{ClusterId, Need};

use super::{
    counter::Instructions,
    driver::{Driver, Pass, Phases},
    measure::{Measurement, Run, Samples, timed},
};

const PHASES: [&str; 3] = ["phase1", "phase2", "phase3"];
/// Cycles in which allocations are counted and nothing is timed.
const COUNTED: u32 = 3;

/// What reaches a shard between two cycles.
#[derive(Default)]
pub(super) struct Change {
    pub(super) machines: Vec<Tracked>,
    pub(super) roll_ups: Vec<(ClusterId, Vec<Need>)>,
}

impl Change {
    pub(super) fn apply(&self, driver: &mut Driver) {
        driver.upsert_all(&self.machines);
        for (cluster, needs) in &self.roll_ups {
            driver.replace(cluster, needs);
        }
    }
}

/// Full passes over a world at rest, nothing carried out: the variant `cold`,
/// and its phases where the engine tells them apart.
pub(super) fn cold(run: &Run, driver: &mut Driver) -> Vec<Measurement> {
    full(run, driver, "cold")
}

/// The same under another name.
pub(super) fn full(run: &Run, driver: &mut Driver, variant: &'static str) -> Vec<Measurement> {
    record(run, driver, variant, |_| Change::default(), |driver| driver.cycle(Pass::Full))
}

/// A shard's cycle: changes come in, the engine decides, claims are stamped; all
/// of that is timed. `change` makes the next changes, untimed.
pub(super) fn steps(
    run: &Run,
    driver: &mut Driver,
    variant: &'static str,
    change: impl FnMut(&mut Driver) -> Change,
) -> Vec<Measurement> {
    record(run, driver, variant, change, incremental)
}

/// What a shard does between taking changes in and handing decisions out.
pub(super) fn incremental(driver: &mut Driver) -> Phases {
    let phases = driver.cycle(Pass::Incremental);
    driver.restamp();
    phases
}

/// Brings the world to rest; then the variant `quiet`: cycles between which
/// nothing at all has changed.
pub(super) fn quiet(run: &Run, driver: &mut Driver) -> Vec<Measurement> {
    settle(driver, 20);
    steps(run, driver, "quiet", |_| Change::default())
}

/// Changes come in and are put in their places; nothing is decided.
pub(super) fn preparations(
    run: &Run,
    driver: &mut Driver,
    variant: &'static str,
    change: impl FnMut(&mut Driver) -> Change,
) -> Vec<Measurement> {
    record(run, driver, variant, change, |driver| {
        driver.prepare();
        Phases::default()
    })
}

/// Carries out what was decided, over and over, until nothing is; at most
/// `cycles` times. Whether it came to rest.
pub(super) fn settle(driver: &mut Driver, cycles: u32) -> bool {
    for _ in 0..cycles {
        driver.cycle(Pass::Incremental);
        driver.restamp();
        let machines = driver.completions();
        if machines.is_empty() {
            return true;
        }
        Change { machines, ..Change::default() }.apply(driver);
    }
    false
}

fn record(
    run: &Run,
    driver: &mut Driver,
    variant: &'static str,
    mut change: impl FnMut(&mut Driver) -> Change,
    cycle: impl Fn(&mut Driver) -> Phases,
) -> Vec<Measurement> {
    let mut recorder = Recorder::new(run, variant);
    run.progress.expect(variant, recorder.steps());
    for _ in 0..recorder.steps() {
        let next = change(driver);
        // Dropped by its sender, after the clock has stopped.
        recorder.step(driver, &next, &cycle);
        run.progress.step();
    }
    recorder.measurements(run, driver)
}

/// What the cycles of one variant took so far.
pub(super) struct Recorder {
    variant: &'static str,
    /// Cycles whose allocations are counted, which come first.
    counted: u32,
    timed: u32,
    whole: Samples,
    phases: [Samples; 3],
    /// Cycles among the timed ones that were full passes by rule (engine chapter §11):
    /// one in a hundred, told apart, for it says nothing of the others.
    full: Samples,
    instructions: Instructions,
}

impl Recorder {
    pub(super) fn new(run: &Run, variant: &'static str) -> Self {
        Self {
            variant,
            counted: if variant == "cold" { 1 } else { COUNTED.min(run.cycles) },
            timed: run.cycles,
            whole: Samples::default(),
            phases: Default::default(),
            full: Samples::default(),
            instructions: Instructions::new(),
        }
    }

    /// Cycles in all, counted and timed.
    pub(super) const fn steps(&self) -> u64 {
        self.counted as u64 + self.timed as u64
    }

    pub(super) fn step(
        &mut self,
        driver: &mut Driver,
        next: &Change,
        cycle: impl Fn(&mut Driver) -> Phases,
    ) {
        let scanned = timed(|| driver.scan());
        driver.had_full_pass_by_rule();
        let mut step = || {
            next.apply(driver);
            cycle(driver)
        };
        let whole = &mut self.whole;
        if whole.counted < self.counted {
            let allocated = bigfleet_alloc::counted(step).1;
            whole.allocated.calls += allocated.calls;
            whole.allocated.bytes += allocated.bytes;
            whole.counted += 1;
            return;
        }
        let mut told = Phases::default();
        let (time, count) = self.instructions.of(|| timed(|| told = step()));
        let by_rule = driver.had_full_pass_by_rule();
        let of_kind = if by_rule { &mut self.full } else { whole };
        of_kind.worked.push(time);
        of_kind.scanned.push(scanned);
        of_kind.instructions.extend(count);
        if by_rule {
            return;
        }
        for (samples, time) in self.phases.iter_mut().zip(told) {
            samples.worked.extend(time);
        }
    }

    /// The whole cycle, its phases where they were told apart, and full passes by rule
    /// where there were any.
    pub(super) fn measurements(mut self, run: &Run, driver: &Driver) -> Vec<Measurement> {
        let variant = self.variant;
        let mut subject = run.subject(variant, driver.machines(), driver.needs());
        subject.threads = driver.threads();
        let mut measured = vec![self.whole.measurement(&subject)];
        for (samples, phase) in self.phases.iter_mut().zip(PHASES) {
            if samples.worked.is_empty() {
                continue;
            }
            samples.scanned.clone_from(&self.whole.scanned);
            subject.variant =
                if variant == "cold" { phase.to_owned() } else { format!("{variant}/{phase}") };
            measured.push(samples.measurement(&subject));
        }
        if !self.full.worked.is_empty() {
            subject.variant = format!("{variant}/full");
            measured.push(self.full.measurement(&subject));
        }
        measured
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pass_by_rule_is_told_apart_from_the_other_cycles() {
        let (run, mut driver) = (Run::new("nothing", 197, 1), Driver::new(1));
        // Cycles 1 to 200 of this engine: the first, and the hundredth after it.
        let measured = steps(&run, &mut driver, "quiet", |driver| {
            // Time passes: full passes are a minute apart, too.
            assert!(driver.completions().is_empty());
            Change::default()
        });
        let cycles = |variant: &str| {
            measured.iter().find(|one| one.variant == variant).map(|one| one.cycles)
        };
        // The first is among those whose allocations are counted.
        assert_eq!((cycles("quiet"), cycles("quiet/full")), (Some(196), Some(1)));
        let asked = full(&run, &mut driver, "cold");
        assert_eq!((asked[0].cycles, asked.last().map(|one| &*one.variant)), (197, Some("phase3")));
    }
}
