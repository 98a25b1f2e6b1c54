//! The time that a rendering itself takes.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Processor time of this thread. On a busy machine, or with a CPU limit, a
/// thread may stand still for longer than a rendering may take; that is not the
/// template's fault.
pub(super) fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
