//! How far a run is, for a person who waits at a terminal, and in short for a
//! log.

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};

use crate::verdict::Status;

/// A bar at a terminal, else a line for every test; or nothing.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    lines: bool,
}

impl Progress {
    /// Says nothing.
    #[must_use]
    pub fn silent() -> Self {
        Self { bar: None, lines: false }
    }

    /// On stderr, for so many steps.
    #[must_use]
    pub fn on_stderr(steps: u64) -> Self {
        if !io::stderr().is_terminal() {
            return Self { bar: None, lines: true };
        }
        let bar = ProgressBar::new(steps);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {wide_msg}")
        {
            bar.set_style(style);
        }
        // Single tests may take minutes: the clock shows that it is alive.
        bar.enable_steady_tick(Duration::from_millis(500));
        Self { bar: Some(bar), lines: false }
    }

    /// This begins.
    pub fn begins(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
        }
    }

    /// This ended.
    pub fn ended(&self, what: &str, status: &Status, took: Duration) {
        // What was left out on purpose is no news in a log.
        if self.lines && *status == Status::Filtered {
            return;
        }
        let line = format!("{what} {} {took:.1?} {}", status.word(), status.reason());
        self.line(line.trim_end());
    }

    /// One step is done; a failure stays on the screen.
    pub fn line(&self, line: &str) {
        match &self.bar {
            Some(bar) => {
                bar.inc(1);
                if line.contains("failed") || line.contains("SURVIVED") {
                    bar.println(line);
                }
            }
            None if self.lines => eprintln!("{line}"),
            None => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
