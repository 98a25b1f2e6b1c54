//! Conditions with a deadline.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Long enough for anything here on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Between two looks.
const POLL: Duration = Duration::from_millis(100);

/// Set to `1` for rows in the catalogue's own sizes, which take an hour.
const WHOLE: &str = "BIGFLEET_E2E_WHOLE";

/// How much of something a row takes: the catalogue's number if it was asked for, else one
/// that keeps the same rules in minutes.
#[must_use]
pub fn sized(small: u32, whole: u32) -> u32 {
    if is_whole() { whole } else { small }
}

/// Whether rows take the catalogue's own sizes.
#[must_use]
pub fn is_whole() -> bool {
    std::env::var(WHOLE).is_ok_and(|value| value == "1")
}

/// Waits for a condition.
///
/// # Panics
///
/// When it does not hold within [`PATIENCE`].
pub async fn eventually<F: Future<Output = bool>>(what: &str, holds: impl FnMut() -> F) {
    within(PATIENCE, what, holds).await;
}

/// Waits for a condition.
///
/// # Panics
///
/// When it does not hold in time.
pub async fn within<F: Future<Output = bool>>(
    limit: Duration,
    what: &str,
    mut holds: impl FnMut() -> F,
) {
    let limit = if is_whole() { 10 * limit } else { limit };
    let deadline = Instant::now() + limit;
    while !holds().await {
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        sleep(POLL).await;
    }
}

/// Looks for a while and sees the condition hold all the time.
///
/// # Panics
///
/// When it once does not.
pub async fn throughout<F: Future<Output = bool>>(
    time: Duration,
    what: &str,
    mut holds: impl FnMut() -> F,
) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        assert!(holds().await, "no longer: {what}");
        sleep(POLL).await;
    }
}
