//! Running one scenario.

use std::{
    fs,
    hint::black_box,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

/// What one scenario cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Measurement {
    pub(super) scenario: String,
    pub(super) records: usize,
    pub(super) runs: u32,
    /// Exact, of all runs; nanoseconds per run.
    pub(super) p50: u64,
    pub(super) p99: u64,
    pub(super) max: u64,
    /// Median of a plain scan over the same records; nanoseconds.
    pub(super) scan_p50: u64,
    /// In one run.
    pub(super) allocations: u64,
    pub(super) allocated_bytes: u64,
    /// Peak resident size of the process; bytes, 0 where the system does not tell.
    pub(super) peak_bytes: u64,
}

impl Measurement {
    pub(super) fn nanos_per_record(&self) -> f64 {
        self.p50 as f64 / self.records.max(1) as f64
    }

    pub(super) fn allocations_per_record(&self) -> f64 {
        self.allocations as f64 / self.records.max(1) as f64
    }

    pub(super) fn scan_ratio(&self) -> f64 {
        self.p50 as f64 / self.scan_p50.max(1) as f64
    }
}

/// Times `work` over fresh inputs, and `scan` over the same ones right before,
/// so that both meet the same noise. What they return is dropped untimed.
pub(super) fn measure<I, O, S>(
    scenario: &str,
    records: usize,
    runs: u32,
    input: impl Fn() -> I,
    scan: impl Fn(&I) -> S,
    work: impl Fn(I) -> O,
) -> Measurement {
    let fresh = input();
    let (warm, allocated) = bigfleet_alloc::counted(|| work(fresh));
    drop(black_box(warm));
    let mut worked = Vec::with_capacity(runs as usize);
    let mut scanned = Vec::with_capacity(runs as usize);
    for _ in 0..runs {
        let fresh = input();
        scanned.push(timed(|| scan(black_box(&fresh))));
        worked.push(timed(|| work(black_box(fresh))));
    }
    worked.sort_unstable();
    scanned.sort_unstable();
    Measurement {
        scenario: scenario.to_owned(),
        records,
        runs,
        p50: quantile(&worked, 50),
        p99: quantile(&worked, 99),
        max: quantile(&worked, 100),
        scan_p50: quantile(&scanned, 50),
        allocations: allocated.calls,
        allocated_bytes: allocated.bytes,
        peak_bytes: peak_resident_bytes(),
    }
}

fn timed<R>(work: impl FnOnce() -> R) -> Duration {
    let start = Instant::now();
    let result = black_box(work());
    let elapsed = start.elapsed();
    drop(result);
    elapsed
}

/// The smallest sample that `percent` of all samples do not exceed.
fn quantile(sorted: &[Duration], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).map_or(0, |sample| sample.as_nanos() as u64)
}

fn peak_resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| {
        line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples() {
        let samples: Vec<Duration> = (1..=200).map(Duration::from_nanos).collect();
        assert_eq!(quantile(&samples, 50), 100);
        assert_eq!(quantile(&samples, 99), 198);
        assert_eq!(quantile(&samples, 100), 200);
        assert_eq!(quantile(&samples[..1], 50), 1);
        assert_eq!(quantile(&[], 99), 0);
    }

    #[test]
    fn allocations_of_the_work_are_counted_and_those_of_the_input_are_not() {
        // Other tests may allocate meanwhile, but not ten thousand times.
        let input = || (0..10_000u64).map(Box::new).collect::<Vec<_>>();
        let work = |input: Vec<Box<u64>>| input[..100].to_vec();
        let measured = measure("boxes", 100, 3, input, Vec::len, work);
        assert!((101..10_000).contains(&measured.allocations), "{measured:?}");
        assert!(measured.p50 <= measured.p99 && measured.p99 <= measured.max);
    }
}
