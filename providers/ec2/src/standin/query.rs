//! The query API: forms in, XML out.

use std::{collections::BTreeMap, fmt::Write};

use axum::{
    body::Bytes,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use jiff::Timestamp;

use super::{
    CATALOGUE, Type,
    hosts::Host,
    server::{Shared, lock},
    world::{Launch, Refused, World, now},
};

type Form = BTreeMap<String, String>;

pub(super) fn serve(world: &Shared, body: &Bytes) -> Response {
    let form: Form = form_urlencoded::parse(body).into_owned().collect();
    let action = form.get("Action").cloned().unwrap_or_default();
    let mut world = lock(world);
    if world.throttles() {
        return refusal(&("RequestLimitExceeded", "request limit exceeded".to_owned()));
    }
    let served = match action.as_str() {
        "RunInstances" => run(&mut world, &form),
        "DescribeInstances" => describe(&world, &form),
        "TerminateInstances" => terminate(&mut world, &form),
        "RebootInstances" => reboot(&mut world, &form),
        "CreateTags" => tag(&mut world, &form, true),
        "DeleteTags" => tag(&mut world, &form, false),
        "DescribeSpotPriceHistory" => spot_prices(&world, &form),
        "DescribeInstanceTypes" => types(&form),
        _ => Err(("InvalidAction", format!("no action {action:?}"))),
    };
    match served {
        Err(refused) => refusal(&refused),
        Ok(inner) => {
            let text = format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{action}Response \
                 xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">{inner}</{action}Response>"
            );
            (StatusCode::OK, [(CONTENT_TYPE, "text/xml")], text).into_response()
        }
    }
}

pub(super) fn refusal((code, message): &Refused) -> Response {
    let status = match *code {
        "RequestLimitExceeded" => StatusCode::SERVICE_UNAVAILABLE,
        "InternalError" => StatusCode::INTERNAL_SERVER_ERROR,
        "AuthFailure" => StatusCode::UNAUTHORIZED,
        _ => StatusCode::BAD_REQUEST,
    };
    let text = format!(
        "<Response><Errors><Error><Code>{code}</Code><Message>{}</Message></Error></Errors>\
         <RequestID>standin</RequestID></Response>",
        escape(message)
    );
    (status, [(CONTENT_TYPE, "text/xml")], text).into_response()
}

fn run(world: &mut World, form: &Form) -> Result<String, Refused> {
    for key in ["MinCount", "MaxCount"] {
        if text(form, key) != "1" {
            return Err(("InvalidParameterValue", format!("{key} must be 1 here")));
        }
    }
    if text(form, "ImageId").is_empty() {
        return Err(("MissingParameter", "ImageId".to_owned()));
    }
    let plain = ["Action", "Version", "ClientToken"];
    let launch = Launch {
        token: text(form, "ClientToken").to_owned(),
        instance_type: text(form, "InstanceType").to_owned(),
        zone: text(form, "Placement.AvailabilityZone").to_owned(),
        spot: text(form, "InstanceMarketOptions.MarketType") == "spot",
        tags: tags(form, "TagSpecification.1.Tag"),
        parameters: form
            .iter()
            .filter(|(key, _)| !plain.contains(&key.as_str()))
            .map(|(key, value)| format!("{key}={value}&"))
            .collect(),
    };
    let host = world.launch(launch)?;
    if world.faults.lose_launch_answers > 0 {
        world.faults.lose_launch_answers -= 1;
        return Err(("InternalError", "the answer was lost".to_owned()));
    }
    Ok(format!("<instancesSet>{}</instancesSet>", instance(&host, host.state(now()))))
}

fn describe(world: &World, form: &Form) -> Result<String, Refused> {
    let now = now();
    let filters = filters(form);
    let asked = numbered(form, "InstanceId");
    for id in &asked {
        world.visible(id)?;
    }
    let after = text(form, "NextToken");
    let wanted = text(form, "MaxResults").parse().unwrap_or(1000usize);
    if !(1..=1000).contains(&wanted) {
        return Err(("InvalidParameterValue", "MaxResults: 1 to 1000".to_owned()));
    }
    let size = wanted.min(world.faults.page_size);
    let mut found = world.hosts.values().filter(|host| {
        host.id.as_str() > after
            && now >= host.visible
            && (asked.is_empty() || asked.contains(&host.id))
            && filters.iter().all(|(name, values)| matches(host, now, name, values))
    });
    let page: Vec<_> = found.by_ref().take(size).collect();
    let mut answer = String::from("<reservationSet>");
    for host in &page {
        let inner = instance(host, host.described(now));
        let _ = write!(answer, "<item><instancesSet>{inner}</instancesSet></item>");
    }
    answer.push_str("</reservationSet>");
    if let (Some(last), Some(_)) = (page.last(), found.next()) {
        let _ = write!(answer, "<nextToken>{}</nextToken>", last.id);
    }
    Ok(answer)
}

fn matches(host: &Host, now: u64, name: &str, values: &[String]) -> bool {
    let value = match name {
        "instance-id" => Some(host.id.as_str()),
        "client-token" => Some(host.token.as_str()),
        "instance-state-name" => Some(host.described(now)),
        name => name.strip_prefix("tag:").and_then(|key| host.tags.get(key)).map(String::as_str),
    };
    value.is_some_and(|value| values.iter().any(|wanted| wanted == value))
}

