//! What the plugin shows.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

mod api_server;
mod screens;
