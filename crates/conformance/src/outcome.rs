//! How a test ends.

/// Why a test stopped before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The target broke the rule.
    Failed(String),
    /// The rule does not apply here.
    Skipped(String),
    /// Too few machines to try the rule: a certificate cannot be given.
    Short(String),
}

/// A value, or the reason to stop.
pub type Outcome<T = ()> = Result<T, Stop>;

/// Stops the test with a failure.
#[macro_export]
macro_rules! fail {
    ($($text:tt)*) => {
        return Err($crate::outcome::Stop::Failed(format!($($text)*)))
    };
}

/// Stops the test with a failure unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($text:tt)*) => {
        if !$condition {
            $crate::fail!($($text)*);
        }
    };
}
