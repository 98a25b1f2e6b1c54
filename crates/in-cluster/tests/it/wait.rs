use std::time::Duration;

/// Waits for a condition; a minute of tokio's clock is long enough for all of them.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let looks = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(120), looks).await.is_ok(), "never: {what}");
}
