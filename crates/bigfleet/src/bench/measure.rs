//! Running one scenario.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use bigfleet_alloc::Allocations;
use serde::{Deserialize, Serialize};

use super::{counter::Instructions, driver::Driver, memory, progress::Progress};

/// What a run writes.
#[derive(Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) scenarios: Vec<Measurement>,
}

/// What one variant of a scenario cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Measurement {
    pub(super) name: String,
    pub(super) variant: String,
    pub(super) threads: u32,
    pub(super) machines: usize,
    pub(super) needs: usize,
    pub(super) cycles: u32,
    /// What a tenth of the cycles did not exceed: the time that the noise of
    /// others leaves alone.
    #[serde(default)]
    pub(super) p10_ms: f64,
    /// Exact, of all cycles.
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) max_ms: f64,
    /// To the median of a plain scan of the same records.
    pub(super) scan_ratio: f64,
    pub(super) allocs_per_cycle: f64,
    pub(super) bytes_per_cycle: f64,
    /// Since the scenario began; 0 where the system does not tell.
    pub(super) peak_rss_bytes: u64,
    /// What the peak is above what was resident before the scenario began; 0
    /// without machines.
    pub(super) bytes_per_machine: f64,
    /// Median; none where the system does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) instructions: Option<u64>,
}

impl Measurement {
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        (&self.name, &self.variant, self.threads) == (&other.name, &other.variant, other.threads)
    }

    /// Needs and machines.
    pub(super) fn records(&self) -> usize {
        self.machines + self.needs
    }
}

/// One run of a scenario.
pub(super) struct Run {
    pub(super) name: &'static str,
    pub(super) cycles: u32,
    threads: u32,
    pub(super) progress: Progress,
    /// Resident before anything was built.
    base: u64,
}

impl Run {
    pub(super) fn new(name: &'static str, cycles: u32, threads: u32) -> Self {
        memory::forget_peak();
        let progress = Progress::new(name);
        Self { name, cycles, threads, progress, base: memory::resident_bytes() }
    }

    /// An empty world.
    pub(super) fn driver(&self) -> Driver {
        Driver::new(self.threads).shown(self.progress.building())
    }

    /// As it is, in a variant of this size.
    pub(super) fn subject(&self, variant: &str, machines: usize, needs: usize) -> Subject {
        let (name, variant) = (self.name.to_owned(), variant.to_owned());
        Subject { name, variant, threads: 1, machines, needs, base: self.base }
    }
}

/// What is measured, and how much there is of it.
#[derive(Clone)]
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) variant: String,
    pub(super) threads: u32,
    pub(super) machines: usize,
    pub(super) needs: usize,
    base: u64,
}

/// What single cycles took.
#[derive(Default)]
pub(super) struct Samples {
    pub(super) worked: Vec<Duration>,
    pub(super) scanned: Vec<Duration>,
    pub(super) instructions: Vec<u64>,
    pub(super) allocated: Allocations,
    /// Cycles in which allocations were counted, which are not timed.
    pub(super) counted: u32,
}

impl Samples {
    pub(super) fn measurement(&mut self, subject: &Subject) -> Measurement {
        self.worked.sort_unstable();
        self.scanned.sort_unstable();
        self.instructions.sort_unstable();
        let per_cycle = |sum: u64| sum as f64 / f64::from(self.counted.max(1));
        let peak_rss_bytes = memory::peak_resident_bytes();
        // What stays: the peak also holds what loading took for a while.
        let above = memory::resident_bytes().saturating_sub(subject.base) as f64;
        let scan = quantile_ms(&self.scanned, 50).max(f64::MIN_POSITIVE);
        Measurement {
            name: subject.name.clone(),
            variant: subject.variant.clone(),
            threads: subject.threads,
            machines: subject.machines,
            needs: subject.needs,
            cycles: self.worked.len() as u32,
            p10_ms: quantile_ms(&self.worked, 10),
            p50_ms: quantile_ms(&self.worked, 50),
            p99_ms: quantile_ms(&self.worked, 99),
            max_ms: quantile_ms(&self.worked, 100),
            scan_ratio: quantile_ms(&self.worked, 50) / scan,
            allocs_per_cycle: per_cycle(self.allocated.calls),
            bytes_per_cycle: per_cycle(self.allocated.bytes),
            peak_rss_bytes,
            bytes_per_machine: if subject.machines == 0 {
                0.0
            } else {
                above / subject.machines as f64
            },
            instructions: quantile(&self.instructions, 50),
        }
    }
}

/// Times `work` over fresh inputs, and `scan` over the same ones right before,
/// so that both meet the same noise. What they return is dropped untimed.
pub(super) fn measure<I, O, S>(
    run: &Run,
    subject: &Subject,
    input: impl Fn() -> I,
    scan: impl Fn(&I) -> S,
    work: impl Fn(I) -> O,
) -> Measurement {
    run.progress.expect("measuring", u64::from(run.cycles));
    let fresh = input();
    let (warm, allocated) = bigfleet_alloc::counted(|| work(fresh));
    drop(black_box(warm));
    let mut samples = Samples { allocated, counted: 1, ..Samples::default() };
    let mut instructions = Instructions::new();
    for _ in 0..run.cycles {
        let fresh = input();
        samples.scanned.push(timed(|| scan(black_box(&fresh))));
        let (time, count) = instructions.of(|| timed(|| work(black_box(fresh))));
        samples.worked.push(time);
        samples.instructions.extend(count);
        run.progress.step();
    }
    samples.measurement(subject)
}

pub(super) fn timed<R>(work: impl FnOnce() -> R) -> Duration {
    let start = Instant::now();
    let result = black_box(work());
    let elapsed = start.elapsed();
    drop(result);
    elapsed
}

/// The smallest sample that `percent` of all samples do not exceed.
fn quantile<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

pub(super) fn quantile_ms(sorted: &[Duration], percent: usize) -> f64 {
    quantile(sorted, percent).map_or(0.0, |sample| sample.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples() {
        let samples: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!(quantile_ms(&samples, 50), 100.0);
        assert_eq!(quantile_ms(&samples, 99), 198.0);
        assert_eq!(quantile_ms(&samples, 100), 200.0);
        assert_eq!(quantile_ms(&samples[..1], 50), 1.0);
        assert_eq!(quantile_ms(&[], 99), 0.0);
    }

    #[test]
    fn allocations_of_the_work_are_counted_and_those_of_the_input_are_not() {
        // Other tests may allocate meanwhile, but not ten thousand times.
        let input = || (0..10_000u64).map(Box::new).collect::<Vec<_>>();
        let work = |input: Vec<Box<u64>>| input[..100].to_vec();
        let run = Run::new("boxes", 3, 1);
        let measured = measure(&run, &run.subject("copy", 100, 0), input, Vec::len, work);
        assert!((101.0..10_000.0).contains(&measured.allocs_per_cycle), "{measured:?}");
        assert!(measured.p50_ms <= measured.p99_ms && measured.p99_ms <= measured.max_ms);
    }
}
