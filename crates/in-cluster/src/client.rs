//! The client of the API server.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use http::{HeaderName, HeaderValue};
use kube::{
    Client, Config,
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::{Error, refusal::RetryAfterLayer};

/// How long a connection may take to come up.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Connects by the kubeconfig at an explicit path, else by `$KUBECONFIG`, else as the pod's
/// service account. An empty path is none. `agent` is the `User-Agent` the audit log shows.
///
/// Nothing is dialled yet. The client retries nothing by itself: whoever calls knows whether a
/// repetition still makes sense, and [`crate::Paced`] waits when the server asks for it.
pub async fn connect(kubeconfig: Option<&Path>, agent: &str) -> Result<Client, Error> {
    let mut config = match path_of(kubeconfig, std::env::var_os("KUBECONFIG").map(PathBuf::from)) {
        Some(path) => from_file(&path).await?,
        None => Config::incluster().map_err(|error| Error::NotInCluster(error.to_string()))?,
    };
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_WITHIN);
    // A watch is silent for as long as nothing changes; calls are bounded by `Paced`.
    config.read_timeout = None;
    if let Ok(agent) = HeaderValue::from_str(agent) {
        config.headers.push((HeaderName::from_static("user-agent"), agent));
    }
    let builder = ClientBuilder::try_from(config).map_err(|error| Error::Client(error.into()))?;
    Ok(builder.with_layer(&RetryAfterLayer).build())
}

fn path_of(flag: Option<&Path>, variable: Option<PathBuf>) -> Option<PathBuf> {
    flag.map(Path::to_owned)
        .filter(|path| !path.as_os_str().is_empty())
        .or_else(|| variable.filter(|path| !path.as_os_str().is_empty()))
}

async fn from_file(path: &Path) -> Result<Config, Error> {
    let refuse = |problem: String| Error::Kubeconfig { path: path.to_owned(), problem };
    let file = Kubeconfig::read_from(path).map_err(|error| refuse(error.to_string()))?;
    Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .map_err(|error| refuse(error.to_string()))
}

/// The namespace this process runs in: `$POD_NAMESPACE`, else that of the client.
#[must_use]
pub fn own_namespace(client: &Client) -> String {
    std::env::var("POD_NAMESPACE")
        .ok()
        .filter(|namespace| !namespace.is_empty())
        .unwrap_or_else(|| client.default_namespace().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_wins_over_the_environment_and_empty_is_none() {
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(path_of(Some(Path::new("/a")), path("/b")), path("/a"));
        assert_eq!(path_of(Some(Path::new("")), path("/b")), path("/b"));
        assert_eq!(path_of(None, path("")), None);
    }

    #[tokio::test]
    async fn an_unreadable_kubeconfig_names_the_file() {
        let error = connect(Some(Path::new("/nowhere/config")), "test").await.err().unwrap();
        assert!(error.to_string().starts_with("kubeconfig /nowhere/config: "), "{error}");
    }
}
