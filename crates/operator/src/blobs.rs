//! Bootstrap blobs in the process: the flags, the tokens' minter, the files' watcher.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use bigfleet_in_cluster::Paced;
use bigfleet_net::shutdown::Shutdown;
use bigfleet_wire::v1alpha1::{BootstrapBlobResponse, BootstrapRequest};

use crate::{
    bootstrap::{
        Error, JoinSettings, Observer, Outcome, Reload, Renderer, Settings,
        tokens::{self, Pool},
    },
    flags::{BootstrapFlags, OperatorFlags},
    metrics::{Metrics, ReloadOutcome, RenderOutcome},
    session::{Lead, Render},
};

/// Where a pod finds the CA bundle of its API server.
const SERVICE_ACCOUNT_CA: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

/// What makes bootstrap blobs.
#[derive(Clone)]
pub struct Blobs {
    renderer: Arc<Renderer>,
    pool: Option<Arc<Pool>>,
}

impl Blobs {
    /// As the flags say; refuses a bad template.
    pub fn open(flags: &OperatorFlags, metrics: &Arc<Metrics>) -> Result<Self, Error> {
        let bootstrap = &flags.bootstrap;
        let size = bootstrap.bootstrap_tokens;
        let pool = (size > 0).then(|| Arc::new(Pool::new(size, bootstrap.bootstrap_ttl)));
        let settings = Settings {
            cluster_id: flags.cluster_id.clone(),
            template_file: given(&bootstrap.bootstrap_template_file),
            ttl: bootstrap.bootstrap_ttl,
            join: pool.clone().map(|pool| JoinSettings {
                api_server: bootstrap.bootstrap_api_server.clone(),
                ca_file: ca_file(bootstrap),
                pool,
            }),
        };
        Ok(Self { renderer: Arc::new(Renderer::open(settings, metrics.clone())?), pool })
    }

    /// Follows the files, and mints tokens while we lead, until the stop is asked for.
    pub async fn run(self, mut lead: Lead, paced: Paced, shutdown: Shutdown) {
        let watching = self.renderer.clone().watch(shutdown.clone());
        let minting = async {
            let Some(pool) = self.pool else { return };
            while !shutdown.is_requested() {
                tokio::select! {
                    () = shutdown.requested() => return,
                    () = lead.may_dial() => {}
                }
                let over = Shutdown::new();
                let term = async {
                    tokio::select! {
                        () = shutdown.requested() => {}
                        () = lead.superseded() => {}
                    }
                    over.request();
                };
                let minted = tokens::mint::run(pool.clone(), paced.clone(), over.clone());
                tokio::join!(minted, term);
            }
        };
        tokio::join!(watching, minting);
    }
}

fn ca_file(flags: &BootstrapFlags) -> PathBuf {
    given(&flags.bootstrap_ca_file).unwrap_or_else(|| PathBuf::from(SERVICE_ACCOUNT_CA))
}

fn given(path: &Path) -> Option<PathBuf> {
    (!path.as_os_str().is_empty()).then(|| path.to_owned())
}

impl Render for Blobs {
    fn render(&self, request: &BootstrapRequest) -> BootstrapBlobResponse {
        self.renderer.render(request)
    }
}

impl Observer for Metrics {
    fn rendered(&self, outcome: Outcome) {
        self.bootstrap_render(match outcome {
            Outcome::Success => RenderOutcome::Success,
            Outcome::Error => RenderOutcome::Error,
        });
    }

    fn reloaded(&self, reload: Reload) {
        self.bootstrap_reload(match reload {
            Reload::Taken => ReloadOutcome::Success,
            Reload::Refused => ReloadOutcome::Error,
        });
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_net::flags::try_parse_from;

    use super::*;

    #[test]
    fn the_ca_bundle_is_the_service_accounts_unless_another_is_named() {
        let must = ["bigfleet-operator", "--cluster-id=c", "--shard-addr=shard-0:7780"];
        for (more, expected) in
            [("--qps=1", SERVICE_ACCOUNT_CA), ("--bootstrap-ca-file=/etc/ca.crt", "/etc/ca.crt")]
        {
            let flags: OperatorFlags = try_parse_from(must.iter().chain([&more]).copied()).unwrap();
            assert_eq!(ca_file(&flags.bootstrap), Path::new(expected));
        }
    }
}
