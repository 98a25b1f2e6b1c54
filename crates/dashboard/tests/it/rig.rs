//! A dashboard over stubs of all sources.

use std::{net::SocketAddr, time::Duration};

use axum::{Router, body::Body};
use bigfleet_dashboard::{Config, Dashboard};
use bigfleet_net::tls::Security;
use bigfleet_scripted::coordinator::{Answer, Coordinator};
use bigfleet_wire::v1alpha1::{
    DomainAssignment, ListDomainAssignmentsResponse, ListProvidersResponse, ListQuotasResponse,
    ListShardReportsResponse, ListShardsResponse, NodeSelectorRequirement, ProviderEntry,
    QuotaAllocation, RaftStatusResponse, Resources, ShardRegistryEntry, ShardReportSnapshot,
    ShardSummary, Shortfall,
};
use http::{Request, StatusCode, header::CONTENT_TYPE};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::{kube::Kube, prometheus::Prometheus, shard::Shard};

/// Nothing here takes that long; what does has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How a stub behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Good,
    Failing,
    Hanging,
}

/// Stubs of all sources.
pub(crate) struct Stubs {
    pub(crate) prometheus: Prometheus,
    pub(crate) coordinator: Coordinator,
    pub(crate) shard: Shard,
    pub(crate) kube: Kube,
}

impl Stubs {
    pub(crate) async fn start() -> Self {
        let shard = Shard::start().await;
        let coordinator = Coordinator::start(&Security::Plaintext).await.unwrap();
        lead(&coordinator, &[("shard-0", &shard.addr.to_string())]);
        Self {
            prometheus: Prometheus::start().await,
            coordinator,
            shard,
            kube: Kube::start().await,
        }
    }

    pub(crate) fn set(&self, mood: Mood) {
        self.prometheus.set(mood);
        self.shard.set(mood);
        self.kube.set(mood);
        self.coordinator.always(match mood {
            Mood::Good => Answer::Report,
            Mood::Failing => Answer::Refuse(tonic::Code::Unavailable, "no quorum".to_owned()),
            Mood::Hanging => Answer::Never,
        });
    }

    pub(crate) fn config(&self) -> Config {
        Config {
            prometheus_url: Some(format!("http://{}", self.prometheus.addr)),
            coordinator: vec![self.coordinator.addr().to_owned()],
            kubeconfig: Some(self.kube.kubeconfig()),
            ..loopback()
        }
    }
}

/// A dashboard without sources.
pub(crate) fn loopback() -> Config {
    Config { listen: "127.0.0.1:0".parse().unwrap(), ..Config::default() }
}

pub(crate) const SECOND: i64 = 1_000_000_000;

/// Tells a coordinator to lead these shards.
pub(crate) fn lead(coordinator: &Coordinator, shards: &[(&str, &str)]) {
    let entry = |(id, address): &(&str, &str)| ShardRegistryEntry {
        shard_id: (*id).to_owned(),
        address: (*address).to_owned(),
        registered_at_unix_ns: 1_700_000_000 * SECOND,
        last_heartbeat_unix_ns: 1_700_000_100 * SECOND,
    };
    coordinator
        .reply(ListShardsResponse { shards: shards.iter().map(entry).collect(), leading_ms: 0 });
    coordinator.reply(ListDomainAssignmentsResponse {
        assignments: vec![DomainAssignment {
            topology_key: "topology.kubernetes.io/zone".to_owned(),
            topology_value: "a".to_owned(),
            shard_id: "shard-0".to_owned(),
        }],
        next_page_token: String::new(),
    });
    coordinator.reply(ListQuotasResponse {
        allocations: vec![QuotaAllocation {
            provider: "ec2".to_owned(),
            region: "eu".to_owned(),
            per_shard: [("shard-0".to_owned(), 7)].into(),
        }],
    });
    coordinator.reply(ListProvidersResponse {
        providers: vec![ProviderEntry { name: "ec2".to_owned(), ..Default::default() }],
    });
    coordinator.reply(ListShardReportsResponse {
        reports: vec![ShardReportSnapshot {
            shard_id: "shard-0".to_owned(),
            cycle: 7,
            received_at_unix_ns: 1_700_000_100 * SECOND,
            summary: Some(ShardSummary { total_machines: 3, ..Default::default() }),
            shortfalls: vec![shortfall()],
        }],
    });
    coordinator.reply(RaftStatusResponse {
        node_id: "node-1".to_owned(),
        phase: 2,
        role: "leader".to_owned(),
        term: 7,
        leader_id: "node-1".to_owned(),
        commit_index: 40,
        applied_index: 38,
        voters: vec!["node-1".to_owned()],
        ..Default::default()
    });
}

/// A shortfall of the team that has `prod-b`.
fn shortfall() -> Shortfall {
    let vector =
        || Resources { resources: [("team-b.example/gpu".to_owned(), "8".to_owned())].into() };
    Shortfall {
        priority: 100,
        age_cycles: 6,
        deficit: Some(vector()),
        min_unit: Some(vector()),
        requirements: vec![NodeSelectorRequirement {
            key: "pool".to_owned(),
            values: vec!["team-b".to_owned()],
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// A dashboard that is asked without a network.
pub(crate) struct Viewed {
    router: Router,
    pub(crate) cookie: Option<String>,
}

pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) content_type: String,
    pub(crate) body: Value,
    pub(crate) text: String,
}

impl Viewed {
    pub(crate) async fn start(config: Config) -> Self {
        let dashboard = Dashboard::start(config).await.unwrap();
        Self { router: dashboard.router(), cookie: None }
    }

    /// The same dashboard, looked at by another.
    pub(crate) fn with_cookie(&self, cookie: &str) -> Self {
        Self { router: self.router.clone(), cookie: Some(cookie.to_owned()) }
    }

    pub(crate) async fn response(&self, request: Request<Body>) -> http::Response<Body> {
        let mut request = request;
        if let Some(cookie) = &self.cookie {
            request.headers_mut().insert("cookie", cookie.parse().unwrap());
        }
        let peer: SocketAddr = "127.0.0.1:1".parse().unwrap();
        request.extensions_mut().insert(axum::extract::ConnectInfo(peer));
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// The answer to a GET of this path.
    pub(crate) async fn get(&self, path: &str) -> Answered {
        let request =
            Request::get(path).header("host", "dash.example").body(Body::empty()).unwrap();
        let response = self.response(request).await;
        let status = response.status();
        let content_type = response.headers().get(CONTENT_TYPE);
        let content_type = content_type.map_or("", |kind| kind.to_str().unwrap()).to_owned();
        if content_type == "text/event-stream" {
            return Answered { status, content_type, body: Value::Null, text: String::new() };
        }
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Answered { status, content_type, body, text }
    }

    /// The bytes of a 200.
    pub(crate) async fn raw(&self, path: &str) -> bytes::Bytes {
        let response = self.response(Request::get(path).body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), StatusCode::OK);
        response.into_body().collect().await.unwrap().to_bytes()
    }

    /// The object of a 200.
    #[track_caller]
    pub(crate) fn ok(&self, path: &str) -> impl Future<Output = Value> {
        let caller = std::panic::Location::caller();
        async move {
            let answered = self.get(path).await;
            assert_eq!(answered.status, StatusCode::OK, "{path} at {caller}: {}", answered.text);
            assert!(answered.body["queriedAt"].is_string(), "{path}: {}", answered.text);
            answered.body
        }
    }
}
