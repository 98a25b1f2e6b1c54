//! Charts, rules, dashboards, documents: each says what is so.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests fail by panicking")]

mod alerts;
mod chart;
mod exported;
mod flags;
mod generated;
mod helm;
mod queries;
mod rights;
mod runbooks;
mod server;
mod values;
