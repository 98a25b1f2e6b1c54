//! What an interruption, or the loss of the machine, costs (§8.2): the pod's annotation, else
//! the default of its priority class, else absent. Neither is derived from priority or from
//! the other.

use bigfleet_crds::{Quantity as Text, keys};
use bigfleet_model::Quantity;

use crate::{class_defaults::ClassDefaults, pod::Pod};

/// An annotation that is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InvalidPenalty {
    /// The annotation.
    pub key: &'static str,
    /// What it says.
    pub value: Box<str>,
}

/// Both penalties of one pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Penalties {
    /// Dollars per interruption.
    pub interruption: Option<Text>,
    /// Dollars per loss of the machine.
    pub reclamation: Option<Text>,
    /// Annotations that were passed over.
    pub invalid: Vec<InvalidPenalty>,
}

/// Those of `pod`.
#[must_use]
pub fn penalties(pod: &Pod, defaults: &ClassDefaults) -> Penalties {
    let class = pod.priority_class.as_deref().and_then(|class| defaults.get(class));
    let mut invalid = Vec::new();
    let mut one = |written: Option<&str>, key, default: Option<Quantity>| {
        let own = written.and_then(|text| {
            let read = text.trim().parse::<Quantity>();
            if read.is_err() {
                invalid.push(InvalidPenalty { key, value: text.into() });
            }
            read.ok()
        });
        own.or(default).map(|dollars| dollars.to_string().into())
    };
    let interruption = one(
        pod.interruption_penalty.as_deref(),
        keys::INTERRUPTION_PENALTY,
        class.and_then(|class| class.interruption),
    );
    let reclamation = one(
        pod.reclamation_penalty.as_deref(),
        keys::RECLAMATION_PENALTY,
        class.and_then(|class| class.reclamation),
    );
    Penalties { interruption, reclamation, invalid }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotation_then_class_then_absent() {
        let defaults = ClassDefaults::parse(
            "prod: {interruptionPenalty: 8192, reclamationPenalty: 64}\nbatch: {}\n",
        )
        .unwrap();
        for (class, interruption, reclamation, expected, invalid) in [
            (None, None, None, (None, None), 0),
            (Some("unknown"), None, None, (None, None), 0),
            (Some("batch"), None, None, (None, None), 0),
            (Some("prod"), None, None, (Some("8192"), Some("64")), 0),
            (Some("prod"), Some("500m"), None, (Some("500m"), Some("64")), 0),
            (Some("prod"), None, Some("0"), (Some("8192"), Some("0")), 0),
            (None, Some("0.5"), None, (Some("500m"), None), 0),
            (Some("prod"), Some("$5"), Some(""), (Some("8192"), Some("64")), 2),
            (None, Some("many"), Some("3"), (None, Some("3")), 1),
        ] {
            let pod = Pod {
                priority: 1_000_000,
                priority_class: class.map(Into::into),
                interruption_penalty: interruption.map(Into::into),
                reclamation_penalty: reclamation.map(Into::into),
                ..Pod::default()
            };
            let made = penalties(&pod, &defaults);
            let case = format!("{class:?} {interruption:?} {reclamation:?}");
            assert_eq!(made.interruption, expected.0.map(Text::from), "{case}");
            assert_eq!(made.reclamation, expected.1.map(Text::from), "{case}");
            assert_eq!(made.invalid.len(), invalid, "{case}");
        }
    }
}
