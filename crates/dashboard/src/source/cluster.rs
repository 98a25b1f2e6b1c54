//! The API server of one managed cluster, whom nobody here trusts: neither with this process's
//! memory nor with its threads.

use std::{fmt, sync::Arc};

use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use kube::{
    Client, Config, Resource,
    api::{ListParams, Request},
    client::{AuthError, Body},
    config::{ExecInteractiveMode, KubeConfigOptions, Kubeconfig},
};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::sync::{OnceCell, Semaphore};

use crate::api::{Refusal, Source};

/// MiB of one list; 20,000 requests are half of it.
const MOST: usize = 64;

/// Clusters whose credentials are fetched at once: each may run a program, which may hang and then
/// holds a thread for ever.
const AT_ONCE: usize = 16;

/// What says which clusters there are, and how many of them are let in at once.
pub(super) struct Doors {
    file: Kubeconfig,
    at_once: Arc<Semaphore>,
}

impl Doors {
    /// Those of a kubeconfig, with nobody at the keyboard: a program that asks for a password would
    /// wait for ever.
    pub(super) fn new(mut file: Kubeconfig) -> Self {
        let users = file.auth_infos.iter_mut().filter_map(|user| user.auth_info.as_mut());
        for exec in users.filter_map(|user| user.exec.as_mut()) {
            exec.interactive_mode = Some(ExecInteractiveMode::Never);
        }
        Self { file, at_once: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

/// One cluster.
pub(super) struct Cluster {
    id: String,
    client: OnceCell<Client>,
    /// Given up by whoever makes a client, and not before they are done: a program that hangs is
    /// not started again beside itself.
    turn: Arc<Semaphore>,
}

impl Cluster {
    /// Dials nobody yet.
    pub(super) fn new(id: &str) -> Self {
        let turn = Arc::new(Semaphore::new(1));
        Self { id: id.to_owned(), client: OnceCell::new(), turn }
    }

    /// Every object of a kind, from the API server's own cache; of each what `T` reads.
    pub(super) async fn list<K: Resource<DynamicType = ()>, T: DeserializeOwned>(
        &self,
        doors: &Arc<Doors>,
    ) -> Result<Vec<T>, Refusal> {
        let client = self.client.get_or_try_init(|| self.connect(doors)).await?;
        let request = Request::new(K::url_path(&(), None))
            .list(&ListParams::default().match_any())
            .map_err(|error| self.failed(error))?;
        let answer = client.send(request.map(Body::from)).await;
        let (head, body) = answer.map_err(|error| self.failed(error))?.into_parts();
        let body = Limited::new(body, MOST << 20).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                let kind = K::plural(&());
                return self.failed(format!("its list of {kind} is larger than {MOST} MiB"));
            }
            self.failed(error)
        })?;
        let body = body.to_bytes();
        if !head.status.is_success() {
            return Err(self.failed(format!("answered {}: {}", head.status, said(&body))));
        }
        let list: List<T> = serde_json::from_slice(&body).map_err(|error| self.failed(error))?;
        Ok(list.items)
    }

    /// On a thread of its own, for whoever fetches a token by running a program waits for it.
    async fn connect(&self, doors: &Arc<Doors>) -> Result<Client, Refusal> {
        let turn = self.turn.clone().try_acquire_owned().map_err(|_| {
            self.failed(
                "the program that fetches its credentials has not ended since it was last asked",
            )
        })?;
        let place = doors.at_once.clone().acquire_owned().await;
        let place = place.map_err(|error| self.failed(error))?;
        let (doors, context) = (doors.clone(), Some(self.id.clone()));
        let runtime = tokio::runtime::Handle::current();
        let made = tokio::task::spawn_blocking(move || {
            let _until_done = (turn, place);
            let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
            let config = Config::from_custom_kubeconfig(doors.file.clone(), &options);
            let config = runtime.block_on(config).map_err(|error| error.to_string())?;
            Client::try_from(config).map_err(|error| in_words(&error))
        });
        made.await.map_err(|error| self.failed(error))?.map_err(|problem| self.failed(problem))
    }

    fn failed(&self, error: impl fmt::Display) -> Refusal {
        Refusal::failed(Source::Kubeconfig, format!("{}: {error}", self.id))
    }
}

/// Why there is no client. Of a program that failed, what it said and not how it was run: its
/// environment may hold what no viewer may read.
fn in_words(error: &kube::Error) -> String {
    match error {
        kube::Error::Auth(AuthError::AuthExecRun { out, .. }) => format!(
            "the program that fetches its credentials failed with {}: {}",
            out.status,
            said(&out.stderr)
        ),
        error => error.to_string(),
    }
}

/// The message of an API server, or as much of what another said as can be shown.
fn said(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Status {
        message: String,
    }
    serde_json::from_slice(body).map_or_else(
        |_| String::from_utf8_lossy(&body[..body.len().min(300)]).trim().to_owned(),
        |status: Status| status.message.chars().take(1_000).collect(),
    )
}

#[derive(Deserialize)]
struct List<T> {
    #[serde(default = "Vec::new")]
    items: Vec<T>,
}
