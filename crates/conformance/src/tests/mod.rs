//! The tests, one module per area of the specification.

mod concurrency;
mod durable;
mod errors;
mod failure;
mod fencing;
mod lifecycle;
mod list;
mod metadata;
mod property;
mod scale;
mod shape;
mod smoke;
mod strict;

use crate::catalogue::Test;

/// Every area, in the order of the specification.
pub const AREAS: &[&[Test]] = &[
    smoke::TESTS,
    smoke::fence::TESTS,
    lifecycle::TESTS,
    errors::TESTS,
    fencing::TESTS,
    concurrency::TESTS,
    metadata::TESTS,
    failure::TESTS,
    shape::TESTS,
    list::TESTS,
    durable::TESTS,
    scale::TESTS,
    property::TESTS,
    strict::TESTS,
    strict::fault::TESTS,
];
