//! `grpc.health.v1.Health` and reflection, open to every peer.
//!
//! Health is our own implementation over [`Readiness`] so that it can never
//! lag behind `/readyz`.

use std::{pin::Pin, sync::Arc};

use tokio::sync::mpsc;
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tonic::{Request, Response, Status, server::NamedService, service::RoutesBuilder};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse,
    health_check_response::ServingStatus,
    health_server::{Health, HealthServer},
};

use crate::{Error, peer::Peer, readiness::Readiness};

/// Answers for the process (`""`) and for its services.
pub(super) struct HealthService {
    readiness: Readiness,
    names: Arc<[&'static str]>,
}

impl HealthService {
    pub(super) fn server(readiness: Readiness, names: Vec<&'static str>) -> HealthServer<Self> {
        HealthServer::new(Self { readiness, names: names.into() })
    }
}

fn status(readiness: &Readiness, names: &[&str], service: &str) -> ServingStatus {
    match service {
        // Not even a stop or a lost quorum: a restart would not mend either.
        "" => ServingStatus::Serving,
        name if !names.contains(&name) => ServingStatus::ServiceUnknown,
        _ if readiness.is_ready() => ServingStatus::Serving,
        _ => ServingStatus::NotServing,
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

#[tonic::async_trait]
impl Health for HealthService {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let service = &request.get_ref().service;
        match status(&self.readiness, &self.names, service) {
            ServingStatus::ServiceUnknown => {
                Err(Status::not_found(format!("service {service:?} is not served here")))
            }
            known => Ok(Response::new(response(known))),
        }
    }

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let closing = Peer::of(&request).map(|peer| peer.closing().clone()).unwrap_or_default();
        let service = request.into_inner().service;
        let (readiness, names) = (self.readiness.clone(), self.names.clone());
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut changes = readiness.subscribe();
            let mut last = None;
            loop {
                let now = status(&readiness, &names, &service);
                if last != Some(now) && sender.send(Ok(response(now))).await.is_err() {
                    return;
                }
                last = Some(now);
                tokio::select! {
                    changed = changes.changed() => if changed.is_err() { return },
                    () = sender.closed() => return,
                    // A watch must not keep a stopping server waiting.
                    () = closing.cancelled() => return,
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }
}

/// The two versions of the reflection protocol that tools speak.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reflection {
    V1,
    V1Alpha,
}

impl Reflection {
    /// Lists `names` and health, not every service that the protos know.
    pub(super) fn add_to(self, routes: &mut RoutesBuilder, names: &[&str]) -> Result<(), Error> {
        let failed = |error: tonic_reflection::server::Error| Error::Reflection(error.to_string());
        let builder = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(bigfleet_wire::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .with_service_name(<HealthServer<HealthService> as NamedService>::NAME);
        let builder = names.iter().fold(builder, |builder, name| builder.with_service_name(*name));
        match self {
            Self::V1 => routes.add_service(builder.build_v1().map_err(failed)?),
            Self::V1Alpha => routes.add_service(builder.build_v1alpha().map_err(failed)?),
        };
        Ok(())
    }
}
