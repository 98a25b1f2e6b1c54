//! The orderly stop.

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    task::JoinError,
};
use tokio_util::sync::CancellationToken;

use crate::Error;

/// Why a task of a `JoinSet` ended that should have outlived the process.
#[must_use]
pub fn why_ended(ended: Option<Result<Result<(), Error>, JoinError>>) -> String {
    match ended {
        Some(Ok(Ok(()))) | None => "without a word".to_owned(),
        Some(Ok(Err(error))) => error.to_string(),
        Some(Err(error)) => error.to_string(),
    }
}

/// Tells every part of a process to stop. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    token: CancellationToken,
}

impl Shutdown {
    /// Not yet requested, and tied to no signal.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requested by the first SIGINT or SIGTERM. The second ends the process
    /// at once, for a stop that hangs.
    pub fn on_signal() -> Result<Self, Error> {
        let mut signals = Signals {
            interrupt: signal(SignalKind::interrupt()).map_err(Error::Signal)?,
            terminate: signal(SignalKind::terminate()).map_err(Error::Signal)?,
        };
        let shutdown = Self::new();
        let requested = shutdown.clone();
        tokio::spawn(async move {
            let name = signals.next().await;
            tracing::info!(signal = name, "stopping; a second signal exits at once");
            requested.request();
            signals.next().await;
            std::process::exit(1);
        });
        Ok(shutdown)
    }

    /// Asks for the stop.
    pub fn request(&self) {
        self.token.cancel();
    }

    /// Whether the stop was asked for.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Returns when the stop is asked for.
    pub async fn requested(&self) {
        self.token.cancelled().await;
    }

    /// The token underneath, to derive children from.
    #[must_use]
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}
