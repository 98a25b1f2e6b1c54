//! A panic ends its call and nothing else.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
};

use prometheus_client::metrics::counter::Counter;

use crate::error::Error;

/// Runs a handler; its panic is counted and answered with INTERNAL.
pub(super) async fn guarded<T>(
    panics: &Counter,
    call: impl Future<Output = Result<T, Error>> + Send,
) -> Result<T, Error> {
    let mut call = pin!(call);
    std::future::poll_fn(|context| {
        // The call is not polled again after a panic, so nobody sees it broken.
        let polled = catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context)));
        polled.unwrap_or_else(|_| {
            panics.inc();
            tracing::error!("a handler panicked");
            Poll::Ready(Err(Error::Internal("a fault in this provider; see its log".to_owned())))
        })
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_counted_and_answered() {
        let panics = Counter::default();
        assert_eq!(guarded(&panics, async { Ok(1) }).await, Ok(1));
        let broken = guarded::<()>(&panics, async { panic!("on purpose") }).await;
        assert!(matches!(broken, Err(Error::Internal(_))), "{broken:?}");
        assert_eq!(panics.get(), 1);
    }
}
