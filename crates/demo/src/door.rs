//! The API servers in memory, for who reads clusters: the dashboard, `kubectl bigfleet`.
//!
//! Reading only, on loopback, by a token that is in the kubeconfig and nowhere else.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{Method, StatusCode, Uri, header::AUTHORIZATION, uri::PathAndQuery},
    response::Response,
};
use bigfleet_in_cluster::memory::Server;
use bigfleet_net::shutdown::Shutdown;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tower::Service as _;

use crate::{Error, guide, secret::secret};

/// Reading needs no body.
const LONGEST: usize = 64 * 1024;

struct Door {
    bearer: String,
    servers: BTreeMap<String, Server>,
}

/// Opens the door until the stop; says where the kubeconfig is. Its contexts are the clusters.
pub(crate) async fn open(
    directory: &Path,
    servers: BTreeMap<String, Server>,
    stop: Shutdown,
) -> Result<PathBuf, Error> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    let token = secret().map_err(std::io::Error::other)?;
    let entry = |name: &String| {
        (name.clone(), json!({"server": format!("{base}/{name}")}), json!({"token": token}))
    };
    let path = write(directory, &servers.keys().map(entry).collect::<Vec<_>>())?;
    let door = Arc::new(Door { bearer: format!("Bearer {token}"), servers });
    let app = Router::new().fallback(answer).with_state(door);
    tokio::spawn(async move {
        let until = async move { stop.requested().await };
        if let Err(error) = axum::serve(listener, app).with_graceful_shutdown(until).await {
            tracing::error!(%error, "the API servers are not to be read any more");
        }
    });
    Ok(path)
}

/// A kubeconfig of clusters: their names, where they are, and who calls.
pub(crate) fn write(
    directory: &Path,
    clusters: &[(String, Value, Value)],
) -> Result<PathBuf, Error> {
    let list = |part: &str, of: &dyn Fn(&(String, Value, Value)) -> Value| -> Vec<Value> {
        clusters.iter().map(|it| json!({"name": it.0, part: of(it)})).collect()
    };
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": clusters.first().map(|it| it.0.as_str()),
        "contexts": list("context", &|it| {
            json!({"cluster": it.0, "user": it.0, "namespace": crate::cluster::workload::NAMESPACE})
        }),
        "clusters": list("cluster", &|it| it.1.clone()),
        "users": list("user", &|it| it.2.clone()),
    });
    let path = directory.join("kubeconfig");
    std::fs::write(&path, format!("{config:#}\n")).map_err(Error::file(&path))?;
    Ok(path)
}

async fn answer(State(door): State<Arc<Door>>, request: Request) -> Response {
    let shown = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    if shown != Some(&door.bearer) {
        // kubectl itself sends no token where there is no TLS.
        let text = "use the demo's kubeconfig, with kubectl-bigfleet; \
                    `demo --kubernetes` has real API servers for kubectl";
        return refuse(StatusCode::UNAUTHORIZED, text);
    }
    if request.method() != Method::GET {
        return refuse(StatusCode::FORBIDDEN, "the demo's clusters are to be read only");
    }
    let (mut parts, body) = request.into_parts();
    let found = inside(&parts.uri).and_then(|(name, uri)| Some((door.servers.get(&name)?, uri)));
    let Some((server, uri)) = found else {
        return refuse(StatusCode::NOT_FOUND, "no such cluster");
    };
    parts.uri = uri;
    let Ok(bytes) = to_bytes(body, LONGEST).await else {
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, "reading needs no body");
    };
    let request = axum::http::Request::from_parts(parts, kube::client::Body::from(bytes));
    match server.clone().call(request).await {
        Ok(response) => response.map(Body::new),
        Err(error) => refuse(StatusCode::BAD_GATEWAY, &error.to_string()),
    }
}

/// The cluster that a path begins with, and what is asked of it.
fn inside(uri: &Uri) -> Option<(String, Uri)> {
    let whole = uri.path_and_query()?.as_str().strip_prefix('/')?;
    let (name, rest) = whole.split_once('/')?;
    let rest: PathAndQuery = format!("/{rest}").parse().ok()?;
    Some((name.to_owned(), rest.into()))
}

fn refuse(status: StatusCode, text: &str) -> Response {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": status.as_u16(), "message": text,
    });
    guide::answer(status, &body)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Node;
    use kube::{
        Api, Client, Config,
        config::{KubeConfigOptions, Kubeconfig},
    };

    use super::*;

    async fn client(path: &Path, context: &str) -> Client {
        let options = KubeConfigOptions { context: Some(context.to_owned()), ..Default::default() };
        let file = Kubeconfig::read_from(path).unwrap();
        let config = Config::from_custom_kubeconfig(file, &options).await.unwrap();
        Client::try_from(config).unwrap()
    }

    #[tokio::test]
    async fn clusters_are_read_by_their_context_and_not_written() {
        let directory = tempfile::tempdir().unwrap();
        let (one, other) = (Server::new(), Server::new());
        let node: Node = serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap();
        one.put(&node);
        let servers = BTreeMap::from([("one".to_owned(), one), ("other".to_owned(), other)]);
        let stop = Shutdown::new();
        let path = open(directory.path(), servers, stop.clone()).await.unwrap();
        let nodes = async |context: &str| {
            let nodes = Api::<Node>::all(client(&path, context).await);
            nodes.list(&Default::default()).await.unwrap().items.len()
        };
        assert_eq!((nodes("one").await, nodes("other").await), (1, 0));
        let api = Api::<Node>::all(client(&path, "one").await);
        let refused = api.delete("n", &Default::default()).await.unwrap_err();
        assert!(refused.to_string().contains("read only"), "{refused}");
        assert_eq!(nodes("one").await, 1);
        stop.request();
    }

    #[tokio::test]
    async fn without_the_token_nothing_is_told() {
        let servers = BTreeMap::from([("one".to_owned(), Server::new())]);
        let door = Arc::new(Door { bearer: "Bearer x".to_owned(), servers });
        let ask = async |bearer: &str, path: &str| {
            let request = Request::builder().uri(path).header(AUTHORIZATION, bearer);
            answer(State(door.clone()), request.body(Body::empty()).unwrap()).await.status()
        };
        assert_eq!(ask("Bearer x", "/one/api/v1/nodes").await, StatusCode::OK);
        assert_eq!(ask("Bearer y", "/one/api/v1/nodes").await, StatusCode::UNAUTHORIZED);
        assert_eq!(ask("Bearer x", "/two/api/v1/nodes").await, StatusCode::NOT_FOUND);
        assert_eq!(ask("Bearer x", "/").await, StatusCode::NOT_FOUND);
    }
}
