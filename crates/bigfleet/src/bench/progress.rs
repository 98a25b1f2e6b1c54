//! How far a run is, for a person who waits at a terminal.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};

/// Nothing where standard error is no terminal.
pub(super) struct Progress(ProgressBar);

impl Progress {
    pub(super) fn new(scenario: &str) -> Self {
        if !io::stderr().is_terminal() {
            eprintln!("measuring {scenario} ...");
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(0);
        if let Ok(style) =
            ProgressStyle::with_template("{prefix:28} {bar:30} {pos}/{len} {elapsed} {msg}")
        {
            bar.set_style(style);
        }
        bar.set_prefix(scenario.to_owned());
        bar.set_message("building");
        Self(bar)
    }

    /// Another part begins, of so many steps.
    pub(super) fn expect(&self, part: &'static str, steps: u64) {
        self.0.inc_length(steps);
        self.0.set_message(part);
    }

    pub(super) fn step(&self) {
        self.0.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
