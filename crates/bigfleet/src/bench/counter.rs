//! Retired instructions, where the system lets a process count its own. They
//! are steadier than time on a machine that others use too.

#[cfg(target_os = "linux")]
pub(super) struct Instructions(Option<perf_event::Counter>);

#[cfg(target_os = "linux")]
impl Instructions {
    /// Of this thread and those it starts from now on.
    pub(super) fn new() -> Self {
        let event = perf_event::events::Hardware::INSTRUCTIONS;
        Self(perf_event::Builder::new(event).inherit(true).build().ok())
    }

    /// Runs `work`, and how many instructions it took.
    pub(super) fn of<R>(&mut self, work: impl FnOnce() -> R) -> (R, Option<u64>) {
        let Some(counter) = &mut self.0 else { return (work(), None) };
        let counting = counter.reset().and_then(|()| counter.enable()).is_ok();
        let result = work();
        let stopped = counter.disable().is_ok();
        let count = counter.read().ok().filter(|_| counting && stopped);
        (result, count)
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) struct Instructions;

#[cfg(not(target_os = "linux"))]
impl Instructions {
    pub(super) const fn new() -> Self {
        Self
    }

    pub(super) fn of<R>(&mut self, work: impl FnOnce() -> R) -> (R, Option<u64>) {
        (work(), None)
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn more_work_takes_more_instructions_or_none_are_told() {
        let mut instructions = Instructions::new();
        let mut count = |n: u64| instructions.of(|| (0..n).map(black_box).sum::<u64>()).1;
        match (count(1_000), count(1_000_000)) {
            (Some(few), Some(many)) => assert!(few < many, "{few} {many}"),
            (few, many) => assert_eq!((few, many), (None, None)),
        }
    }
}
