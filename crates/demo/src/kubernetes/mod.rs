//! `--kubernetes`: real API servers with a stock scheduler, where the binaries exist. Nodes and
//! what runs on them stay simulated.

mod assets;
mod flags;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

pub(crate) use assets::Assets;
use bigfleet_crds::{available_capacity_crd, capacity_request_crd, upcoming_node_crd};
use bigfleet_in_cluster::client;
use flags::Place;
use k8s_openapi::{
    api::{core::v1::Namespace, scheduling::v1::PriorityClass},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{
    Error,
    cluster::{SYSTEM, workload::Class, workload::NAMESPACE},
    door,
    part::Part,
    pki::Pki,
    ports,
};

/// A server is ready some seconds after its start, on a busy machine after minutes.
const PATIENCE: Duration = Duration::from_secs(180);
const LOOK: Duration = Duration::from_millis(100);

/// Real control planes at work.
pub(crate) struct Planes {
    /// In the order of the names.
    pub(crate) clients: Vec<Client>,
    pub(crate) kubeconfig: PathBuf,
    /// Schedulers, servers and what they keep their objects in, in the order of their end.
    pub(crate) parts: Vec<Part>,
}

/// Starts a server and a scheduler for each name, over one etcd, and waits until they serve the
/// kinds of BigFleet.
pub(crate) async fn start(
    assets: &Assets,
    root: &Path,
    pki: &Pki,
    names: &[String],
) -> Result<Planes, Error> {
    let folder = root.join("kubernetes");
    std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
    let [etcd, a, b, c]: [String; 4] = ports::free()?;
    let accounts = pki.accounts()?;
    let serving = pki.issue("kubernetes")?;
    let admin = pki.issue_member("admin", "system:masters")?;
    let keeper = Part::foreign("etcd", &assets.etcd, flags::etcd(&folder, &etcd), root);
    keeper.start().await?;
    let (mut servers, mut places) = (Vec::new(), Vec::new());
    for (name, addr) in names.iter().zip([a, b, c]) {
        let place = Place { folder: folder.join(name), etcd: etcd.clone(), addr };
        std::fs::create_dir_all(&place.folder).map_err(Error::file(&place.folder))?;
        let args = flags::apiserver(name, &place, &serving, &accounts);
        let id = format!("kube-apiserver-{name}");
        servers.push(Part::foreign(&id, &assets.apiserver, args, root));
        places.push(place);
    }
    for server in &servers {
        server.start().await?;
    }
    let [cert, key, ca] = admin.paths();
    let user = json!({"client-certificate": cert, "client-key": key});
    let entry = |(name, place): (&String, &Place)| {
        let server = format!("https://{}", place.addr);
        let cluster = json!({"server": server, "certificate-authority": ca});
        (name.clone(), cluster, user.clone())
    };
    let entries: Vec<_> = names.iter().zip(&places).map(entry).collect();
    let mut clients = Vec::new();
    let mut parts = Vec::new();
    for (at, place) in places.iter().enumerate() {
        let own = door::write(&place.folder, &entries[at..=at])?;
        let client = client::connect(Some(&own), "bigfleet-demo")
            .await
            .map_err(|error| Error::Kubernetes(error.to_string()))?;
        ready(&client, &servers[at]).await?;
        furnish(&client).await.map_err(|error| Error::Kubernetes(error.to_string()))?;
        clients.push(client);
        let config = flags::scheduler_config(&place.folder, &own)?;
        let id = format!("kube-scheduler-{}", names[at]);
        let args = vec![format!("--config={}", config.display()), "--secure-port=0".to_owned()];
        let scheduler = Part::foreign(&id, &assets.scheduler, args, root);
        scheduler.start().await?;
        parts.push(scheduler);
    }
    parts.extend(servers);
    parts.push(keeper);
    Ok(Planes { clients, kubeconfig: door::write(root, &entries)?, parts })
}

async fn ready(client: &Client, server: &Part) -> Result<(), Error> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let request = axum::http::Request::get("/readyz").body(Vec::new());
        let request = request.map_err(|error| Error::Kubernetes(error.to_string()))?;
        let missing = match client.request_text(request).await {
            Ok(_) => return Ok(()),
            Err(error) => format!("{}: {error}", server.id),
        };
        if let Some(error) = server.died().await {
            return Err(error);
        }
        if Instant::now() > deadline {
            return Err(Error::NotReady { seconds: PATIENCE.as_secs(), missing });
        }
        sleep(LOOK).await;
    }
}

/// Kinds, namespaces and classes that the demo's pods and BigFleet's parts need.
async fn furnish(client: &Client) -> Result<(), kube::Error> {
    for name in [NAMESPACE, SYSTEM] {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        apply::<Namespace>(client, name, &object).await?;
    }
    for class in Class::ALL {
        let object = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": class.name()}, "value": class.priority(),
        });
        apply::<PriorityClass>(client, class.name(), &object).await?;
    }
    let kinds = [capacity_request_crd(), upcoming_node_crd(), available_capacity_crd()];
    for kind in &kinds {
        let name = kind.metadata.name.as_deref().unwrap_or_default();
        apply::<CustomResourceDefinition>(client, name, kind).await?;
        until_served(client, name).await?;
    }
    Ok(())
}

async fn apply<K>(
    client: &Client,
    name: &str,
    object: &(impl Serialize + std::fmt::Debug + Sync),
) -> Result<(), kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
{
    let params = PatchParams::apply("bigfleet-demo").force();
    Api::<K>::all(client.clone()).patch(name, &params, &Patch::Apply(object)).await.map(drop)
}

async fn until_served(client: &Client, name: &str) -> Result<(), kube::Error> {
    let kinds = Api::<CustomResourceDefinition>::all(client.clone());
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        let conditions = kinds.get(name).await?.status.and_then(|status| status.conditions);
        let mut conditions = conditions.iter().flatten();
        if conditions.any(|it| it.type_ == "Established" && it.status == "True") {
            break;
        }
        sleep(LOOK).await;
    }
    Ok(())
}
