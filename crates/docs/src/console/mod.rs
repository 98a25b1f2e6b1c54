//! Pages that are run.
//!
//! A block marked `console` is a session: lines that begin with `$ ` are commands, and what
//! follows a command is what it must print. A line `…` stands for any lines, `…` within a line for
//! any text, and widths of blanks do not count. A command without output shown may print what it
//! likes. After the word `console`,
//!
//! - `eventually` repeats each command until it prints what is shown, for a minute;
//! - `fails` expects an exit code other than 0.
//!
//! A command that ends in ` &` stays until the page ends or `$ kill %1` ends it (the first is 1).
//! A block of any other language that says `file=NAME`, or YAML whose first line is the comment
//! `# NAME`, is written to that file first. Commands of
//! a page run in order, each in a shell of its own, all in one empty folder.
//!
//! Pages name the ports that binaries have by default. The runner gives each page ports of its
//! own, so that pages run beside each other and beside whatever else runs, and writes the numbers
//! of the page back into what it compares.

mod expect;
mod parse;
mod ports;
mod run;

pub use parse::{Session, Step, steps};
pub use run::{Runner, Wrong};
