//! Answers of the query API.
//!
//! `roxmltree` and not a serde reader: the answers are deep, we want few fields of them,
//! and a tree that refuses entities and duplicate roots is all of the parser we need.

use std::{collections::BTreeMap, fmt::Display};

use roxmltree::{Document, Node};

use super::{ApiError, Instance, InstanceState, SpotPrice, TypeInfo};

/// The parsed answer, or why it cannot be read.
pub(super) fn parse<'a>(action: &str, text: &'a str) -> Result<Document<'a>, ApiError> {
    Document::parse(text).map_err(|error| malformed(action, &error))
}

pub(super) fn malformed(action: &str, problem: &dyn Display) -> ApiError {
    ApiError::Malformed { action: action.to_owned(), problem: problem.to_string() }
}

/// `Response/Errors/Error`, or the status if there is none.
pub(super) fn refusal(status: http::StatusCode, text: &str) -> ApiError {
    let parsed = Document::parse(text).ok();
    let error = parsed.as_ref().and_then(|document| {
        document
            .descendants()
            .find(|node| node.has_tag_name("Error"))
            .map(|error| ApiError::refused(text_of(error, "Code"), text_of(error, "Message")))
    });
    error.unwrap_or_else(|| {
        let code = if status.is_server_error() { "InternalError" } else { "Unreadable" };
        ApiError::refused(code, format!("status {status}"))
    })
}

/// The token of the next page.
pub(super) fn next_token(document: &Document<'_>) -> Option<String> {
    Some(text_of(document.root_element(), "nextToken")).filter(|token| !token.is_empty())
}

/// Of `RunInstances` and `DescribeInstances`.
pub(super) fn instances(document: &Document<'_>) -> Vec<Instance> {
    let sets = document.descendants().filter(|node| node.tag_name().name() == "instancesSet");
    sets.flat_map(items).map(instance).collect()
}

fn instance(node: Node<'_, '_>) -> Instance {
    let state = child(node, "instanceState").map(|state| text_of(state, "name"));
    let zone = child(node, "placement").map(|place| text_of(place, "availabilityZone"));
    let reason = child(node, "stateReason").map(|reason| text_of(reason, "code"));
    Instance {
        id: text_of(node, "instanceId"),
        state: InstanceState::parse(&state.unwrap_or_default()),
        instance_type: text_of(node, "instanceType"),
        zone: zone.unwrap_or_default(),
        spot: text_of(node, "instanceLifecycle") == "spot",
        client_token: text_of(node, "clientToken"),
        launched: text_of(node, "launchTime"),
        reason: reason.unwrap_or_default(),
        tags: child(node, "tagSet").map(tags).unwrap_or_default(),
    }
}

fn tags(node: Node<'_, '_>) -> BTreeMap<String, String> {
    items(node).map(|item| (text_of(item, "key"), text_of(item, "value"))).collect()
}

/// Of `DescribeSpotPriceHistory`.
pub(super) fn spot_prices(document: &Document<'_>) -> Vec<SpotPrice> {
    let sets =
        document.descendants().filter(|node| node.tag_name().name() == "spotPriceHistorySet");
    sets.flat_map(items)
        .filter_map(|item| {
            Some(SpotPrice {
                instance_type: text_of(item, "instanceType"),
                zone: text_of(item, "availabilityZone"),
                at: text_of(item, "timestamp"),
                price: text_of(item, "spotPrice").parse().ok()?,
            })
        })
        .collect()
}

/// Of `DescribeInstanceTypes`.
pub(super) fn types(document: &Document<'_>) -> Vec<TypeInfo> {
    let sets = document.descendants().filter(|node| node.tag_name().name() == "instanceTypeSet");
    let number = |node: Option<Node<'_, '_>>, name| {
        node.and_then(|node| text_of(node, name).parse().ok()).unwrap_or(0)
    };
    sets.flat_map(items)
        .map(|item| {
            let gpus = child(item, "gpuInfo").and_then(|info| child(info, "gpus"));
            let counts = gpus.into_iter().flat_map(items).map(|gpu| number(Some(gpu), "count"));
            TypeInfo {
                instance_type: text_of(item, "instanceType"),
                vcpus: number(child(item, "vCpuInfo"), "defaultVCpus"),
                memory_mib: number(child(item, "memoryInfo"), "sizeInMiB"),
                gpus: counts.sum(),
            }
        })
        .collect()
}

fn child<'a, 'b>(node: Node<'a, 'b>, name: &str) -> Option<Node<'a, 'b>> {
    node.children().find(|child| child.tag_name().name() == name)
}

fn items<'a, 'b: 'a>(node: Node<'a, 'b>) -> impl Iterator<Item = Node<'a, 'b>> {
    node.children().filter(|child| child.tag_name().name() == "item")
}

fn text_of(node: Node<'_, '_>, name: &str) -> String {
    child(node, name).and_then(|node| node.text()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_with_its_tags() {
        let text = r#"<?xml version="1.0" encoding="UTF-8"?>
<DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">
  <reservationSet><item><instancesSet><item>
    <instanceId>i-1</instanceId><instanceState><code>16</code><name>running</name></instanceState>
    <instanceType>m6i.large</instanceType><clientToken>op-1</clientToken>
    <placement><availabilityZone>eu-west-1a</availabilityZone></placement>
    <launchTime>2026-01-02T03:04:05.000Z</launchTime><instanceLifecycle>spot</instanceLifecycle>
    <tagSet><item><key>a&amp;b</key><value>1</value></item></tagSet>
  </item></instancesSet></item></reservationSet><nextToken>n-2</nextToken>
</DescribeInstancesResponse>"#;
        let document = parse("DescribeInstances", text).unwrap();
        let found = instances(&document);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].id.as_str(), found[0].zone.as_str()), ("i-1", "eu-west-1a"));
        assert_eq!(found[0].state, InstanceState::Running);
        assert!(found[0].spot);
        assert_eq!(found[0].tags["a&b"], "1");
        assert_eq!(next_token(&document).as_deref(), Some("n-2"));
    }

    #[test]
    fn a_refusal_keeps_its_code_and_junk_becomes_one() {
        let text = "<Response><Errors><Error><Code>InstanceLimitExceeded</Code>\
                    <Message>no more</Message></Error></Errors></Response>";
        let error = refusal(http::StatusCode::BAD_REQUEST, text);
        assert_eq!(error.to_string(), "InstanceLimitExceeded: no more");
        let junk = refusal(http::StatusCode::BAD_GATEWAY, "<html>");
        assert_eq!(junk.meaning(), super::super::Meaning::Unavailable);
        assert!(parse("x", "<a><b></a>").is_err());
    }
}
