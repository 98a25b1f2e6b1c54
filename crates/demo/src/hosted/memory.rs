//! How much memory there is, as the system tells.

use std::fs;

use super::table::Memory;

/// Of this machine, or of what it was given. None where nobody tells.
pub(super) fn memory() -> Option<Memory> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let machine = read(&text)?;
    let file = |name: &str| fs::read_to_string(format!("/sys/fs/cgroup/memory.{name}")).ok();
    let given = || group(&file("max")?, &file("current")?, &file("stat").unwrap_or_default());
    Some(given().filter(|given| given.total < machine.total).unwrap_or(machine))
}

/// Of a group. Pages of files that nobody has used for a while are given back when they are
/// needed, and count as used all the same.
fn group(max: &str, current: &str, stat: &str) -> Option<Memory> {
    let idle = stat.lines().find_map(|line| line.strip_prefix("inactive_file "));
    let idle = idle.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or_default();
    let (total, used) = (max.trim().parse().ok()?, current.trim().parse::<u64>().ok()?);
    Some(Memory { total, used: used.saturating_sub(idle) })
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

    #[test]
    fn what_a_group_would_give_back_is_not_used() {
        let stat = "anon 100\nfile 500\ninactive_file 300\nactive_file 200\n";
        assert_eq!(group("1000\n", "900\n", stat), Some(Memory { total: 1_000, used: 600 }));
        assert_eq!(group("1000\n", "900\n", ""), Some(Memory { total: 1_000, used: 900 }));
        assert_eq!(group("max\n", "900\n", stat), None, "it was given no part");
    }
}
