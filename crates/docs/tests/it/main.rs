//! The documentation is held to its word.

mod commands;
mod generated;
mod links;
mod metrics;
mod pages;
mod summary;
