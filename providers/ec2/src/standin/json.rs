//! Commands, the queue and list prices: JSON in, JSON out.

use std::time::Duration;

use aws_lc_rs::digest;
use axum::{body::Bytes, http::StatusCode, response::Response};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    hosts::Joined,
    server::{Shared, lock, reply},
    world::{Command, Refused, World, now},
};

/// Between two looks into an empty queue.
const LOOK: Duration = Duration::from_millis(50);
/// A received event comes again after this, unless it is deleted.
const HIDDEN_MS: u64 = 30_000;

pub(super) async fn serve(world: &Shared, target: &str, body: &Bytes) -> Response {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    if lock(world).throttles() {
        return refusal(&("ThrottlingException", "rate exceeded".to_owned()));
    }
    let served = match target {
        "AmazonSSM.SendCommand" => send(&mut lock(world), &body),
        "AmazonSSM.GetCommandInvocation" => invocation(&lock(world), &body),
        "AmazonSQS.ReceiveMessage" => Ok(receive(world, &body).await),
        "AmazonSQS.DeleteMessage" => {
            let number = text(&body, "ReceiptHandle").parse().unwrap_or(0);
            lock(world).taken(number);
            Ok(json!({}))
        }
        "AWSPriceListService.GetProducts" => Ok(products(&lock(world), &body)),
        _ => Err(("InvalidAction", format!("no action {target:?}"))),
    };
    match served {
        Ok(answer) => reply(StatusCode::OK, &answer),
        Err(refused) => refusal(&refused),
    }
}

pub(super) fn refusal((code, message): &Refused) -> Response {
    reply(StatusCode::BAD_REQUEST, &json!({"__type": code, "message": message}))
}

fn send(world: &mut World, body: &Value) -> Result<Value, Refused> {
    let at = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (host, script) = (at("/InstanceIds/0").to_owned(), at("/Parameters/commands/0"));
    let listens = world.hosts.get(&host).is_some_and(|one| one.listens(now()));
    if !listens || world.faults.deaf {
        return Err(("InvalidInstanceId", format!("instance {host} is not in a valid state")));
    }
    let Ran { status, output, takes } = run(world, &host, script);
    let id = format!("c-{:x}", world.number());
    let ends = now() + takes;
    world.keep_command(Command { id: id.clone(), host, ends, status, output });
    Ok(json!({"Command": {"CommandId": id}}))
}

struct Ran {
    status: String,
    output: String,
    takes: u64,
}

/// What a host makes of a script: it knows the three executables, and files of parts.
fn run(world: &mut World, host: &str, script: &str) -> Ran {
    let ran = |status: &str, output: &str, takes| Ran {
        status: status.to_owned(),
        output: output.to_owned(),
        takes,
    };
    let takes = world.faults.command_ms;
    if let Some((_, rest)) = script.split_once("printf %s ") {
        let Some((operation, number, part)) = part(rest) else { return ran("Failed", "", takes) };
        let parts = world.parts.entry((host.to_owned(), operation)).or_default();
        parts.insert(number, part);
        return ran("Success", "", takes);
    }
    let Some((_, call)) = script.split_once("/opt/bigfleet/") else {
        return ran("Failed", "", takes);
    };
    let call = call.split(';').next().unwrap_or_default();
    let words: Vec<_> = call.split_whitespace().map(|word| word.trim_matches('\'')).collect();
    match words[..] {
        ["bootstrap", operation, cluster] => {
            bootstrap(world, host, operation, cluster);
            ran("Success", "", takes)
        }
        ["ready", operation, cluster] => {
            let joined = world.hosts.get(host).and_then(|host| host.joined.as_ref());
            let ready = joined.is_some_and(|joined| {
                joined.operation == operation && joined.cluster == cluster && now() >= joined.ready
            });
            ran("Success", if ready { "ready\n" } else { "waiting\n" }, takes)
        }
        ["drain", _, _, grace] => {
            let grace = grace.parse::<u64>().unwrap_or(0).saturating_mul(1000);
            let drained = world.faults.drain_ms.min(grace);
            if world.faults.drain_fails {
                return ran("Failed", "", takes + drained);
            }
            world.change(host, |host| host.joined = None);
            ran("Success", "", takes + drained)
        }
        _ => ran("Failed", "", takes),
    }
}

