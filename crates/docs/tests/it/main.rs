//! The documentation is held to its word.

mod commands;
mod generated;
mod links;
mod pages;
mod summary;
