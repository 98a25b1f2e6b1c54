//! A client that dies is started again: it must not end a shard that works
//! without it (§19).

use std::time::Duration;

use bigfleet_net::shutdown::Shutdown;
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use crate::client::Client;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Runs the client until the shutdown, and starts it again whenever it dies. What
/// it knows outlives it.
pub async fn supervise(client: Client, stop: Shutdown) {
    let lives = keep_alive(|| client.clone().run());
    tokio::select! {
        () = lives => {}
        () = stop.requested() => {}
    }
}

async fn keep_alive<F>(mut life: impl FnMut() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut pause = FIRST_PAUSE;
    loop {
        let began = Instant::now();
        match AbortOnDropHandle::new(tokio::spawn(life())).await {
            Err(error) if error.is_panic() => {
                tracing::error!(%error, "coordinator client died; it starts again");
            }
            // It runs for ever, or the runtime ends.
            Ok(()) | Err(_) => return,
        }
        if began.elapsed() > LONGEST_PAUSE {
            pause = FIRST_PAUSE;
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Lives that end by panicking after so many seconds; when each began.
    async fn lives(of: &'static [u64]) -> Vec<u64> {
        let begun = Arc::new(Mutex::new(Vec::new()));
        let (start, seen) = (Instant::now(), begun.clone());
        let mut lives = of.iter();
        let life = move || {
            seen.lock().unwrap().push(start.elapsed().as_secs());
            let life = lives.next().copied();
            async move {
                if let Some(life) = life {
                    sleep(Duration::from_secs(life)).await;
                    panic!("a life ends");
                }
            }
        };
        keep_alive(life).await;
        begun.lock().unwrap().clone()
    }

    #[tokio::test(start_paused = true)]
    async fn each_pause_is_twice_the_last() {
        let begun = lives(&[0; 9]).await;
        assert_eq!(begun, [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_life_forgives() {
        assert_eq!(lives(&[0, 0, 100]).await, [0, 1, 3, 104]);
    }
}
