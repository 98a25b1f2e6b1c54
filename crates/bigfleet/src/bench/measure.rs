//! Running one scenario.

use std::{
    fs,
    hint::black_box,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

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
    /// Exact, of all cycles.
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) max_ms: f64,
    /// To the median of a plain scan of the same records.
    pub(super) scan_ratio: f64,
    pub(super) allocs_per_cycle: f64,
    pub(super) bytes_per_cycle: f64,
    /// Of the whole process; 0 where the system does not tell.
    pub(super) peak_rss_bytes: u64,
    pub(super) bytes_per_machine: f64,
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

/// What is measured, and how much there is of it.
pub(super) struct Subject {
    pub(super) name: &'static str,
    pub(super) variant: &'static str,
    pub(super) machines: usize,
    pub(super) needs: usize,
}

/// Times `work` over fresh inputs, and `scan` over the same ones right before,
/// so that both meet the same noise. What they return is dropped untimed.
pub(super) fn measure<I, O, S>(
    subject: &Subject,
    cycles: u32,
    input: impl Fn() -> I,
    scan: impl Fn(&I) -> S,
    work: impl Fn(I) -> O,
) -> Measurement {
    let fresh = input();
    let (warm, allocated) = bigfleet_alloc::counted(|| work(fresh));
    drop(black_box(warm));
    let mut worked = Vec::with_capacity(cycles as usize);
    let mut scanned = Vec::with_capacity(cycles as usize);
    for _ in 0..cycles {
        let fresh = input();
        scanned.push(timed(|| scan(black_box(&fresh))));
        worked.push(timed(|| work(black_box(fresh))));
    }
    worked.sort_unstable();
    scanned.sort_unstable();
    let peak_rss_bytes = peak_resident_bytes();
    Measurement {
        name: subject.name.to_owned(),
        variant: subject.variant.to_owned(),
        threads: 1,
        machines: subject.machines,
        needs: subject.needs,
        cycles,
        p50_ms: quantile_ms(&worked, 50),
        p99_ms: quantile_ms(&worked, 99),
        max_ms: quantile_ms(&worked, 100),
        scan_ratio: quantile_ms(&worked, 50) / quantile_ms(&scanned, 50).max(f64::MIN_POSITIVE),
        allocs_per_cycle: allocated.calls as f64,
        bytes_per_cycle: allocated.bytes as f64,
        peak_rss_bytes,
        bytes_per_machine: peak_rss_bytes as f64 / subject.machines.max(1) as f64,
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
fn quantile_ms(sorted: &[Duration], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).map_or(0.0, |sample| sample.as_secs_f64() * 1e3)
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
        let subject = Subject { name: "boxes", variant: "copy", machines: 100, needs: 0 };
        let measured = measure(&subject, 3, input, Vec::len, work);
        assert!((101.0..10_000.0).contains(&measured.allocs_per_cycle), "{measured:?}");
        assert!(measured.p50_ms <= measured.p99_ms && measured.p99_ms <= measured.max_ms);
    }
}
