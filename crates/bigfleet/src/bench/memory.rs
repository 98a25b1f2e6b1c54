//! Resident memory of this process; 0 where the system does not tell.

use std::fs;

fn status(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| {
        line.strip_prefix(field)?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    kib.unwrap_or(0) * 1024
}

pub(super) fn peak_resident_bytes() -> u64 {
    status("VmHWM:")
}

pub(super) fn resident_bytes() -> u64 {
    status("VmRSS:")
}

/// Begins a new peak, so that one scenario's does not show in the next. Where
/// the system does not allow it the peak is that of the whole process.
pub(super) fn forget_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}
