//! Input limits (coordinator chapter §3). Ids are narrow, so that none can be written in
//! two ways against the identity of a certificate.

use std::collections::HashMap;

use bigfleet_wire::v1alpha1 as wire;

use crate::state::MAX_TRANSFER_MACHINES;

/// Longest id, in bytes.
const MAX_ID: usize = 253;
/// Longest label key: a DNS prefix, a slash, a name.
const MAX_LABEL_KEY: usize = 317;
/// Longest label value.
const MAX_LABEL_VALUE: usize = 63;
/// Longest address: a host name and a port, with room to spare.
const MAX_ADDRESS: usize = 1024;
/// Most entries of a map.
const MAX_ENTRIES: usize = 4096;

/// A field that is past its limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct Invalid {
    /// Which.
    pub field: String,
    /// What is wrong with it, and what would be right.
    pub why: String,
}

fn invalid(field: &str, why: impl Into<String>) -> Result<(), Invalid> {
    Err(Invalid { field: field.to_owned(), why: why.into() })
}

/// A name of whatever characters: 1–253 bytes. A machine's is its provider's choice.
pub fn name(field: &str, text: &str) -> Result<(), Invalid> {
    if text.is_empty() {
        return invalid(field, "empty; name it");
    }
    if text.len() > MAX_ID {
        return invalid(field, format!("{} bytes; shorten it to {MAX_ID}", text.len()));
    }
    Ok(())
}

/// An id: a name of letters, digits, `.`, `_`, `-`.
pub fn id(field: &str, text: &str) -> Result<(), Invalid> {
    name(field, text)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if !text.bytes().all(fits) {
        return invalid(field, format!("{text:?} has other characters than A-Z a-z 0-9 . _ -"));
    }
    Ok(())
}

/// A field that must say something.
pub fn given(field: &str, text: &str) -> Result<(), Invalid> {
    if text.is_empty() { invalid(field, "empty; set it") } else { Ok(()) }
}

/// An id that may be left out.
pub fn id_if_any(field: &str, text: &str) -> Result<(), Invalid> {
    if text.is_empty() { Ok(()) } else { id(field, text) }
}

/// Where somebody listens. It is replicated, so it has an end.
pub fn address(field: &str, text: &str) -> Result<(), Invalid> {
    if text.len() > MAX_ADDRESS {
        return invalid(field, format!("{} bytes; shorten it to {MAX_ADDRESS}", text.len()));
    }
    Ok(())
}

/// A topology domain.
pub fn domain(key: &str, value: &str) -> Result<(), Invalid> {
    given("topology_key", key)?;
    given("topology_value", value)?;
    let most = [("topology_key", key, MAX_LABEL_KEY), ("topology_value", value, MAX_LABEL_VALUE)];
    for (field, text, most) in most {
        if text.len() > most {
            return invalid(field, format!("{} bytes; a label has at most {most}", text.len()));
        }
    }
    Ok(())
}

/// A number that counts something.
pub fn count(field: &str, number: impl Into<i64>) -> Result<(), Invalid> {
    let number = number.into();
    if number < 0 {
        return invalid(field, format!("{number}; it is 0 or more"));
    }
    Ok(())
}

/// The number of entries of a map.
pub fn entries(field: &str, entries: usize) -> Result<(), Invalid> {
    if entries > MAX_ENTRIES {
        return invalid(field, format!("{entries} entries; {MAX_ENTRIES} are the most"));
    }
    Ok(())
}

