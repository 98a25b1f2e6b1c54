//! An API server in memory, for tests and for load that no etcd should bear.
//!
//! It stands behind a [`kube::Client`] as a service: lists in pages, watches with versions that
//! expire, merge patches, the status as a door of its own, deletion with preconditions and
//! finalizers, evictions that a budget refuses. [`Fault`]s make it slow, busy or absent. It
//! collects no garbage and knows no schemas: what the owner's deletion takes along and what a
//! CRD forbids is the test's to arrange.
//!
//! ```
//! use bigfleet_in_cluster::memory::{Fault, Server, Verb};
//! use k8s_openapi::api::core::v1::Node;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let server = Server::new();
//! server.inject(Fault::answer(429).retry_after(1).on(Verb::Patch, "nodes").times(2));
//! let nodes = kube::Api::<Node>::all(server.client());
//! assert!(nodes.list(&Default::default()).await.unwrap().items.is_empty());
//! # }
//! ```

mod answer;
mod collection;
mod fault;
mod objects;
mod route;
mod selector;
mod watch;
mod world;
mod write;

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use http::{Method, Request, Response, header};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;
use tower::{BoxError, Service};

use answer::{Answer, AnswerBody};
use fault::Fate;
use route::Route;
use world::World;

pub use fault::{Fault, Unreachable, Verb};

/// What becomes of an eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eviction {
    /// The pod is deleted.
    Allow,
    /// 429: a disruption budget forbids it for now.
    Budget,
    /// Another status code.
    Refuse(u16),
}

/// A call the server got.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// What it does.
    pub verb: Verb,
    /// To which resource, `pods` for example.
    pub plural: String,
    /// To which part of an object.
    pub subresource: Option<String>,
    /// Where.
    pub namespace: Option<String>,
    /// To which object.
    pub name: Option<String>,
    /// What it carries; null when it is not JSON.
    pub body: Value,
    /// The status code it was answered with; 0 for none.
    pub code: u16,
}

/// An API server in memory. Clones share one state.
#[derive(Clone)]
pub struct Server {
    world: Arc<Mutex<World>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Server").field("version", &self.lock().version()).finish()
    }
}

impl Server {
    /// A client of this server.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(self, request: Request<Body>) -> Result<Response<AnswerBody>, BoxError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let uri = &parts.uri;
        let Some(route) = Route::parse(uri.path(), uri.query().unwrap_or_default()) else {
            return Ok(elsewhere(uri.path()).into_response());
        };
        let verb = verb(&parts.method, &route);
        let fate = {
            let mut world = self.lock();
            let fate = if world.away {
                Fate { answer: Some(Err(Unreachable)), ..Fate::default() }
            } else {
                fault::fate(&mut world.faults, verb, &route)
            };
            world.count(verb, &route);
            fate
        };
        if !fate.latency.is_zero() {
            tokio::time::sleep(fate.latency).await;
        }
        let answer = match fate.answer {
            Some(Err(unreachable)) => {
                self.lock().record(verb, &route, &body, 0);
                return Err(unreachable.into());
            }
            Some(Ok(answer)) => Err(answer),
            None if verb == Verb::Watch => match watch::watch(&self, route.clone()) {
                Ok(response) => {
                    self.lock().record(verb, &route, &body, 200);
                    return Ok(response);
                }
                Err(answer) => Err(answer),
            },
            None => {
                let kind = parts.headers.get(header::CONTENT_TYPE);
                let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
                self.lock().act(verb, &route, &body, kind)
            }
        };
        let (Ok(answer) | Err(answer)) = answer;
        self.lock().record(verb, &route, &body, answer.code);
        Ok(answer.into_response())
    }
}

impl World {
    fn act(
        &mut self,
        verb: Verb,
        route: &Route,
        body: &[u8],
        kind: &str,
    ) -> Result<Answer, Answer> {
        match verb {
            Verb::Get => Ok(Answer::object(200, self.object(route)?.to_string())),
            Verb::List | Verb::Watch => self.list(route),
            Verb::Create => self.create(route, body),
            Verb::Update => self.update(route, body),
            Verb::Patch => self.patch(route, body, kind),
            Verb::Delete | Verb::DeleteCollection => self.delete(route, body),
        }
    }

    fn count(&mut self, verb: Verb, route: &Route) {
        *self.counts.entry((verb, route.plural.clone())).or_default() += 1;
    }

    fn record(&mut self, verb: Verb, route: &Route, body: &[u8], code: u16) {
        let Some(calls) = &mut self.calls else { return };
        calls.push(Call {
            verb,
            plural: route.plural.clone(),
            subresource: route.subresource.clone(),
            namespace: route.namespace.clone(),
            name: route.name.clone(),
            body: serde_json::from_slice(body).unwrap_or_default(),
            code,
        });
    }
}

fn verb(method: &Method, route: &Route) -> Verb {
    match *method {
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE if route.name.is_some() => Verb::Delete,
        Method::DELETE => Verb::DeleteCollection,
        _ if route.name.is_some() => Verb::Get,
        _ if matches!(route.param("watch"), Some("true" | "1")) => Verb::Watch,
        _ => Verb::List,
    }
}

fn elsewhere(path: &str) -> Answer {
    match path {
        "/version" => Answer::object(200, r#"{"major":"1","minor":"36","gitVersion":"v1.36.0"}"#),
        "/healthz" | "/livez" | "/readyz" => Answer::object(200, "ok"),
        _ => Answer::object(404, "404 page not found\n"),
    }
}

impl Service<Request<Body>> for Server {
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}
