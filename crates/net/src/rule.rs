//! Which identities are let in: one vocabulary for what a server asks of its
//! callers and what a client asks of its server.

use std::fmt;

use crate::identity::{Carried, Identity, describe};

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Exactly(Identity),
    AnyShard,
    AnyCoordinator,
}

impl Pattern {
    fn admits(&self, identity: &Identity) -> bool {
        match self {
            Self::Exactly(wanted) => wanted == identity,
            Self::AnyShard => matches!(identity, Identity::Shard(_)),
            Self::AnyCoordinator => matches!(identity, Identity::Coordinator(_)),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(identity) => identity.fmt(f),
            Self::AnyShard => f.write_str("bigfleet://shard/<shard_id>"),
            Self::AnyCoordinator => f.write_str("bigfleet://coordinator/<node_id>"),
        }
    }
}

/// The identities that open one door.
///
/// Binding is strict and no hierarchy: admin does not open what asks for a
/// cluster or a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule(Vec<Pattern>);

impl Rule {
    /// Any certificate of the CA, even one without an identity.
    #[must_use]
    pub fn any_certificate() -> Self {
        Self(Vec::new())
    }

    /// This identity and no other.
    #[must_use]
    pub fn exactly(identity: Identity) -> Self {
        Self(vec![Pattern::Exactly(identity)])
    }

    /// `bigfleet://admin`.
    #[must_use]
    pub fn admin() -> Self {
        Self::exactly(Identity::Admin)
    }

    /// `bigfleet://readonly` or `bigfleet://admin`.
    #[must_use]
    pub fn readers() -> Self {
        Self::exactly(Identity::Readonly).or(Identity::Admin)
    }

    /// Any `bigfleet://shard/…`: what an operator asks of its shard.
    #[must_use]
    pub fn any_shard() -> Self {
        Self(vec![Pattern::AnyShard])
    }

    /// `bigfleet://admin` or any `bigfleet://coordinator/…`: what a shard asks
    /// of its coordinator, and replicas of each other.
    #[must_use]
    pub fn coordinators() -> Self {
        Self(vec![Pattern::Exactly(Identity::Admin), Pattern::AnyCoordinator])
    }

    /// This rule, or this identity. [`Rule::any_certificate`] stays that.
    #[must_use]
    pub fn or(mut self, identity: Identity) -> Self {
        if !self.0.is_empty() {
            self.0.push(Pattern::Exactly(identity));
        }
        self
    }

    /// Whether a certificate that carries this is let in.
    pub fn check(&self, carried: &Carried) -> Result<(), Denied> {
        let admitted = self.0.is_empty()
            || carried
                .as_ref()
                .is_ok_and(|identity| self.0.iter().any(|pattern| pattern.admits(identity)));
        if admitted {
            return Ok(());
        }
        Err(Denied { presented: describe(carried), needed: self.to_string() })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("any certificate of the CA");
        }
        for (index, pattern) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(" or ")?;
            }
            pattern.fmt(f)?;
        }
        Ok(())
    }
}

/// A refusal that says what was presented and what would have been let in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("peer presented {presented}; this needs {needed}")]
pub struct Denied {
    /// The identity, or why there is none.
    pub presented: String,
    /// The rule.
    pub needed: String,
}

impl From<Denied> for tonic::Status {
    fn from(denied: Denied) -> Self {
        Self::permission_denied(denied.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::NoIdentity;

    fn everyone() -> Vec<Identity> {
        vec![
            Identity::Admin,
            Identity::Readonly,
            Identity::Cluster("a".into()),
            Identity::Shard("a".into()),
            Identity::Shard("b".into()),
            Identity::Coordinator("a".into()),
            Identity::Provider("a".into()),
            Identity::Unknown("bigfleet://foo".into()),
        ]
    }

    fn admitted(rule: &Rule) -> Vec<Identity> {
        everyone().into_iter().filter(|one| rule.check(&Ok(one.clone())).is_ok()).collect()
    }

    #[test]
    fn rules_admit_exactly_what_they_name() {
        assert_eq!(admitted(&Rule::admin()), [Identity::Admin]);
        assert_eq!(admitted(&Rule::readers()), [Identity::Admin, Identity::Readonly]);
        assert_eq!(
            admitted(&Rule::exactly(Identity::Shard("b".into()))),
            [Identity::Shard("b".into())]
        );
        assert_eq!(
            admitted(&Rule::any_shard()),
            [Identity::Shard("a".into()), Identity::Shard("b".into())]
        );
        assert_eq!(
            admitted(&Rule::coordinators()),
            [Identity::Admin, Identity::Coordinator("a".into())]
        );
        assert_eq!(admitted(&Rule::any_certificate()), everyone());
    }

    #[test]
    fn without_identity_only_the_open_rule_admits() {
        let nobody = Err(NoIdentity::Missing);
        assert!(Rule::any_certificate().check(&nobody).is_ok());
        assert!(Rule::any_certificate().or(Identity::Admin).check(&nobody).is_ok());
        assert!(Rule::readers().check(&nobody).is_err());
    }

    #[test]
    fn refusal_names_both_sides() {
        let denied = Rule::coordinators().check(&Ok(Identity::Readonly)).unwrap_err();
        let status = tonic::Status::from(denied);
        assert_eq!(status.code(), tonic::Code::PermissionDenied);
        assert_eq!(
            status.message(),
            "peer presented bigfleet://readonly; this needs bigfleet://admin or \
             bigfleet://coordinator/<node_id>"
        );
    }
}
