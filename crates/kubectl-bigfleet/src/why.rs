//! Why one pod waits, in plain words.

mod verdict;

use std::fmt::Write as _;

use bigfleet_crds::{
    AvailableCapacity, CapacityRequest, CapacityRequestPhase, UpcomingNode, UpcomingNodePhase,
    conditions,
};
use bigfleet_model::Quantity;
use bigfleet_plain::{text, when};
use bigfleet_wire::v1alpha1::NodeSelectorRequirement;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
pub use verdict::{Verdict, verdict};

use crate::{needs::demand, nodes, picture::Picture};

/// Machines that are named; of more, only the number is.
const NAMED: usize = 5;

/// The whole answer.
#[must_use]
pub fn screen(picture: &Picture) -> String {
    let verdict = verdict(picture);
    let mut text = String::new();
    if let Some(cluster) = &picture.cluster {
        line(&mut text, "Cluster", cluster);
    }
    line(&mut text, "Pod", &format!("{}: {}", name(picture), verdict.state));
    match &picture.request {
        Some(request) => {
            line(&mut text, "Request", &told(request, picture.now));
            line(&mut text, "", &asked(request));
            if let Some(satisfied) = condition(request, conditions::SATISFIED) {
                line(&mut text, "Fleet", &says(satisfied, picture.now));
            }
        }
        None => line(&mut text, "Request", "none"),
    }
    if verdict.waits {
        coming(&mut text, picture);
        line(&mut text, "Available", &hint(picture.available.as_ref()));
    }
    line(&mut text, "What to do", &verdict.advice);
    text
}

/// Namespace and name.
#[must_use]
pub fn name(picture: &Picture) -> String {
    let metadata = &picture.pod.metadata;
    let part = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{}/{}", part(&metadata.namespace), part(&metadata.name))
}

/// A condition of a request.
#[must_use]
pub fn condition<'a>(request: &'a CapacityRequest, kind: &str) -> Option<&'a Condition> {
    let status = request.status.as_ref()?;
    status.conditions.iter().find(|condition| condition.type_ == kind)
}

fn line(text: &mut String, head: &str, rest: &str) {
    let head = if head.is_empty() { String::new() } else { format!("{head}:") };
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{head:<12}{rest}");
}

fn told(request: &CapacityRequest, now: Timestamp) -> String {
    let name = request.metadata.name.as_deref().unwrap_or_default();
    let status = request.status.as_ref();
    match (request.phase(), status.and_then(|status| status.acknowledged_at.as_ref())) {
        (CapacityRequestPhase::Pending, _) => {
            let made = request.metadata.creation_timestamp.as_ref().map(|time| time.0);
            format!("{name}, Pending for {}", since(now, made))
        }
        (CapacityRequestPhase::Acknowledged, Some(at)) => {
            format!("{name}, Acknowledged {} ago", since(now, Some(at.0)))
        }
        (CapacityRequestPhase::Acknowledged, None) => format!("{name}, Acknowledged"),
    }
}

fn asked(request: &CapacityRequest) -> String {
    let spec = &request.spec;
    let resources: Vec<String> =
        spec.resources.iter().map(|(name, amount)| format!("{name}={}", amount.as_str())).collect();
    let mut said = match resources.is_empty() {
        true => "asks for nothing but a place".to_owned(),
        false => format!("asks for {}", resources.join(" ")),
    };
    if let Some(demand) = demand(request) {
        let all: Vec<NodeSelectorRequirement> =
            demand.need.profile().requirements().iter().map(Into::into).collect();
        let _ = write!(said, " where {}", text::requirements(&all));
    }
    let _ = write!(said, ", priority {}", spec.priority);
    said
}

/// Without the message where it is the advice.
fn says(satisfied: &Condition, now: Timestamp) -> String {
    let since = since(now, Some(satisfied.last_transition_time.0));
    let met = satisfied.status == "True";
    let word = if met { "satisfied" } else { "not satisfied" };
    let said = format!("{word} for {since}: {}", satisfied.reason);
    match met && !satisfied.message.is_empty() {
        true => format!("{said}: {}", satisfied.message),
        false => said,
    }
}

fn coming(text: &mut String, picture: &Picture) {
    let fit: Vec<&UpcomingNode> =
        picture.upcoming.iter().filter(|machine| comes_for(machine, picture)).collect();
    if fit.is_empty() {
        line(text, "Coming", "no machine that fits is on its way");
        return;
    }
    for (number, machine) in fit.iter().take(NAMED).enumerate() {
        let head = if number == 0 { "Coming" } else { "" };
        line(text, head, &nodes::sentence(machine, picture.now));
    }
    if let Some(more) = fit.len().checked_sub(NAMED).filter(|more| *more > 0) {
        line(text, "", &format!("and {more} more; see `kubectl bigfleet nodes`"));
    }
}

/// Whether a machine on its way could be this pod's.
fn comes_for(machine: &UpcomingNode, picture: &Picture) -> bool {
    let phase = machine.status.as_ref().map(|status| status.phase);
    let on_its_way = matches!(
        phase,
        None | Some(
            UpcomingNodePhase::Provisioning
                | UpcomingNodePhase::Launched
                | UpcomingNodePhase::Registered
        )
    );
    on_its_way && picture.request.as_ref().is_some_and(|request| nodes::fits(machine, request))
}

fn hint(available: Option<&AvailableCapacity>) -> String {
    let Some(available) = available else {
        return "nothing is known yet of what could be had".to_owned();
    };
    let spec = &available.spec;
    let sure = format!("{:?}", spec.availability).to_lowercase();
    let cost = match spec.cost.as_str().parse::<Quantity>() {
        Ok(cost) => text::dollars(cost.to_f64()),
        Err(_) => format!("${}", spec.cost),
    };
    match spec.available_count {
        0 => "no more machines of this kind can be had now".to_owned(),
        1 => format!("one more machine at {cost} an hour (confidence {sure})"),
        many => format!("{many} more machines from {cost} an hour each (confidence {sure})"),
    }
}

/// How long ago, in one unit.
pub(crate) fn since(now: Timestamp, then: Option<Timestamp>) -> String {
    let nanos = |time: Timestamp| i64::try_from(time.as_nanosecond()).unwrap_or(i64::MAX);
    then.map_or_else(|| "—".to_owned(), |then| when::age(nanos(now), nanos(then)))
}
