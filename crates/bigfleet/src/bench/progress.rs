//! How far a run is, for a person who waits at a terminal, and in short for a
//! log.

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};

/// A bar at a terminal, else a line for each part.
pub(super) struct Progress {
    bar: ProgressBar,
    scenario: String,
}

impl Progress {
    pub(super) fn new(scenario: &str) -> Self {
        let scenario = scenario.to_owned();
        if !io::stderr().is_terminal() {
            eprintln!("{scenario}: building");
            return Self { bar: ProgressBar::hidden(), scenario };
        }
        let bar = ProgressBar::new(0);
        if let Ok(style) =
            ProgressStyle::with_template("{prefix:28} {bar:30} {pos}/{len} {elapsed} {msg}")
        {
            bar.set_style(style);
        }
        bar.set_prefix(scenario.clone());
        bar.set_message("building");
        // Single steps may take minutes: the clock shows that it is alive.
        bar.enable_steady_tick(Duration::from_millis(500));
        Self { bar, scenario }
    }

    /// For whoever builds the world.
    pub(super) fn building(&self) -> Building {
        Building { bar: self.bar.clone(), scenario: self.scenario.clone() }
    }

    /// Another part begins, of so many steps.
    pub(super) fn expect(&self, part: &'static str, steps: u64) {
        if self.bar.is_hidden() {
            eprintln!("{}: {part}, {steps} steps", self.scenario);
        }
        self.bar.inc_length(steps);
        self.bar.set_message(part);
    }

    pub(super) fn step(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Tells how large the world has become.
pub(super) struct Building {
    bar: ProgressBar,
    scenario: String,
}

impl Building {
    /// It has so many machines now.
    pub(super) fn has(&self, machines: usize) {
        const EVERY: usize = 50_000;
        if !machines.is_multiple_of(EVERY) {
            return;
        }
        if self.bar.is_hidden() {
            eprintln!("{}: {machines} machines", self.scenario);
        }
        self.bar.set_message(format!("building, {machines} machines"));
    }
}
