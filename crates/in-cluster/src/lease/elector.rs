use std::sync::PoisonError;

use bigfleet_net::shutdown::Shutdown;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, api::PostParams};
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    Leadership, Shared,
    record::{Record, Step, Watcher, held, released},
};
use crate::{Lane, Paced, refusal};

/// How a try ended.
enum Outcome {
    /// The lease is ours, as read back.
    Held(Box<Lease>),
    /// Another has it.
    Other,
    /// No answer that tells.
    Failed(kube::Error),
}

struct Term<'a> {
    shared: &'a Shared,
    paced: &'a Paced,
    watcher: Watcher,
    /// The lease as last written by us.
    lease: Option<Lease>,
    /// When the last successful renewal was begun.
    renewed: Option<Instant>,
}

pub(super) async fn run(shared: &Shared, paced: &Paced, shutdown: &Shutdown) {
    let mut term = Term { shared, paced, watcher: Watcher::default(), lease: None, renewed: None };
    loop {
        tokio::select! {
            () = shutdown.requested() => break,
            () = term.once() => {}
        }
        tokio::select! {
            () = shutdown.requested() => break,
            () = shared.annotated.notified(), if term.lease.is_some() => {}
            () = tokio::time::sleep(shared.settings.retry_period) => {}
        }
    }
    shared.stand(Leadership::Standby, None);
    if let Some(lease) = term.lease.take() {
        term.release(&lease).await;
    }
}

impl Term<'_> {
    async fn once(&mut self) {
        let settings = &self.shared.settings;
        let begun = Instant::now();
        let deadline = self.renewed.map(|renewed| renewed + settings.renew_deadline);
        // A renewal that hangs is given up when the deadline is there, and not before that.
        let patience = deadline
            .map_or(settings.renew_deadline, |deadline| deadline.saturating_duration_since(begun))
            .max(settings.retry_period);
        let outcome = timeout_at(begun + patience, self.attempt(begun)).await;
        match outcome {
            Ok(Outcome::Held(lease)) => {
                self.lease = Some(*lease);
                self.renewed = Some(begun);
                self.shared.stand(Leadership::Leading, Some(begun + settings.lease_duration));
            }
            Ok(Outcome::Other) => {
                self.lease = None;
                self.renewed = None;
                self.shared.annotations.lock().unwrap_or_else(PoisonError::into_inner).clear();
                self.shared.stand(Leadership::Standby, None);
            }
            Ok(Outcome::Failed(error)) => self.cannot(&error.to_string()),
            Err(_) => self.cannot("no answer in time"),
        }
    }

    fn cannot(&self, problem: &str) {
        let settings = &self.shared.settings;
        tracing::debug!(lease = settings.name, problem, "cannot look after the lease");
        let Some(renewed) = self.renewed else { return };
        if Instant::now() >= renewed + settings.renew_deadline {
            self.shared.stand(Leadership::Unsure, None);
        }
    }

    async fn attempt(&mut self, now: Instant) -> Outcome {
        if let Some(lease) = &self.lease {
            match self.write(Some(lease)).await {
                // Somebody wrote it meanwhile: read who.
                Err(error) if matches!(refusal::code(&error), Some(404 | 409)) => {}
                Ok(lease) => return Outcome::Held(lease.into()),
                Err(error) => return Outcome::Failed(error),
            }
        }
        let name = &self.shared.settings.name;
        let read = self.call(|leases| async move { leases.get_opt(name).await }).await;
        let read = match read {
            Ok(read) => read,
            Err(error) => return Outcome::Failed(error),
        };
        if let Some(read) = &read {
            let identity = &self.shared.settings.identity;
            if self.watcher.look(Record::of(read), identity, now) == Step::Leave {
                return Outcome::Other;
            }
        }
        match self.write(read.as_ref()).await {
            Ok(lease) => Outcome::Held(lease.into()),
            Err(error) => Outcome::Failed(error),
        }
    }

    /// Writes ourselves into the lease. The version read is the condition: of two who saw the
    /// same silence one is refused.
    async fn write(&self, read: Option<&Lease>) -> Result<Lease, kube::Error> {
        let settings = &self.shared.settings;
        let lease = {
            let annotations =
                self.shared.annotations.lock().unwrap_or_else(PoisonError::into_inner);
            held(settings, read, &annotations, Timestamp::now())
        };
        let params = PostParams::default();
        let (lease, params) = (&lease, &params);
        self.call(|leases| async move {
            match read {
                Some(_) => leases.replace(&settings.name, params, lease).await,
                None => leases.create(params, lease).await,
            }
        })
        .await
    }

    async fn release(&self, lease: &Lease) {
        let settings = &self.shared.settings;
        let lease = &released(lease, Timestamp::now());
        let params = &PostParams::default();
        let written =
            self.call(|leases| async move { leases.replace(&settings.name, params, lease).await });
        match timeout(settings.retry_period, written).await {
            Ok(Ok(_)) => tracing::info!(lease = settings.name, "lease given back"),
            // The next one waits for it to run out, as after a crash.
            Ok(Err(error)) => {
                tracing::warn!(lease = settings.name, %error, "lease not given back");
            }
            Err(_) => tracing::warn!(lease = settings.name, "lease not given back in time"),
        }
    }

    async fn call<T, Fut>(&self, call: impl FnOnce(Api<Lease>) -> Fut) -> Result<T, kube::Error>
    where
        Fut: Future<Output = Result<T, kube::Error>>,
    {
        let namespace = &self.shared.settings.namespace;
        self.paced.call(Lane::Lease, |client| call(Api::namespaced(client, namespace))).await
    }
}