/// All of a report. What is wrong with single shortfalls is no fault of the report.
pub fn report(report: &wire::ShardReport) -> Result<(), Invalid> {
    id("shard_id", &report.shard_id)?;
    address("shard_address", &report.shard_address)?;
    count("cycle", report.cycle)?;
    count("shard_epoch", report.shard_epoch)?;
    count("observed_term", report.observed_term)?;
    count("assignment_version", report.assignment_version)?;
    if let Some(summary) = &report.summary {
        count("summary.total_machines", summary.total_machines)?;
        count("summary.free_machines", summary.free_machines)?;
        for (field, counts) in [
            ("summary.per_instance_type_counts", &summary.per_instance_type_counts),
            ("summary.per_zone_counts", &summary.per_zone_counts),
        ] {
            entries(field, counts.len())?;
            counts.values().try_for_each(|number| count(field, *number))?;
        }
        for pool in &summary.pools {
            for number in [pool.idle, pool.speculative, pool.configured] {
                count("summary.pools", number)?;
            }
        }
    }
    report.cluster_ids.iter().try_for_each(|cluster| id("cluster_ids", cluster))?;
    for held in [&report.releasing, &report.holdings].into_iter().flatten() {
        assignment(held)?;
    }
    // Acks are not held against the report: what a donor cannot give must not cut it off.
    Ok(())
}

/// What a donor let go of, as far as it is to be replicated, and where that goes back to.
pub fn released(ack: &wire::InstructAck) -> Result<&wire::DomainAssignment, Invalid> {
    let machines = ack.machine_ids.len();
    if machines > MAX_TRANSFER_MACHINES {
        invalid("machine_ids", format!("{machines}; {MAX_TRANSFER_MACHINES} are the most"))?;
    }
    ack.machine_ids.iter().try_for_each(|machine| name("machine_ids", machine))?;
    home("home_domain", ack.home_domain.as_ref())
}

fn assignment(held: &wire::Assignment) -> Result<(), Invalid> {
    let mut by_transfer: HashMap<&str, usize> = HashMap::new();
    for one in &held.machines_in {
        let machines = by_transfer.entry(&one.transfer_id).or_default();
        *machines += 1;
        if *machines > MAX_TRANSFER_MACHINES {
            // No replica could load a state with such a transfer.
            let why = format!("more than {MAX_TRANSFER_MACHINES} in one transfer");
            invalid("machines_in.transfer_id", why)?;
        }
    }
    held.clusters.iter().try_for_each(|cluster| id("clusters", cluster))?;
    held.domains.iter().try_for_each(|one| domain(&one.topology_key, &one.topology_value))?;
    held.machines_in.iter().try_for_each(|one| {
        name("machines_in.transfer_id", &one.transfer_id)?;
        name("machines_in.machine_id", &one.machine_id)?;
        let home = home("machines_in.home", one.home.as_ref())?;
        id("machines_in.home.shard_id", &home.shard_id)
    })
}

