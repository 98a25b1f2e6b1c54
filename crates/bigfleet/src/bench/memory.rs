//! Resident memory of this process; 0 where the system does not tell.

use std::fs;

fn status(process: &str, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let kib = status.lines().find_map(|line| {
        line.strip_prefix(field)?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    kib.unwrap_or(0) * 1024
}

pub(super) fn peak_resident_bytes() -> u64 {
    status("self", "VmHWM:")
}

pub(super) fn resident_bytes() -> u64 {
    status("self", "VmRSS:")
}

/// Of another process.
pub(super) fn resident_bytes_of(process: u32) -> u64 {
    status(&process.to_string(), "VmRSS:")
}

/// The peak of another process.
pub(super) fn peak_resident_bytes_of(process: u32) -> u64 {
    status(&process.to_string(), "VmHWM:")
}

/// Begins a new peak, so that one scenario's does not show in the next. Where
/// the system does not allow it the peak is that of the whole process.
pub(super) fn forget_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}
