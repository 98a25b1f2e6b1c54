//! Many that are asked the same, within the bounds of all of them together.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::{Stream, StreamExt as _, stream};
use tokio::time::{Instant, timeout_at};

use crate::{
    api::{Refusal, Source},
    source::coalesce::{Fetched, Outcome},
};

/// How many are asked at once.
const AT_ONCE: usize = 32;

/// Failures that one answer tells.
const NAMED: usize = 5;

/// Time for all of them.
const WITHIN: Duration = Duration::from_secs(60);

fn questions<V, F>(
    source: Source,
    ids: Vec<String>,
    ask: impl Fn(String) -> F,
) -> impl Stream<Item = impl Future<Output = (String, Outcome<V>)>>
where
    F: Future<Output = Outcome<V>>,
{
    let deadline = Instant::now() + WITHIN;
    let late = move |_| Err(Refusal::failed(source, "the list took too long before its turn came"));
    stream::iter(ids).map(move |id| {
        let answer = timeout_at(deadline, ask(id.clone()));
        async move { (id, answer.await.unwrap_or_else(late)) }
    })
}

/// What each of them answers, in order; what is late is an error of its row alone.
pub(super) async fn of_each<V, F>(
    source: Source,
    ids: Vec<String>,
    ask: impl Fn(String) -> F,
) -> Vec<(String, Outcome<V>)>
where
    F: Future<Output = Outcome<V>>,
{
    questions(source, ids, ask).buffered(AT_ONCE).collect().await
}

/// What is wanted, from whoever answers with it first. That nobody has it is only said when
/// everybody answered; else, who did not.
pub(super) async fn first<V, F, T>(
    source: Source,
    ids: Vec<String>,
    ask: impl Fn(String) -> F,
    wanted: impl Fn(&str, &Arc<Fetched<V>>) -> Option<T>,
) -> Result<Option<T>, Refusal>
where
    F: Future<Output = Outcome<V>>,
{
    let mut answers = pin!(questions(source, ids, ask).buffer_unordered(AT_ONCE));
    let mut failed = Vec::new();
    while let Some((id, answer)) = answers.next().await {
        match answer {
            Ok(answer) => {
                if let Some(found) = wanted(&id, &answer) {
                    return Ok(Some(found));
                }
            }
            Err(Refusal::NotFound(_)) => {}
            Err(Refusal::Failed { problem, .. }) => failed.push(problem),
            Err(refusal) => failed.push(refusal.to_string()),
        }
    }
    if failed.is_empty() {
        return Ok(None);
    }
    let others = failed.len().saturating_sub(NAMED);
    failed.truncate(NAMED);
    if others > 0 {
        failed.push(format!("and {others} more"));
    }
    Err(Refusal::failed(source, failed.join("; ")))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use tokio::time::sleep;

    use super::*;

    /// Everybody but the last is silent for half a minute.
    async fn ask(id: String) -> Outcome<usize> {
        if id != "last" {
            sleep(Duration::from_secs(30)).await;
            return Err(Refusal::failed(Source::Kubeconfig, id));
        }
        Ok(Arc::new(Fetched { value: 7, at: Timestamp::UNIX_EPOCH }))
    }

    fn silent(count: usize) -> Vec<String> {
        (0..count).map(|number| number.to_string()).collect()
    }

    fn seven(id: &str, answer: &Arc<Fetched<usize>>) -> Option<String> {
        (answer.value == 7).then(|| id.to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn silence_does_not_add_up() {
        let begun = Instant::now();
        first(Source::Kubeconfig, silent(30), ask, seven).await.unwrap_err();
        assert_eq!(begun.elapsed().as_secs(), 30);
        let begun = Instant::now();
        first(Source::Kubeconfig, silent(300), ask, seven).await.unwrap_err();
        assert_eq!(begun.elapsed().as_secs(), 60);
        let begun = Instant::now();
        let rows = of_each(Source::Kubeconfig, silent(300), ask).await;
        assert_eq!((begun.elapsed().as_secs(), rows.len()), (60, 300));
        assert!(rows.iter().all(|(_, answer)| answer.is_err()));
    }

    #[tokio::test(start_paused = true)]
    async fn everybody_who_failed_is_told_of() {
        let told = async |count| first(Source::Shard, silent(count), ask, seven).await.unwrap_err();
        let two = told(2).await.to_string();
        assert!(two.contains('0') && two.contains('1'), "{two}");
        let many = told(8).await.to_string();
        assert!(many.ends_with("and 3 more"), "{many}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_it_is_not_kept_waiting_by_others() {
        let begun = Instant::now();
        let ids = [silent(20), vec!["last".to_owned()]].concat();
        let found = first(Source::Kubeconfig, ids, ask, seven).await;
        assert_eq!(found.unwrap().as_deref(), Some("last"));
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
