//! Reads of one cluster.

use std::{collections::HashMap, path::Path};

use bigfleet_crds::{
    AvailableCapacity, CapacityRequest, UpcomingNode, available_capacity_name, keys,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client, Config, Resource,
    api::ListParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde::de::DeserializeOwned;

use crate::{
    Error,
    needs::demand,
    picture::{Machines, Picture},
};

/// Objects in one answer of the API server.
const PAGE: u32 = 500;

/// Pods that no node was found for.
const UNPLACED: &str = "status.phase=Pending,spec.nodeName=";

/// A cluster that can be read.
pub(crate) struct Cluster {
    client: Client,
    /// What the kubeconfig calls it; nothing in a pod of its own.
    name: Option<String>,
    namespace: String,
}

impl Cluster {
    /// As kubectl would: the flag, then `$KUBECONFIG`, then the home directory, then the
    /// service account of a pod.
    pub(crate) async fn connect(
        kubeconfig: Option<&Path>,
        context: Option<String>,
        namespace: Option<&str>,
    ) -> Result<Self, Error> {
        let (name, config) = match kubeconfig {
            Some(path) => load(Kubeconfig::read_from(path)?, context).await?,
            None => match Kubeconfig::read() {
                Ok(found) => load(found, context).await?,
                Err(error) => (None, Config::incluster().map_err(|_| error)?),
            },
        };
        let namespace = namespace.unwrap_or(&config.default_namespace).to_owned();
        Ok(Self { client: Client::try_from(config).map_err(Error::Client)?, name, namespace })
    }

    /// The same cluster, another namespace.
    pub(crate) fn within(self, namespace: Option<String>) -> Self {
        Self { namespace: namespace.unwrap_or(self.namespace), ..self }
    }

    /// All there is to know of one pod.
    pub(crate) async fn picture(&self, name: &str) -> Result<Picture, Error> {
        let mut picture = self.glance(name).await?;
        if picture.request.is_none() {
            picture.request = self.request_by_owner(&picture.pod).await?;
        }
        if let Some(demand) = picture.request.as_ref().and_then(demand) {
            let all: Api<AvailableCapacity> = Api::all(self.client.clone());
            let name = available_capacity_name(&format!("available:{}", demand.need.fingerprint()));
            picture.available =
                all.get_opt(&name).await.map_err(Error::reading("availablecapacities"))?;
        }
        picture.upcoming = self.all::<UpcomingNode>("upcomingnodes").await?;
        Ok(picture)
    }

    /// One pod and its request: as much as a verdict needs, and little enough to be asked for
    /// every second.
    pub(crate) async fn glance(&self, name: &str) -> Result<Picture, Error> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let pod = pods.get_opt(name).await.map_err(Error::reading("pods"))?.ok_or_else(|| {
            Error::NoPod {
                pod: name.to_owned(),
                namespace: self.namespace.clone(),
                cluster: self.name.as_ref().map(|name| format!(" of {name}")).unwrap_or_default(),
            }
        })?;
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let of_pod = ListParams::default().labels(&format!("{}={uid}", keys::OWNED_BY_POD));
        let labelled = self.own_requests().list(&of_pod).await;
        let labelled = labelled.map_err(Error::reading("capacityrequests"))?;
        Ok(self.at(pod, labelled.items.into_iter().next()))
    }

    /// The pods that wait for a node, in one namespace or in all.
    pub(crate) async fn waiting(&self, namespace: Option<&str>) -> Result<Vec<Picture>, Error> {
        let pods: Api<Pod> = match namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        };
        let pods = pages(&pods, ListParams::default().fields(UNPLACED), "pods").await?;
        let mut requests: HashMap<String, CapacityRequest> = HashMap::new();
        for request in self.requests(namespace).await? {
            if let Some(uid) = pod_of(&request).map(str::to_owned) {
                requests.insert(uid, request);
            }
        }
        let picture = |pod: Pod| {
            let request = pod.metadata.uid.as_deref().and_then(|uid| requests.remove(uid));
            self.at(pod, request)
        };
        Ok(pods.into_iter().map(picture).collect())
    }

    fn at(&self, pod: Pod, request: Option<CapacityRequest>) -> Picture {
        Picture {
            now: Timestamp::now(),
            cluster: self.name.clone(),
            pod,
            request,
            upcoming: Vec::new(),
            available: None,
        }
    }

    /// A request that the pod owns and that does not bear the pod controller's label: another
    /// pipeline may have made it.
    async fn request_by_owner(&self, pod: &Pod) -> Result<Option<CapacityRequest>, Error> {
        let Some(uid) = pod.metadata.uid.as_deref() else { return Ok(None) };
        let all = pages(&self.own_requests(), ListParams::default(), "capacityrequests").await?;
        Ok(all.into_iter().find(|request| pod_of(request) == Some(uid)))
    }

    fn own_requests(&self) -> Api<CapacityRequest> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Machines and Nodes.
    pub(crate) async fn machines(&self) -> Result<Machines, Error> {
        let upcoming = self.all::<UpcomingNode>("upcomingnodes").await?;
        let nodes = self.all::<Node>("nodes").await?;
        Ok(Machines { now: Timestamp::now(), upcoming, nodes })
    }

    /// Requests of one namespace, or of all.
    pub(crate) async fn requests(
        &self,
        namespace: Option<&str>,
    ) -> Result<Vec<CapacityRequest>, Error> {
        let api = match namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        };
        pages(&api, ListParams::default(), "capacityrequests").await
    }

    async fn all<K>(&self, what: &'static str) -> Result<Vec<K>, Error>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
    {
        pages(&Api::all(self.client.clone()), ListParams::default(), what).await
    }
}

/// What a kubeconfig says of one of its clusters.
async fn load(
    kubeconfig: Kubeconfig,
    context: Option<String>,
) -> Result<(Option<String>, Config), Error> {
    let name = context.clone().or_else(|| kubeconfig.current_context.clone());
    let known: Vec<String> = kubeconfig.contexts.iter().map(|known| known.name.clone()).collect();
    if let Some(name) = context.as_ref().filter(|name| !known.contains(name)) {
        return Err(Error::NoContext { name: name.clone(), known: known.join(", ") });
    }
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    Ok((name, Config::from_custom_kubeconfig(kubeconfig, &options).await?))
}

/// The pod that a request was made for: by the pod controller's label, or by its owner, for
/// another pipeline may have made it.
fn pod_of(request: &CapacityRequest) -> Option<&str> {
    let label = request.metadata.labels.as_ref().and_then(|all| all.get(keys::OWNED_BY_POD));
    let owners = request.metadata.owner_references.as_deref().unwrap_or_default();
    let owner = owners.iter().find(|owner| owner.kind == "Pod").map(|owner| &owner.uid);
    label.or(owner).map(String::as_str)
}

async fn pages<K>(api: &Api<K>, params: ListParams, what: &'static str) -> Result<Vec<K>, Error>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let (mut all, mut params) = (Vec::new(), params.limit(PAGE));
    loop {
        let page = api.list(&params).await.map_err(Error::reading(what))?;
        all.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(all),
        }
    }
}
