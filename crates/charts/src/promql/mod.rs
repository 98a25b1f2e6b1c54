//! The part of PromQL that our rules and dashboards use: parsed to be checked, and evaluated on
//! planted series so that every alert is seen to fire.
//!
//! Differences to Prometheus, none of which matters to a threshold on planted series: `rate` and
//! `increase` do not extrapolate to the ends of their window, and there are neither native
//! histograms nor `group_left`.

mod ast;
mod eval;
mod functions;
mod lex;
mod parse;
mod series;

pub use ast::{Aggregate, Expr, Matcher, Selector};
pub use eval::{Value, Vector, evaluate};
pub use functions::known_function;
pub use parse::parse;
pub use series::{Labels, Series, Store};

/// Why an expression is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{message} in: {expr}")]
pub struct Error {
    message: String,
    expr: String,
}

impl Error {
    fn new(message: impl Into<String>, expr: &str) -> Self {
        Self { message: message.into(), expr: expr.to_owned() }
    }
}