/// Where machines go back to: without one, nobody could own them again.
fn home<'a>(
    field: &str,
    home: Option<&'a wire::DomainAssignment>,
) -> Result<&'a wire::DomainAssignment, Invalid> {
    let missing = || Invalid { field: field.to_owned(), why: "missing; set it".to_owned() };
    let home = home.ok_or_else(missing)?;
    domain(&home.topology_key, &home.topology_value)?;
    Ok(home)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_narrow() {
        for good in ["a", "shard-0", "A.b_c-9", &"x".repeat(253)] {
            assert_eq!(id("shard_id", good), Ok(()), "{good}");
        }
        for bad in ["", "a/b", "a b", "ä", "a\n", "%41", &"x".repeat(254)] {
            assert!(id("shard_id", bad).is_err(), "{bad}");
        }
        let long = id("node_id", &"x".repeat(254)).unwrap_err();
        assert_eq!(long.to_string(), "node_id: 254 bytes; shorten it to 253");
    }

    #[test]
    fn labels_have_their_length() {
        assert_eq!(domain(&"k".repeat(317), &"v".repeat(63)), Ok(()));
        assert!(domain(&"k".repeat(318), "v").is_err());
        assert!(domain("k", &"v".repeat(64)).is_err());
        assert!(domain("", "v").is_err() && domain("k", "").is_err());
    }

    #[test]
    fn a_report_is_checked_whole() {
        let good = || wire::ShardReport { shard_id: "a".into(), ..wire::ShardReport::default() };
        assert_eq!(report(&good()), Ok(()));
        let broken: [fn(&mut wire::ShardReport); 9] = [
            |report| report.shard_id.clear(),
            |report| report.shard_address = "x".repeat(1025),
            |report| report.cycle = -1,
            |report| report.shard_epoch = -1,
            |report| report.assignment_version = -1,
            |report| report.cluster_ids.push("a/b".into()),
            |report| {
                let domain = wire::DomainAssignment::default();
                let domains = vec![domain];
                report.releasing = Some(wire::Assignment { domains, ..Default::default() });
            },
            |report| {
                let summary = wire::ShardSummary { free_machines: -1, ..Default::default() };
                report.summary = Some(summary);
            },
            |report| {
                let many = (0..4097).map(|number| (number.to_string(), 1)).collect();
                let summary = wire::ShardSummary { per_zone_counts: many, ..Default::default() };
                report.summary = Some(summary);
            },
        ];
        for breaks in broken {
            let mut bad = good();
            breaks(&mut bad);
            assert!(report(&bad).is_err(), "{bad:?}");
        }
    }

    fn home_of(key: &str, value: &str, shard: &str) -> wire::DomainAssignment {
        wire::DomainAssignment {
            topology_key: key.into(),
            topology_value: value.into(),
            shard_id: shard.into(),
        }
    }

    /// All of it would be replicated, and go back to shards in every Assignment.
    #[test]
    fn machines_on_loan_are_checked_whole() {
        let checked = |breaks: fn(&mut wire::TransferMachine)| {
            let mut machine = wire::TransferMachine {
                transfer_id: "t".into(),
                machine_id: "aws:///i-0?/ä".into(),
                home: Some(home_of("zone", "1", "b")),
            };
            breaks(&mut machine);
            let held = wire::Assignment { machines_in: vec![machine], ..Default::default() };
            let shard_id = "a".into();
            report(&wire::ShardReport { shard_id, holdings: Some(held), ..Default::default() })
        };
        assert_eq!(checked(|_| {}), Ok(()));
        let broken: [fn(&mut wire::TransferMachine); 8] = [
            |machine| machine.transfer_id.clear(),
            |machine| machine.transfer_id = "x".repeat(254),
            |machine| machine.machine_id.clear(),
            |machine| machine.machine_id = "x".repeat(254),
            |machine| machine.home = None,
            |machine| machine.home = Some(home_of("", "1", "b")),
            |machine| machine.home = Some(home_of("zone", &"v".repeat(64), "b")),
            |machine| machine.home = Some(home_of("zone", "1", "a/b")),
        ];
        for (index, breaks) in broken.into_iter().enumerate() {
            assert!(checked(breaks).is_err(), "{index}");
        }
    }

    /// A state with more would be committed, and no replica could load it again.
    #[test]
    fn a_transfer_has_a_hundred_machines_in_holdings_too() {
        let held = |machines: usize, transfers: usize| {
            let machine = |number: usize| wire::TransferMachine {
                transfer_id: (number % transfers).to_string(),
                machine_id: number.to_string(),
                home: Some(home_of("zone", "1", "b")),
            };
            let machines_in = (0..machines).map(machine).collect();
            let held = wire::Assignment { machines_in, ..Default::default() };
            let shard_id = "a".into();
            report(&wire::ShardReport { shard_id, holdings: Some(held), ..Default::default() })
        };
        assert_eq!((held(100, 1), held(200, 2)), (Ok(()), Ok(())));
        let refused = held(101, 1).unwrap_err();
        assert_eq!(refused.to_string(), "machines_in.transfer_id: more than 100 in one transfer");
    }

    #[test]
    fn what_a_donor_let_go_of_is_checked() {
        let ack = |machines: &[&str], home_domain| wire::InstructAck {
            machine_ids: machines.iter().map(|&machine| machine.to_owned()).collect(),
            home_domain,
            ..Default::default()
        };
        let home = || Some(home_of("zone", "1", ""));
        assert_eq!(released(&ack(&["m/1", "m 2"], home())).ok(), home().as_ref());
        let broken = [
            ack(&["m"; 101], home()),
            ack(&["m", ""], home()),
            ack(&[&"x".repeat(254)], home()),
            ack(&["m"], None),
            ack(&["m"], Some(home_of("zone", &"v".repeat(64), ""))),
        ];
        for bad in broken {
            assert!(released(&bad).is_err(), "{bad:?}");
        }
    }
}
