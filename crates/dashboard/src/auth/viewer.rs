//! Somebody who looks.

use std::{collections::BTreeSet, sync::Arc};

use axum::extract::FromRequestParts;
use http::request::Parts;

use crate::api::Refusal;

/// Somebody who looks, and the clusters they may see. The one place where that is decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Viewer {
    /// Empty where nobody is asked who they are.
    pub(crate) name: String,
    /// None is all.
    pub(crate) clusters: Option<Arc<BTreeSet<String>>>,
    /// Unix seconds until when all this holds; for ever if there is none.
    pub(crate) until: Option<i64>,
}

impl Viewer {
    /// Whether this cluster may be shown; what belongs to no cluster may.
    #[must_use]
    pub(crate) fn sees(&self, cluster: &str) -> bool {
        cluster.is_empty() || self.clusters.as_ref().is_none_or(|all| all.contains(cluster))
    }

    /// Whether there are clusters that may not be shown.
    #[must_use]
    pub(crate) const fn is_scoped(&self) -> bool {
        self.clusters.is_some()
    }

    /// Whether no cluster may be shown.
    #[must_use]
    pub(crate) fn sees_none(&self) -> bool {
        self.clusters.as_ref().is_some_and(|clusters| clusters.is_empty())
    }

    /// The only cluster that may be shown, if there is just one.
    #[must_use]
    pub(crate) fn only(&self) -> Option<&str> {
        let clusters = self.clusters.as_ref().filter(|clusters| clusters.len() == 1)?;
        clusters.first().map(String::as_str)
    }

    /// Refuses a cluster that may not be shown.
    pub(crate) fn check(&self, cluster: &str) -> Result<(), Refusal> {
        if self.sees(cluster) {
            return Ok(());
        }
        Err(Refusal::Forbidden(format!("cluster {cluster:?} is not yours to see")))
    }
}

/// Put there by the layer that every route is behind.
impl<S: Send + Sync> FromRequestParts<S> for Viewer {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let viewer = parts.extensions.get::<Self>().cloned();
        viewer.ok_or(Refusal::NoIdentity { login: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_is_a_list_of_clusters_and_an_empty_list_is_nothing() {
        let scoped = |all: &[&str]| Viewer {
            name: "jane".to_owned(),
            clusters: Some(Arc::new(all.iter().map(|&one| one.to_owned()).collect())),
            until: None,
        };
        assert!(Viewer::default().sees("a"));
        assert!(scoped(&["a"]).sees("a") && !scoped(&["a"]).sees("b") && scoped(&["a"]).sees(""));
        assert!(!scoped(&[]).sees("a") && scoped(&[]).check("a").is_err());
        assert_eq!((scoped(&["a"]).only(), scoped(&["a", "b"]).only()), (Some("a"), None));
        assert_eq!((scoped(&[]).only(), Viewer::default().only()), (None, None));
    }
}
