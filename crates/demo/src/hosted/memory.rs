//! How much memory there is, as the system tells.

use std::fs;

use super::table::Memory;

/// Of this machine, or of what it was given. None where nobody tells.
pub(super) fn memory() -> Option<Memory> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let machine = read(&text)?;
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let group = number("/sys/fs/cgroup/memory.max").zip(number("/sys/fs/cgroup/memory.current"));
    match group {
        Some((total, used)) if total < machine.total => Some(Memory { total, used }),
        _ => Some(machine),
    }
}

fn read(text: &str) -> Option<Memory> {
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let (total, free) = (kib("MemTotal:")? * 1024, kib("MemAvailable:")? * 1024);
    Some(Memory { total, used: total.saturating_sub(free) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_as_the_kernel_writes_it() {
        let text = "MemTotal:       1000 kB\nMemFree:  1 kB\nMemAvailable:    400 kB\n";
        assert_eq!(read(text), Some(Memory { total: 1_024_000, used: 614_400 }));
        assert_eq!(read("MemTotal: 5 kB\n"), None);
    }
}
