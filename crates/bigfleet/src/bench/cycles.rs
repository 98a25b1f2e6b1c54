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
    pub(super) fn apply(self, driver: &mut Driver) {
        for tracked in self.machines {
            driver.upsert(tracked);
        }
        for (cluster, needs) in self.roll_ups {
            driver.replace(&cluster, needs);
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
    record(run, driver, variant, change, |driver| {
        let phases = driver.cycle(Pass::Incremental);
        driver.restamp();
        phases
    })
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
    let counted = if variant == "cold" { 1 } else { COUNTED.min(run.cycles) };
    run.progress.expect(variant, u64::from(run.cycles + counted));
    let mut whole = Samples::default();
    let mut phases: [Samples; 3] = Default::default();
    let mut instructions = Instructions::new();
    for k in 0..counted + run.cycles {
        let next = change(driver);
        let scanned = timed(|| driver.scan());
        let step = || {
            next.apply(driver);
            cycle(driver)
        };
        if k < counted {
            let allocated = bigfleet_alloc::counted(step).1;
            whole.allocated.calls += allocated.calls;
            whole.allocated.bytes += allocated.bytes;
            whole.counted += 1;
        } else {
            let mut told = Phases::default();
            let (time, count) = instructions.of(|| timed(|| told = step()));
            whole.worked.push(time);
            whole.scanned.push(scanned);
            whole.instructions.extend(count);
            for (samples, time) in phases.iter_mut().zip(told) {
                samples.worked.extend(time);
            }
        }
        run.progress.step();
    }
    let mut subject = run.subject(variant, driver.machines(), driver.needs());
    subject.threads = driver.threads();
    let mut measured = vec![whole.measurement(&subject)];
    for (samples, phase) in phases.iter_mut().zip(PHASES) {
        if samples.worked.is_empty() {
            continue;
        }
        samples.scanned.clone_from(&whole.scanned);
        subject.variant =
            if variant == "cold" { phase.to_owned() } else { format!("{variant}/{phase}") };
        measured.push(samples.measurement(&subject));
    }
    measured
}
