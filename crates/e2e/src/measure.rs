//! What a run is told by its environment, and what is told of it.

/// The number in a variable, or another where there is none.
///
/// # Panics
///
/// When it is no number: a run that was asked for is the run that one gets.
#[must_use]
pub fn number(variable: &str, otherwise: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")),
        Err(_) => otherwise,
    }
}

/// A seed from a variable, else one of this process; it is printed, so that the run can be had
/// again.
#[must_use]
pub fn seed(variable: &str) -> u64 {
    let seed = number(variable, u64::from(std::process::id()));
    println!("{variable}={seed}");
    seed
}

/// The value below which so many percent of sorted ones are.
///
/// # Panics
///
/// When there is none.
#[must_use]
pub fn quantile<T: Copy>(sorted: &[T], percent: usize) -> T {
    sorted[(sorted.len() * percent).div_ceil(100) - 1]
}