fn terminate(world: &mut World, form: &Form) -> Result<String, Refused> {
    let ids = numbered(form, "InstanceId");
    for id in &ids {
        world.visible(id)?;
    }
    for id in &ids {
        world.end(id, now(), "Client.UserInitiatedShutdown");
    }
    Ok("<instancesSet/>".to_owned())
}

fn reboot(world: &mut World, form: &Form) -> Result<String, Refused> {
    for id in numbered(form, "InstanceId") {
        world.visible(&id)?;
        world.change(&id, |host| {
            host.reboots += 1;
            // What joined it lived under /run.
            host.joined = None;
        });
    }
    Ok("<return>true</return>".to_owned())
}

fn tag(world: &mut World, form: &Form, set: bool) -> Result<String, Refused> {
    let tags = tags(form, "Tag");
    for id in numbered(form, "ResourceId") {
        world.visible(&id)?;
        world.change(&id, |host| {
            for (key, value) in &tags {
                if set {
                    host.tags.insert(key.clone(), value.clone());
                } else {
                    host.tags.remove(key);
                }
            }
        });
    }
    Ok("<return>true</return>".to_owned())
}

fn spot_prices(world: &World, form: &Form) -> Result<String, Refused> {
    let types = numbered(form, "InstanceType");
    let mut answer = String::from("<spotPriceHistorySet>");
    for ((name, zone), price) in
        world.spot_prices.iter().filter(|((name, _), _)| types.contains(name))
    {
        let at = moment(now());
        let _ = write!(
            answer,
            "<item><instanceType>{name}</instanceType><availabilityZone>{zone}</availabilityZone>\
             <productDescription>Linux/UNIX</productDescription><spotPrice>{price}</spotPrice>\
             <timestamp>{at}</timestamp></item>"
        );
    }
    answer.push_str("</spotPriceHistorySet>");
    Ok(answer)
}

fn types(form: &Form) -> Result<String, Refused> {
    let mut answer = String::from("<instanceTypeSet>");
    for name in numbered(form, "InstanceType") {
        let entry = CATALOGUE.iter().find(|entry| entry.name == name);
        let Some(Type { name, cpus, memory_mib, gpus, .. }) = entry else {
            return Err(("InvalidInstanceType", format!("no type {name:?}")));
        };
        let _ = write!(
            answer,
            "<item><instanceType>{name}</instanceType>\
             <vCpuInfo><defaultVCpus>{cpus}</defaultVCpus></vCpuInfo>\
             <memoryInfo><sizeInMiB>{memory_mib}</sizeInMiB></memoryInfo>\
             <gpuInfo><gpus><item><count>{gpus}</count></item></gpus></gpuInfo></item>"
        );
    }
    answer.push_str("</instanceTypeSet>");
    Ok(answer)
}

fn instance(host: &Host, state: &str) -> String {
    let mut tags = String::new();
    for (key, value) in &host.tags {
        let (key, value) = (escape(key), escape(value));
        let _ = write!(tags, "<item><key>{key}</key><value>{value}</value></item>");
    }
    let lifecycle = if host.spot { "<instanceLifecycle>spot</instanceLifecycle>" } else { "" };
    let reason =
        if matches!(state, "shutting-down" | "terminated") { host.reason.as_str() } else { "" };
    format!(
        "<item><instanceId>{}</instanceId><instanceState><name>{state}</name></instanceState>\
         <instanceType>{}</instanceType><clientToken>{}</clientToken>\
         <placement><availabilityZone>{}</availabilityZone></placement>\
         <launchTime>{}</launchTime>{lifecycle}\
         <stateReason><code>{reason}</code></stateReason><tagSet>{tags}</tagSet></item>",
        host.id,
        escape(&host.instance_type),
        escape(&host.token),
        escape(&host.zone),
        moment(host.launched),
    )
}

fn moment(milliseconds: u64) -> String {
    let milliseconds = i64::try_from(milliseconds).unwrap_or(i64::MAX);
    let moment = Timestamp::from_millisecond(milliseconds).unwrap_or_default();
    format!("{moment:.3}")
}

fn text<'a>(form: &'a Form, key: &str) -> &'a str {
    form.get(key).map_or("", String::as_str)
}

/// `Prefix.1`, `Prefix.2`, …
fn numbered(form: &Form, prefix: &str) -> Vec<String> {
    (1..).map_while(|number| form.get(&format!("{prefix}.{number}")).cloned()).collect()
}

fn filters(form: &Form) -> Vec<(String, Vec<String>)> {
    let name = |number: u32| form.get(&format!("Filter.{number}.Name")).cloned();
    (1..)
        .map_while(|number| {
            Some((name(number)?, numbered(form, &format!("Filter.{number}.Value"))))
        })
        .collect()
}

fn tags(form: &Form, prefix: &str) -> BTreeMap<String, String> {
    let value = |number: u32| text(form, &format!("{prefix}.{number}.Value")).to_owned();
    (1..)
        .map_while(|number| {
            Some((form.get(&format!("{prefix}.{number}.Key"))?.clone(), value(number)))
        })
        .collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
