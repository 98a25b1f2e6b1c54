//! What an expression is.

use regex::Regex;

/// An expression.
#[derive(Clone, Debug)]
pub enum Expr {
    /// `1.5`
    Number(f64),
    /// A minus before another.
    Negate(Box<Expr>),
    /// `name{label="x"}`, with `[5m]` a range, with `offset 5m` earlier.
    Selector(Selector),
    /// `expr[1h:1m]`
    Subquery {
        /// What is evaluated at each step.
        expr: Box<Expr>,
        /// Seconds back.
        range: i64,
        /// Seconds between two steps.
        step: i64,
    },
    /// `rate(…)`
    Call {
        /// Name of the function.
        function: String,
        /// What it is given.
        arguments: Vec<Expr>,
    },
    /// `sum by (pod) (…)`
    Aggregate(Box<Aggregate>),
    /// `a > b`
    Binary {
        /// The operator.
        operator: String,
        /// Comparisons: 0 and 1 instead of a filter.
        bool: bool,
        /// `on (…)`; none compares all labels.
        on: Option<Vec<String>>,
        /// Left.
        left: Box<Expr>,
        /// Right.
        right: Box<Expr>,
    },
}

/// Series by name and labels.
#[derive(Clone, Debug)]
pub struct Selector {
    /// Name of the metric.
    pub name: String,
    /// Conditions.
    pub matchers: Vec<Matcher>,
    /// Seconds back, of a range.
    pub range: Option<i64>,
    /// Seconds earlier.
    pub offset: i64,
}

/// A condition on a label.
#[derive(Clone, Debug)]
pub struct Matcher {
    /// The label.
    pub label: String,
    /// `=`, `!=`, `=~` or `!~`.
    pub operator: String,
    /// What it is compared with.
    pub value: String,
    /// Of the two that match by pattern.
    pub pattern: Option<Regex>,
}

impl Matcher {
    /// Whether a value passes; an absent label is empty.
    #[must_use]
    pub fn matches(&self, value: &str) -> bool {
        let equal = match &self.pattern {
            Some(pattern) => pattern.is_match(value),
            None => value == self.value,
        };
        equal != self.operator.starts_with('!')
    }
}

/// Many series made fewer.
#[derive(Clone, Debug)]
pub struct Aggregate {
    /// sum, max, …
    pub operator: String,
    /// Labels that stay.
    pub by: Vec<String>,
    /// Of `topk`: how many.
    pub parameter: Option<Expr>,
    /// What is aggregated.
    pub expr: Expr,
}

impl Expr {
    /// Calls `visit` with each selector.
    pub fn selectors<'a>(&'a self, visit: &mut impl FnMut(&'a Selector)) {
        match self {
            Self::Number(_) => {}
            Self::Selector(selector) => visit(selector),
            Self::Negate(expr) | Self::Subquery { expr, .. } => expr.selectors(visit),
            Self::Call { arguments, .. } => {
                arguments.iter().for_each(|argument| argument.selectors(visit));
            }
            Self::Aggregate(aggregate) => aggregate.expr.selectors(visit),
            Self::Binary { left, right, .. } => {
                left.selectors(visit);
                right.selectors(visit);
            }
        }
    }

    /// Calls `visit` with each aggregation.
    pub fn aggregates<'a>(&'a self, visit: &mut impl FnMut(&'a Aggregate)) {
        match self {
            Self::Number(_) | Self::Selector(_) => {}
            Self::Negate(expr) | Self::Subquery { expr, .. } => expr.aggregates(visit),
            Self::Call { arguments, .. } => {
                arguments.iter().for_each(|argument| argument.aggregates(visit));
            }
            Self::Aggregate(aggregate) => {
                visit(aggregate);
                aggregate.expr.aggregates(visit);
            }
            Self::Binary { left, right, .. } => {
                left.aggregates(visit);
                right.aggregates(visit);
            }
        }
    }
}
