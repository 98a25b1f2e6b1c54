//! Keeps a pool filled: one `bootstrap.kubernetes.io/token` Secret per token.

use std::{collections::BTreeMap, future::Future, pin::pin, sync::Arc, time::Duration};

use bigfleet_in_cluster::{Paced, budget::Lane, refusal};
use bigfleet_net::shutdown::Shutdown;
use futures_util::future::join_all;
use jiff::Timestamp;
use k8s_openapi::{api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::Api;

use super::{Plan, Pool, token::Token};

/// Where Kubernetes looks for such Secrets.
const NAMESPACE: &str = "kube-system";
const KIND: &str = "bootstrap.kubernetes.io/token";
/// kubeadm's group, whose rights its clusters bind already, and one of our own
/// for clusters that bind theirs.
const GROUPS: &str =
    "system:bootstrappers:kubeadm:default-node-token,system:bootstrappers:bigfleet";
/// Calls at once.
const AT_ONCE: usize = 8;
/// For deletions at the end.
const LAST_CALLS: Duration = Duration::from_secs(5);

/// Mints and deletes until the stop is asked for; then deletes what nobody has.
pub async fn run(pool: Arc<Pool>, paced: Paced, shutdown: Shutdown) {
    let minter = Minter { pool, paced };
    loop {
        let plan = minter.pool.lock().plan(minter.pool.now());
        if plan.mint == 0 && plan.delete.is_empty() {
            tokio::select! {
                () = shutdown.requested() => break,
                () = minter.rest(plan.next) => continue,
            }
        }
        let mut following = pin!(minter.follow(plan));
        tokio::select! {
            () = following.as_mut() => {}
            () = shutdown.requested() => {
                // A Secret whose creation nobody waits for would be nobody's to delete.
                let _ = tokio::time::timeout(LAST_CALLS, following).await;
                break;
            }
        }
    }
    let ids = minter.pool.lock().abandon(minter.pool.now());
    let last: Vec<_> = ids.into_iter().map(|id| minter.delete(id)).collect();
    if tokio::time::timeout(LAST_CALLS, in_batches(last)).await.is_err() {
        tracing::info!("left unused bootstrap tokens behind; they expire by themselves");
    }
}

struct Minter {
    pool: Arc<Pool>,
    paced: Paced,
}

impl Minter {
    async fn follow(&self, plan: Plan) {
        let mint = (0..plan.mint).map(|_| self.mint()).collect();
        let delete = plan.delete.into_iter().map(|id| self.delete(id)).collect();
        tokio::join!(in_batches(mint), in_batches(delete));
    }

    async fn rest(&self, next: Option<Duration>) {
        let changed = self.pool.changed.notified();
        match next {
            Some(next) => {
                let _ = tokio::time::timeout_at(self.pool.started + next, changed).await;
            }
            None => changed.await,
        }
    }

    async fn mint(&self) {
        let now = self.pool.now();
        let token = match Token::random(now) {
            Ok(token) => token,
            Err(error) => {
                tracing::error!(%error, "cannot make a bootstrap token");
                self.pool.lock().failed(now, None);
                return;
            }
        };
        let lifetime = self.pool.lock().lifetime();
        let secret = secret(&token, Timestamp::now(), lifetime);
        let created = self.paced.call(Lane::NodeState, |client| async move {
            Api::<Secret>::namespaced(client, NAMESPACE)
                .create(&Default::default(), &secret)
                .await
                .map(drop)
        });
        match created.await {
            Ok(()) => self.pool.lock().minted(token),
            Err(error) => {
                tracing::warn!(%error, "cannot create a bootstrap token's Secret in {NAMESPACE}");
                // Without an answer it may stand; a refusal means that it does not,
                // or that it is somebody else's.
                let leftover = refusal::code(&error).is_none().then_some(&token);
                self.pool.lock().failed(self.pool.now(), leftover);
            }
        }
    }

    async fn delete(&self, id: Arc<str>) {
        let name = name(&id);
        let deleted = self.paced.call(Lane::PodStatus, |client| async move {
            Api::<Secret>::namespaced(client, NAMESPACE)
                .delete(&name, &Default::default())
                .await
                .map(drop)
        });
        match deleted.await {
            Ok(()) => {}
            // The cluster's own cleaner was faster.
            Err(error) if refusal::code(&error) == Some(404) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot delete a bootstrap token's Secret in {NAMESPACE}");
                self.pool.lock().not_deleted(self.pool.now(), id);
            }
        }
    }
}

async fn in_batches<F: Future<Output = ()>>(calls: Vec<F>) {
    let mut calls = calls.into_iter();
    loop {
        let batch: Vec<F> = calls.by_ref().take(AT_ONCE).collect();
        if batch.is_empty() {
            return;
        }
        join_all(batch).await;
    }
}

fn name(id: &str) -> String {
    format!("bootstrap-token-{id}")
}

fn secret(token: &Token, now: Timestamp, lifetime: Duration) -> Secret {
    let seconds = i64::try_from(lifetime.as_secs()).unwrap_or(i64::MAX);
    let expires = now.as_second().saturating_add(seconds);
    let expiration = Timestamp::from_second(expires).unwrap_or(Timestamp::MAX).to_string();
    let data = [
        ("token-id", token.id().as_ref()),
        ("token-secret", token.secret()),
        ("expiration", &expiration),
        ("usage-bootstrap-authentication", "true"),
        ("usage-bootstrap-signing", "true"),
        ("auth-extra-groups", GROUPS),
        ("description", "minted by bigfleet-operator for one machine"),
    ];
    let text = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    let label = ("app.kubernetes.io/managed-by", "bigfleet-operator");
    Secret {
        metadata: ObjectMeta {
            name: Some(name(token.id())),
            namespace: Some(NAMESPACE.into()),
            labels: Some(BTreeMap::from([text(label)])),
            ..ObjectMeta::default()
        },
        type_: Some(KIND.into()),
        string_data: Some(data.into_iter().map(text).collect()),
        ..Secret::default()
    }
}