/// `<base64> | base64 -d > /run/bigfleet/'<operation>'.<number>`.
fn part(rest: &str) -> Option<(String, usize, Vec<u8>)> {
    let (encoded, file) = rest.split_once(" | base64 -d > /run/bigfleet/")?;
    let (operation, number) = file.rsplit_once('.')?;
    let bytes = STANDARD.decode(encoded.trim()).ok()?;
    Some((operation.trim_matches('\'').to_owned(), number.trim().parse().ok()?, bytes))
}

fn bootstrap(world: &mut World, host: &str, operation: &str, cluster: &str) {
    let again = world.hosts.get(host).and_then(|host| host.joined.as_ref());
    if again.is_some_and(|joined| joined.operation == operation) {
        return;
    }
    let parts = world.parts.remove(&(host.to_owned(), operation.to_owned())).unwrap_or_default();
    let blob: Vec<u8> = parts.into_values().flatten().collect();
    let sum = digest::digest(&digest::SHA256, &blob);
    let joined = Joined {
        operation: operation.to_owned(),
        cluster: cluster.to_owned(),
        ready: now() + world.faults.join_ms,
        blob_sha256: sum.as_ref().iter().map(|byte| format!("{byte:02x}")).collect(),
        blob_bytes: blob.len(),
    };
    world.change(host, |host| host.joined = Some(joined));
}

fn invocation(world: &World, body: &Value) -> Result<Value, Refused> {
    let missing = || ("InvocationDoesNotExist", "no such command".to_owned());
    let command = world.commands.get(text(body, "CommandId"));
    let command = command.filter(|one| one.host == text(body, "InstanceId")).ok_or_else(missing)?;
    let done = now() >= command.ends;
    Ok(json!({
        "CommandId": command.id,
        "Status": if done { command.status.as_str() } else { "InProgress" },
        "ResponseCode": if done { i32::from(command.status != "Success") } else { -1 },
        "StandardOutputContent": if done { command.output.as_str() } else { "" },
    }))
}

async fn receive(world: &Shared, body: &Value) -> Value {
    let wait = body.get("WaitTimeSeconds").and_then(Value::as_u64).unwrap_or(0);
    let until = Instant::now() + Duration::from_secs(wait.min(20));
    loop {
        let told: Vec<_> = {
            let (mut world, now) = (lock(world), now());
            let waiting = world.messages.iter_mut().filter(|(_, message)| now >= message.hidden);
            let taken = waiting.take(10).map(|(number, message)| {
                message.hidden = now + HIDDEN_MS;
                let handle = number.to_string();
                json!({"MessageId": handle, "ReceiptHandle": handle, "Body": message.body})
            });
            taken.collect()
        };
        if !told.is_empty() || Instant::now() >= until {
            return json!({"Messages": told});
        }
        sleep(LOOK).await;
    }
}

fn products(world: &World, body: &Value) -> Value {
    let filters = body.get("Filters").and_then(Value::as_array).cloned().unwrap_or_default();
    let wanted = filters.iter().find(|filter| text(filter, "Field") == "instanceType");
    let name = wanted.map_or("", |filter| text(filter, "Value"));
    let products: Vec<_> = world
        .list_prices
        .get(name)
        .map(|price| {
            let dimension = json!({"pricePerUnit": {"USD": format!("{price:.10}")}});
            json!({"product": {"attributes": {"instanceType": name}},
                   "terms": {"OnDemand": {"t": {"priceDimensions": {"d": dimension}}}}})
            .to_string()
        })
        .into_iter()
        .collect();
    json!({"FormatVersion": "aws_v1", "PriceList": products})
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
