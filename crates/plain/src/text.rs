//! Wire values as people write them.

use bigfleet_wire::v1alpha1::{
    ActuationMode, CapacityType, MachineState, NodeSelectorRequirement, PenaltyBucket, Resources,
    node_selector_requirement::Operator,
};

/// `IDLE` of `MACHINE_STATE_IDLE`; unknown numbers stay numbers.
pub fn state(state: i32) -> String {
    let name = MachineState::try_from(state).map(|state| state.as_str_name());
    tail(name.ok(), "MACHINE_STATE_", state)
}

/// `ON_DEMAND` of `CAPACITY_TYPE_ON_DEMAND`.
pub fn capacity_type(kind: i32) -> String {
    tail(CapacityType::try_from(kind).map(|kind| kind.as_str_name()).ok(), "CAPACITY_TYPE_", kind)
}

/// `PAUSED` of `ACTUATION_MODE_PAUSED`.
pub fn mode(mode: i32) -> String {
    tail(ActuationMode::try_from(mode).map(|mode| mode.as_str_name()).ok(), "ACTUATION_MODE_", mode)
}

/// `$1024`, `pinned`.
pub fn penalty(bucket: i32) -> String {
    let name = PenaltyBucket::try_from(bucket).map(|bucket| bucket.as_str_name());
    match tail(name.ok(), "PENALTY_BUCKET_", bucket).as_str() {
        "UNSPECIFIED" | "ZERO" => "$0".to_owned(),
        "HALF_DOLLAR" => "$0.5".to_owned(),
        "PINNED" => "pinned".to_owned(),
        dollars => format!("${dollars}"),
    }
}

fn tail(name: Option<&str>, prefix: &str, number: i32) -> String {
    let tail = name.map(|name| name.strip_prefix(prefix).unwrap_or(name).to_owned());
    tail.unwrap_or_else(|| number.to_string())
}

/// `cpu=8 memory=32Gi`, by name; `—` for nothing.
pub fn resources(resources: Option<&Resources>) -> String {
    let mut pairs: Vec<_> = resources.iter().flat_map(|vector| &vector.resources).collect();
    pairs.sort();
    let pairs: Vec<String> =
        pairs.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
    or_dash(&pairs.join(" "))
}

/// `zone in (a, b)`; several joined by commas.
pub fn requirements(all: &[NodeSelectorRequirement]) -> String {
    let one = |requirement: &NodeSelectorRequirement| {
        let (key, values) = (&requirement.key, requirement.values.join(", "));
        match requirement.operator() {
            Operator::In => format!("{key} in ({values})"),
            Operator::NotIn => format!("{key} not in ({values})"),
            Operator::Exists => key.clone(),
            Operator::DoesNotExist => format!("!{key}"),
            Operator::Same if values.is_empty() => format!("same {key}"),
            Operator::Same => format!("same {key} in ({values})"),
            Operator::Unspecified => format!("{key} ? ({values})"),
        }
    };
    or_dash(&all.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// A group holds NULs, which no terminal shows and no argument can carry.
pub fn group(group: &str) -> String {
    group.replace('\0', "\\0")
}

/// The empty text is hard to see.
pub fn or_dash(text: &str) -> String {
    if text.is_empty() { "—".to_owned() } else { text.to_owned() }
}

/// `$1.25/h`; nothing for −1.
pub fn dollars(amount: f64) -> String {
    if amount < 0.0 { "—".to_owned() } else { format!("${amount:.2}") }
}

/// An amount for JSON, which has no infinity; −1 is none.
pub fn amount(amount: f64) -> Option<f64> {
    Some(amount).filter(|amount| amount.is_finite() && *amount >= 0.0)
}

/// At most so many characters, the last an ellipsis.
pub fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enums_lose_their_prefix_and_unknown_numbers_stay() {
        assert_eq!((state(3).as_str(), state(99).as_str()), ("IDLE", "99"));
        assert_eq!((capacity_type(3).as_str(), mode(2).as_str()), ("ON_DEMAND", "PAUSED"));
        for (bucket, text) in [(0, "$0"), (1, "$0"), (2, "$0.5"), (13, "$1024"), (27, "pinned")] {
            assert_eq!(penalty(bucket), text);
        }
    }

    #[test]
    fn requirements_read_like_selectors() {
        let one = |operator: Operator, values: &[&str]| NodeSelectorRequirement {
            key: "zone".to_owned(),
            operator: operator.into(),
            values: values.iter().map(|&value| value.to_owned()).collect(),
        };
        let all = [
            one(Operator::In, &["a", "b"]),
            one(Operator::Same, &[]),
            one(Operator::DoesNotExist, &[]),
        ];
        assert_eq!(requirements(&all), "zone in (a, b), same zone, !zone");
        assert_eq!(requirements(&[]), "—");
    }

    #[test]
    fn long_text_ends_in_an_ellipsis() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
    }
}
