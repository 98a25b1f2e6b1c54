use std::future::Future;
use std::time::Duration;

use bigfleet_in_cluster::refusal;

use super::{Clock, Verdict};

/// First pause of a call that failed; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// So many quick repetitions.
const QUICK: u32 = 5;

/// Then one every so often until a newer frame supersedes it, for the shard will not repeat it.
const PATIENT: Duration = Duration::from_secs(5);

/// What the server refuses for a reason of its own is asked for less often.
const REFUSED: Duration = Duration::from_secs(60);

/// Calls in a row for one key; a server that takes a write and does not show it must not keep a
/// worker forever.
const CALLS: u32 = 32;

/// What a call on the way to what is wanted came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// There may be more to do.
    More,
    /// Nothing is left to do.
    Settled,
}

/// Makes one call after the other until nothing is left to do, with patience for a server that
/// fails.
pub(crate) async fn until_settled<F, Fut>(clock: Clock, key: &str, mut next: F) -> Verdict
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<Progress, kube::Error>>,
{
    let mut failed = 0;
    for _ in 0..CALLS {
        let error = match next().await {
            Ok(Progress::Settled) => return Verdict::Settled,
            Ok(Progress::More) => {
                failed = 0;
                continue;
            }
            Err(error) => error,
        };
        if !refusal::is_passing(&error) {
            tracing::warn!(object = key, %error, "the API server refuses a write");
            return Verdict::Again(clock.now() + REFUSED);
        }
        failed += 1;
        if failed > QUICK {
            tracing::debug!(object = key, %error, "a write failed and will be repeated");
            return Verdict::Again(clock.now() + PATIENT);
        }
        tokio::time::sleep(FIRST_PAUSE * 2_u32.pow(failed - 1)).await;
    }
    Verdict::Again(clock.now() + PATIENT)
}

/// The answer; none where the server says 404.
pub(crate) fn found<T>(answer: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(error) if refusal::code(&error) == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}
