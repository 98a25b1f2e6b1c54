//! Reads of one cluster.

use std::path::Path;

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

/// A cluster that can be read.
pub(crate) struct Cluster {
    client: Client,
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
        let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
        let config = match kubeconfig {
            Some(path) => {
                Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &options).await?
            }
            None => match Config::from_kubeconfig(&options).await {
                Ok(config) => config,
                Err(error) => Config::incluster().map_err(|_| error)?,
            },
        };
        let namespace = namespace.unwrap_or(&config.default_namespace).to_owned();
        Ok(Self { client: Client::try_from(config).map_err(Error::Client)?, namespace })
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
        let pod = pods
            .get_opt(name)
            .await
            .map_err(Error::reading("pods"))?
            .ok_or_else(|| Error::NoPod(name.to_owned(), self.namespace.clone()))?;
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let of_pod = ListParams::default().labels(&format!("{}={uid}", keys::OWNED_BY_POD));
        let labelled = self.own_requests().list(&of_pod).await;
        let labelled = labelled.map_err(Error::reading("capacityrequests"))?;
        let request = labelled.items.into_iter().next();
        Ok(Picture { now: Timestamp::now(), pod, request, upcoming: Vec::new(), available: None })
    }

    /// A request that the pod owns and that does not bear the pod controller's label: another
    /// pipeline may have made it.
    async fn request_by_owner(&self, pod: &Pod) -> Result<Option<CapacityRequest>, Error> {
        let Some(uid) = pod.metadata.uid.as_deref() else { return Ok(None) };
        let all = pages(&self.own_requests(), "capacityrequests").await?;
        let is_owned = |request: &CapacityRequest| {
            request.metadata.owner_references.iter().flatten().any(|owner| owner.uid == uid)
        };
        Ok(all.into_iter().find(is_owned))
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
        pages(&api, "capacityrequests").await
    }

    async fn all<K>(&self, what: &'static str) -> Result<Vec<K>, Error>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
    {
        pages(&Api::all(self.client.clone()), what).await
    }
}

async fn pages<K>(api: &Api<K>, what: &'static str) -> Result<Vec<K>, Error>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let (mut all, mut params) = (Vec::new(), ListParams::default().limit(PAGE));
    loop {
        let page = api.list(&params).await.map_err(Error::reading(what))?;
        all.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(all),
        }
    }
}
