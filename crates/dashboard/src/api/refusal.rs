//! Why a question is not answered (experience chapter §3.2).

use std::fmt;

use axum::response::{IntoResponse, Response};
use http::{
    StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue},
};
use serde::Serialize;

/// Where data comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Metrics, by Prometheus or scraped.
    Prometheus,
    /// The coordinator's leader.
    Coordinator,
    /// One shard.
    Shard,
    /// The kinds of managed clusters.
    Kubeconfig,
}

impl Source {
    /// All of them.
    pub(crate) const ALL: [Self; 4] =
        [Self::Prometheus, Self::Coordinator, Self::Shard, Self::Kubeconfig];

    /// As answers and metrics write it.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Prometheus => "prometheus",
            Self::Coordinator => "coordinator",
            Self::Shard => "shard",
            Self::Kubeconfig => "kubeconfig",
        }
    }

    /// The flag that wires it.
    #[must_use]
    pub const fn flag(self) -> &'static str {
        match self {
            Self::Prometheus => "--prometheus-url",
            Self::Coordinator | Self::Shard => "--coordinator-addr",
            Self::Kubeconfig => "--kubeconfig",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Prometheus => "metrics",
            Self::Coordinator => "coordinator",
            Self::Shard => "shard",
            Self::Kubeconfig => "cluster",
        }
    }
}

/// Why a question is not answered. Askers that share a call share its refusal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// A parameter.
    #[error("{0}")]
    BadParameter(String),
    /// Nobody has signed in.
    #[error("sign in first")]
    NoIdentity {
        /// Where to, if here.
        login: Option<&'static str>,
    },
    /// Nothing is changed here.
    #[error("not with this method: ask with {allowed}")]
    Method {
        /// With what to ask.
        allowed: &'static str,
    },
    /// Signed in, and still not.
    #[error("{0}")]
    Forbidden(String),
    /// No such thing.
    #[error("{0}")]
    NotFound(String),
    /// A source does not answer, or not as it should.
    #[error("{}: {problem}", of.name())]
    Failed {
        /// Which.
        of: Source,
        /// In its own words.
        problem: String,
    },
    /// Where viewers sign in.
    #[error("issuer: {0}")]
    Issuer(String),
    /// Too much at once.
    #[error("{0}")]
    Busy(String),
    /// A source that was not given.
    #[error("{} not wired: start the dashboard with {}", _0.name(), _0.flag())]
    Unwired(Source),
}

impl Refusal {
    /// A source that failed.
    #[allow(clippy::needless_pass_by_value, reason = "texts and errors alike, as they come")]
    pub(crate) fn failed(of: Source, problem: impl fmt::Display) -> Self {
        let problem = problem.to_string();
        Self::Failed { of, problem }
    }

    /// The status of the chapter's table.
    #[must_use]
    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::BadParameter(_) => StatusCode::BAD_REQUEST,
            Self::NoIdentity { .. } => StatusCode::UNAUTHORIZED,
            Self::Method { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Failed { .. } | Self::Issuer(_) => StatusCode::BAD_GATEWAY,
            Self::Unwired(_) | Self::Busy(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

#[derive(Serialize)]
struct Body {
    error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Source>,
    #[serde(skip_serializing_if = "Option::is_none")]
    login: Option<&'static str>,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let source = match &self {
            Self::Failed { of, .. } | Self::Unwired(of) => Some(*of),
            _ => None,
        };
        let login = match &self {
            Self::NoIdentity { login } => *login,
            _ => None,
        };
        let body = Body { error: self.to_string(), source, login };
        let headers = [(CACHE_CONTROL, "no-store"), (CONTENT_TYPE, "application/json")];
        let json = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = (self.status(), headers, json).into_response();
        if let Self::Method { allowed } = self {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        }
        response
    }
}
