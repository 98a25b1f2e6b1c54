//! What is said of a need, in the words of the experience chapter §3.4.

use bigfleet_model::unmet;
use bigfleet_wire::v1alpha1::NeedStatusUpdate;

use super::needs::Standing;
use crate::status::Say;

/// What to say of a request and of its pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) met: bool,
    pub(super) reason: String,
    pub(super) message: String,
    /// Whether the pod is told, too.
    pub(super) event: bool,
}

impl Words {
    pub(super) fn of(standing: &Standing) -> Self {
        match &standing.unmet {
            Some(frame) => Self {
                met: false,
                reason: camel_case(unmet::of(frame.unmet_reason, frame.unmet_detail).name),
                message: unmet_message(frame, standing.coming),
                event: true,
            },
            None if standing.coming > 0 => Self {
                met: true,
                reason: "CapacityComing".to_owned(),
                message: coming(standing.coming),
                event: true,
            },
            None => Self {
                met: true,
                reason: "Satisfied".to_owned(),
                message: "the fleet covers this demand".to_owned(),
                event: false,
            },
        }
    }

    /// Of a need that is met and waits for nothing.
    pub(super) fn met() -> Self {
        Self::of(&Standing { unmet: None, coming: 0 })
    }

    pub(super) fn say(&self) -> Say {
        Say::Satisfied { met: self.met, reason: self.reason.clone(), message: self.message.clone() }
    }
}

fn unmet_message(frame: &NeedStatusUpdate, machines: i32) -> String {
    let mut message = unmet::of(frame.unmet_reason, frame.unmet_detail).action.to_owned();
    if !frame.detail_text.is_empty() {
        message = format!("{message}: {}", frame.detail_text);
    }
    let residual = frame.residual_deficit.iter().flat_map(|residual| &residual.resources);
    let residual: Vec<String> =
        residual.map(|(name, quantity)| format!("{name} {quantity}")).collect();
    if !residual.is_empty() {
        message = format!("{message}; still short of {}", residual.join(", "));
    }
    format!("{message}; {}", coming(machines))
}

fn coming(machines: i32) -> String {
    match machines {
        ..=0 => "no machines are on their way".to_owned(),
        1 => "1 machine is on its way".to_owned(),
        machines => format!("{machines} machines are on their way"),
    }
}

/// `NO_MATCHING_SUPPLY` as `NoMatchingSupply`.
fn camel_case(name: &str) -> String {
    name.split('_')
        .flat_map(|word| {
            let (first, rest) = word.split_at(word.len().min(1));
            [first.to_owned(), rest.to_ascii_lowercase()]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use bigfleet_wire::v1alpha1::{Resources, UnmetDetail, UnmetReason};

    use super::*;

    fn unmet(detail: UnmetDetail, coming: i32, text: &str) -> Words {
        let residual = [("memory", "16Gi"), ("cpu", "4")];
        let residual = residual.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let frame = NeedStatusUpdate {
            unmet_reason: UnmetReason::NoMatchingSupply.into(),
            unmet_detail: detail.into(),
            detail_text: text.to_owned(),
            residual_deficit: Some(Resources { resources: residual.into() }),
            ..Default::default()
        };
        Words::of(&Standing { unmet: Some(frame), coming })
    }

    #[test]
    fn an_unmet_need_says_why_what_is_missing_and_what_comes() {
        let words = unmet(UnmetDetail::Unspecified, 2, "");
        assert_eq!((words.met, words.reason.as_str()), (false, "NoMatchingSupply"));
        assert_eq!(
            words.message,
            "no machine of this shape in any state; relax the requirements or raise the \
             provider's quota; still short of cpu 4, memory 16Gi; 2 machines are on their way"
        );
    }

    #[test]
    fn a_finer_reason_wins_and_carries_the_words_of_whoever_refused() {
        let words = unmet(UnmetDetail::BootstrapRefused, 0, "template: bootstrap:3: no");
        assert_eq!(words.reason, "BootstrapRefused");
        assert!(words.message.contains(": template: bootstrap:3: no; still short of"));
        assert!(words.message.ends_with("no machines are on their way"));
    }

    #[test]
    fn a_met_need_is_told_only_while_machines_come() {
        let coming = Words::of(&Standing { unmet: None, coming: 1 });
        assert_eq!(
            (coming.met, coming.reason.as_str(), coming.event),
            (true, "CapacityComing", true)
        );
        assert_eq!(coming.message, "1 machine is on its way");
        let met = Words::of(&Standing { unmet: None, coming: 0 });
        assert_eq!((met.met, met.reason.as_str(), met.event), (true, "Satisfied", false));
    }
}
