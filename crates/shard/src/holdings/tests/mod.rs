//! Every row of the table of coordinator chapter §8, and what a crash may do between.

mod donate;
pub(crate) mod machines;
mod protocol;
mod random;
mod rules;
mod table;

use std::collections::BTreeSet;

use super::*;

fn domain(value: &str) -> Domain {
    Domain::new("zone".to_owned(), value.to_owned()).unwrap()
}

fn key(text: &str) -> Key {
    match text.strip_prefix('@') {
        Some(cluster) => Key::Cluster(cluster.into()),
        None => Key::Domain(domain(text)),
    }
}

/// Domains by their value, clusters with an `@` in front.
fn keys(texts: &[&str]) -> Keys {
    texts.iter().map(|text| key(text)).collect()
}

/// `transfer/machine`, of domain `home`.
fn machine(text: &str) -> TransferMachine {
    let (transfer, machine) = text.split_once('/').unwrap();
    TransferMachine {
        transfer: transfer.into(),
        machine: machine.into(),
        home: domain("home"),
        from: "donor".to_owned(),
    }
}

fn machines(texts: &[&str]) -> BTreeSet<TransferMachine> {
    texts.iter().map(|text| machine(text)).collect()
}

fn ids<T: From<&'static str> + Ord>(texts: &[&'static str]) -> BTreeSet<T> {
    texts.iter().map(|text| T::from(text)).collect()
}

fn assignment(version: i64, held: &[&str]) -> Assignment {
    Assignment { version, digest: 7, held: keys(held), ..Assignment::default() }
}

fn out(machines: &[&'static str]) -> Out {
    Out { home: domain("a"), machines: ids(machines), drain: None }
}

/// For somebody of this priority, whose own work is free to interrupt.
fn drain_for(priority: i32) -> Drain {
    Drain { priority, bucket: PenaltyBucket::ZERO, over: false }
}

#[allow(clippy::needless_pass_by_value, reason = "an event happens once")]
fn step(holdings: &Holdings, event: Event) -> (Holdings, Vec<Effect>) {
    let Step { after, effects } = holdings.apply(&event).unwrap();
    (after, effects)
}

/// The state after these events.
fn after(events: Vec<Event>) -> Holdings {
    events.into_iter().fold(Holdings::default(), |holdings, event| step(&holdings, event).0)
}
